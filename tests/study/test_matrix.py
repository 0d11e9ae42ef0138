"""Tests the cells that a study's matrix makes, and every error in a matrix."""

import os
import random
from pathlib import Path

import pytest

from weir.generators.registry import GENERATORS
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, ExponentialThink, OpenLoad, Session
from weir.model.run_types import Placement
from weir.study.machine_needs import find_missing_generators, require_generators
from weir.study.study import PlannedCell, read_study

HEAD = 'schema = 1\ntitle = "T"\nquestion = "Q?"\n'
MANIFEST = """
schema = 1
id = "{id}"
title = "{id}"
model = "M"
[run]
command = ["serve", "{{port}}"]
[serves]
hello = {{}}
"""


@pytest.fixture(autouse=True)
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two stacks: `pool` has limits and variants, `loop` has neither."""
    pool = '[limits]\nthreads = { default = 8, arg = "--threads={value}" }\nworkers = { default = "cpus", arg = "--workers={value}" }\n'
    pool += '[variants.fast]\nargs = ["--fast"]\n[variants.slow]\nargs = ["--slow"]\n'
    for name, more in (("pool", pool), ("loop", "")):
        folder = tmp_path / "stacks" / name
        folder.mkdir(parents=True)
        (folder / "stack.toml").write_text(MANIFEST.format(id=name) + more)
    monkeypatch.setenv("WEIR_STACKS", str(tmp_path / "stacks"))


def study(
    folder: Path,
    matrix: str = "connections = [4]",
    load: str = "",
    rest: str = "",
    *,
    stacks: str = '["pool", "loop"]',
    workloads: str = '["hello"]',
    baseline: str = "pool",
) -> str:
    text = f'{HEAD}[load]\nduration_s = 1\n{load}\n[method]\nblocks = 2\nbaseline = "{baseline}"\n'
    path = folder / "mine.toml"
    path.write_text(f"{text}[matrix]\nstacks = {stacks}\nworkloads = {workloads}\n{matrix}\n{rest}\n")
    return str(path)


def cells(path: str, stack_cpus: int = 2) -> list[PlannedCell]:
    return read_study(path).cells(stack_cpus)


def problem(path: str) -> str:
    with pytest.raises(UsageError) as error:
        cells(path)
    assert error.value.message.startswith(path)
    return error.value.message


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("[4, 50, 100]", [4, 50, 100]),
        ("7", [7]),
        ('"4, 50..200 step 50"', [4, 50, 100, 150, 200]),
        ('"1..3"', [1, 2, 3]),
        ('"10..25 step 10"', [10, 20]),
    ],
)
def test_numbers_are_lists_or_ranges(tmp_path: Path, value: str, numbers: list[int]) -> None:
    planned = cells(study(tmp_path, f"connections = {value}", stacks='["pool"]'))
    assert [one.cell.load for one in planned] == [ClosedLoad(number) for number in numbers]


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ("connections = []", "matrix.connections: found []; expected at least one value"),
        ("connections = [0]", "matrix.connections: found [0]; expected whole numbers of at least 1"),
        ("connections = [1.5]", "expected whole numbers of at least 1, not 1.5"),
        ("connections = [true]", "expected whole numbers of at least 1, not True"),
        ("connections = [4, 4]", "expected every value only once, found 4 twice"),
        (
            'connections = "50..4"',
            "matrix.connections: found '50..4'; expected a range from lower to higher, such as 4..50",
        ),
        ('connections = "1..9 step 0"', "expected a step above 0 in '1..9 step 0': with step 0 the range never ends"),
        ('connections = "1..9999999"', "expected at most 1,000 numbers"),
        ('connections = "4.."', "expected numbers and ranges such as"),
        ('connections = "few"', "expected numbers and ranges such as"),
        (
            'users = "0s:0,5s:9"',
            "matrix.users: found '0s:0,5s:9'; expected a list that contains the profile: ['0s:0,5s:9']",
        ),
        ('users = ["5s:9,0s:1"]', "expected points sorted by time"),
        ("users = [-1]", "expected numbers above 0 or profiles such as '0s:10,30s:100', not -1"),
        ("users = [4.5]", "matrix.users: found 4.5, expected a whole number"),
        ("users = [4]\nrate_rps = [4]", "users: found together with rate_rps, expected only one of the two"),
        ("users = [4]\nconnections = [4]", "users: found together with connections, expected only one of the two"),
        ("", "expected one of connections, users and rate_rps"),
        (
            'connections = [4]\ngenerators = ["weir", "wkr"]',
            f"matrix.generators: found ['weir', 'wkr']; expected names among {', '.join(GENERATORS)}, not 'wkr'",
        ),
        ('connections = [4]\ngenerators = ["wrk", "wrk"]', "generators: expected every name only once"),
        (
            'connections = [4]\ngenerators = ["wrk2"]',
            "matrix.generators: found 'wrk2' for 4 connections on hello: wrk2 cannot",
        ),
        (
            'rate_rps = [4]\ngenerators = ["weir", "ab"]',
            "matrix.generators: found 'ab' for 4 req/s over 64 connections on hello: ab cannot",
        ),
        ('connections = [4]\nreplicas = [2]\ngenerators = ["hey"]', "hey cannot send requests to several targets"),
        ("connections = [4]\ngenerators = []", "matrix.generators: found []"),
        ("connections = [4]\nreplicas = [0]", "matrix.replicas: found [0]; expected whole numbers of at least 1"),
        (
            "connections = [4]\nreplicas = [8]",
            "matrix.replicas: found 8 processes for 4 connections, expected at least one connection for each process",
        ),
        ('connections = [4]\nvariants = ["fast", "fast"]', "variants: expected every name only once"),
        (
            'connections = [4]\nvariants = ["quick"]',
            "matrix.variants: found quick, expected variants of the stacks: fast, slow",
        ),
        (
            "connections = [4]\nlimits.pools = [4]",
            "matrix.limits.pools: found a limit that no stack of the matrix has, expected one of: threads, workers",
        ),
        ("connections = [4]\nlimits.threads = []", "matrix.limits.threads: found []; expected at least one value"),
        ("connections = [4]\nlimit.threads = [4]", "matrix.limit: unknown key; did you mean 'limits'?"),
    ],
)
def test_a_matrix_with_a_mistake_is_refused_by_file_and_key(tmp_path: Path, matrix: str, expected: str) -> None:
    assert expected in problem(study(tmp_path, matrix))


@pytest.mark.parametrize(
    ("matrix", "load", "expected"),
    [
        (
            "connections = [4]",
            'arrivals = "poisson"',
            "load.arrivals: found without matrix.rate_rps, expected both",
        ),
        ("connections = [4]", 'arrivals = "even"', "load.arrivals: found 'even'; should be 'constant' or 'poisson'"),
        ("connections = [4]", "ramp_s = 5", "load.ramp_s: found without matrix.users, expected both"),
        (
            'users = ["0s:1,5s:2"]',
            "ramp_s = 5",
            "load.ramp_s: found together with matrix.users 0s:1,5s:2, expected a single number of users",
        ),
        ("rate_rps = [4]", 'think = "1s"', "load.think: found together with matrix.rate_rps and without load.loops"),
        (
            "rate_rps = [4]",
            "pace_s = 1",
            "load.pace_s: found together with matrix.rate_rps, expected only one of the two",
        ),
        (
            "users = [4]",
            'think = "long"',
            "load.think: found 'long'; expected a pause such as 1s, uniform:1s..3s or exp:2s",
        ),
        (
            "users = [4]",
            'think = "1s"\npipeline = 2',
            "load.pipeline: found 2 together with a profile of users, load.think, load.loops or load.pace_s",
        ),
        (
            "connections = [4]",
            "keep_alive = false\npipeline = 2",
            "load.pipeline: found 2 together with load.keep_alive = false",
        ),
        ("connections = [4]", "pipeline = 2000", "load.pipeline: found 2000; should be less than or equal to 1024"),
        ("connections = [4]", 'scenario = "none.toml"', "none.toml: not found; expected a scenario"),
        ("connections = [4]", "timeout_s = 0", "load.timeout_s: found 0; should be greater than 0"),
        ("connections = [4]", "keepalive = false", "load.keepalive: unknown key; did you mean 'keep_alive'?"),
    ],
)
def test_settings_of_a_load_that_do_not_go_together_are_named_by_their_keys(
    tmp_path: Path, matrix: str, load: str, expected: str
) -> None:
    assert expected in problem(study(tmp_path, matrix, load))


def test_users_rates_and_profiles_become_the_loads_of_the_same_words(tmp_path: Path) -> None:
    users = cells(study(tmp_path, 'users = [100, "0s:0,30s:500"]', 'think = "exp:2s"\nloops = 3', stacks='["pool"]'))
    pause = ExponentialThink(2.0)
    assert [one.cell.load for one in users] == [
        ClosedLoad(100.0, pause, 3),
        ClosedLoad(((0.0, 0.0), (30.0, 500.0)), pause, 3),
    ]
    ramp = cells(study(tmp_path, "users = [100]", "ramp_s = 5", stacks='["pool"]'))
    assert ramp[0].cell.load == ClosedLoad(((0.0, 0.0), (5.0, 100.0)))
    text = study(tmp_path, 'rate_rps = "100..200 step 100"', 'arrivals = "poisson"\nloops = 2', stacks='["pool"]')
    assert [one.cell.load for one in cells(text)] == [
        OpenLoad(rate, 64, "poisson", Session(2)) for rate in (100.0, 200.0)
    ]


def test_limits_are_crossed_with_the_stacks_that_have_them(tmp_path: Path) -> None:
    planned = cells(study(tmp_path, "connections = [4, 8]\nlimits.threads = [1, 2]"))
    assert [(one.cell.stack, one.cell.load.connections, one.cell.coordinates) for one in planned] == [
        ("pool", 4, {"threads": "1"}), ("pool", 4, {"threads": "2"}), ("pool", 8, {"threads": "1"}), ("pool", 8, {"threads": "2"}),
        ("loop", 4, {}), ("loop", 8, {}),
    ]  # fmt: skip
    assert [one.cell.settings for one in planned[:2]] == [
        {"threads": "1", "workers": "2"},
        {"threads": "2", "workers": "2"},
    ]
    assert planned[1].stack.label == "pool"


def test_variants_are_crossed_with_the_stacks_that_have_them(tmp_path: Path) -> None:
    def labels(variants: str) -> list[str]:
        return [one.cell.stack_label for one in cells(study(tmp_path, f"connections = [4]\nvariants = {variants}"))]

    assert labels('["default", "fast"]') == ["pool", "pool[fast]", "loop"]
    assert labels('["fast", "slow"]') == ["pool[fast]", "pool[slow]", "loop"]
    path = study(tmp_path, 'connections = [4]\nvariants = ["fast"]', stacks='["pool", "pool[fast]"]')
    assert "matrix.stacks: found pool[fast] twice, by name and from matrix.variants" in problem(path)


def test_replicas_and_cpus_are_coordinates_and_share_the_cpus_of_the_stack(tmp_path: Path) -> None:
    planned = cells(
        study(tmp_path, "connections = [8]\nreplicas = [1, 2]\ncpus = [1, 2]", stacks='["pool"]'), stack_cpus=4
    )
    assert [(one.cell.replicas, one.cell.cpus, one.cell.settings["workers"]) for one in planned] == [
        (1, 1, "1"), (1, 2, "2"), (2, 1, "1"), (2, 2, "1"),
    ]  # fmt: skip
    assert planned[3].cell.coordinates == {"replicas": "2", "cpus": "2"}
    placement = Placement(load=(0,), stack=(1, 2), services=(), control=(0,))
    assert [one.restrict_placement(placement).stack for one in planned[:2]] == [(2,), (1, 2)]


def test_generators_are_a_coordinate_where_the_study_varies_them_and_only_there(tmp_path: Path) -> None:
    several = cells(study(tmp_path, 'connections = [4]\ngenerators = ["weir", "wrk"]'))
    assert [(one.cell.stack, one.cell.generator, one.cell.coordinates) for one in several] == [
        ("pool", "weir", {"generator": "weir"}), ("pool", "wrk", {"generator": "wrk"}),
        ("loop", "weir", {"generator": "weir"}), ("loop", "wrk", {"generator": "wrk"}),
    ]  # fmt: skip
    assert several[1].cell.point_label == "hello, 4 connections, generator wrk"
    assert len({one.load_key for one in several}) == 2, "each has a limit of its own"
    (alone, _) = cells(study(tmp_path, 'connections = [4]\ngenerators = ["wrk"]'))
    assert (alone.cell.generator, alone.cell.coordinates) == ("wrk", {})


def test_an_override_may_be_for_one_generator(tmp_path: Path) -> None:
    rest = '[[override]]\nwhere = { generator = ["wrk", "ab"] }\nload = { duration_s = 7 }\n'
    planned = cells(study(tmp_path, 'connections = [4]\ngenerators = ["weir", "wrk"]', rest=rest, stacks='["pool"]'))
    assert [one.load.duration_s for one in planned] == [1, 7]


def test_a_tap_needs_the_stack_on_loopback(tmp_path: Path) -> None:
    path = study(tmp_path, rest='[network]\nisolation = "netns"\n')
    Path(path).write_text(Path(path).read_text().replace('baseline = "pool"', 'baseline = "pool"\ntap = true'))
    assert "method.tap: found together with network.isolation, expected only one: the tap needs" in problem(path)


def test_generators_that_are_not_here_are_named_and_can_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = study(tmp_path, 'connections = [4]\ngenerators = ["weir", "wrk", "ab"]', stacks='["loop"]', baseline="loop")
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("ab", "serve"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    whole = read_study(path)
    missing = "wrk: not found on the PATH; apt-get install wrk"
    assert whole.missing_generators() == {"wrk": missing}
    assert find_missing_generators(whole) == [f"{path}: matrix.generators: {missing}"]
    with pytest.raises(UsageError) as refused:
        require_generators(whole)
    assert (refused.value.message, refused.value.hint) == (
        f"{path}: matrix.generators: {missing}", "use --skip-missing to omit what this machine cannot run",
    )  # fmt: skip
    left, said = whole.without_unmet()
    assert said == [f"generator wrk is left out: {missing}"]
    assert [(one.cell.id, one.cell.generator, one.cell.coordinates) for one in left.cells(1)] == [
        (1, "weir", {"generator": "weir"}), (2, "ab", {"generator": "ab"}),
    ]  # fmt: skip
    assert find_missing_generators(left) == []


def test_a_study_of_which_no_two_generators_are_left_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = study(tmp_path, 'connections = [4]\ngenerators = ["weir", "wrk"]', stacks='["loop"]', baseline="loop")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"matrix\.generators: nothing remains to compare: generator wrk is left out"):
        read_study(path).without_unmet()


def test_the_aa_arm_goes_through_all_points(tmp_path: Path) -> None:
    path = study(tmp_path, "connections = [4, 8]\nlimits.threads = [1, 2]")
    Path(path).write_text(Path(path).read_text().replace('baseline = "pool"', 'baseline = "pool"\naa = "pool"'))
    copies = [one.cell for one in cells(path) if one.cell.arm == "aa"]
    originals = [one.cell for one in cells(path) if one.cell.arm == "main" and one.cell.stack == "pool"]
    assert [(copy.load, copy.coordinates) for copy in copies] == [(cell.load, cell.coordinates) for cell in originals]


def test_an_override_changes_the_cells_that_it_describes_and_a_later_one_wins(tmp_path: Path) -> None:
    overrides = """
[[override]]
where = { stack = "loop" }
method = { warmup_s = 9 }
[[override]]
where = { connections = [8, 9], stack = ["loop", "pool"] }
load = { duration_s = 7 }
[[override]]
where = { connections = 8, threads = 2 }
load = { duration_s = 8 }
"""
    planned = cells(study(tmp_path, "connections = [4, 8]\nlimits.threads = [1, 2]", rest=overrides))
    assert [(one.load.duration_s, one.method.warmup_s) for one in planned] == [
        (1, 2),
        (1, 2),
        (7, 2),
        (8, 2),
        (1, 9),
        (7, 9),
    ]
    # Cells that differ only in duration and warm-up are still compared.
    assert planned[3].cell.coordinates == {"threads": "2"}


def test_an_override_of_what_is_asked_separates_the_cells(tmp_path: Path) -> None:
    override = '[[override]]\nwhere = { stack = "loop" }\nload = { keep_alive = false }\n'
    planned = cells(study(tmp_path, "connections = [4]", rest=override))
    assert [one.cell.coordinates for one in planned] == [{"keep-alive": "on"}, {"keep-alive": "off"}]
    # The audit of a run needs the depth of the pipeline.
    planned = cells(study(tmp_path, "connections = [4]", "pipeline = 2"))
    assert [one.cell.coordinates for one in planned] == [{"pipeline": "2"}] * 2


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (
            'where = { stack = "rails" }\nload = { duration_s = 2 }',
            "override.0.where: found {'stack': 'rails'}, which does not match any cell",
        ),
        (
            "where = { connections = 5 }\nload = { duration_s = 2 }",
            "which does not match any cell; expected values from the matrix",
        ),
        (
            'where = { stak = "loop" }\nload = { duration_s = 2 }',
            "override.0.where.stak: unknown key; did you mean 'stack'?",
        ),
        ("where = {}\nload = { duration_s = 2 }", "override.0.where: found {}"),
        ('where = { stack = "loop" }', "expected keys under 'load' or 'method'"),
        (
            'where = { stack = "loop" }\nload = { duration = 2 }',
            "override.0.load.duration: unknown key; did you mean 'duration_s'?",
        ),
        (
            'where = { stack = "loop" }\nload = { duration_s = 0 }',
            "override.0.load.duration_s: found 0; should be greater than 0",
        ),
        (
            'where = { stack = "loop" }\nmethod = { blocks = 3 }',
            "method.blocks: expected one of: warmup_s, pause_s, extension_s",
        ),
        ('where = { stack = "loop" }\nload = { arrivals = "poisson" }', "load.arrivals: found without matrix.rate_rps"),
    ],
)
def test_an_override_with_a_mistake_is_refused(tmp_path: Path, override: str, expected: str) -> None:
    assert expected in problem(study(tmp_path, rest=f"[[override]]\n{override}\n"))


def test_an_external_stack_needs_neither_limits_nor_replicas(tmp_path: Path) -> None:
    table = f'[external.mine]\nurl = "http://127.0.0.1:8000"\npids = [{os.getpid()}]\nserves = ["hello"]\n'
    path = study(
        tmp_path, "connections = [8]\nreplicas = [1, 2]\nlimits.threads = [1, 2]", rest=table, stacks='["pool", "mine"]'
    )
    mine = [one for one in cells(path) if one.cell.stack == "mine"]
    assert [(one.cell.coordinates, one.cell.started, one.cell.replicas) for one in mine] == [({}, False, 1)]
    assert mine[0].restrict_placement(Placement((0,), (1,), (), (0,))).stack == tuple(sorted(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            'url = "127.0.0.1:80"\nserves = ["hello"]',
            "external.mine.url: found '127.0.0.1:80'; expected http://HOST[:PORT]",
        ),
        ('url = "http://"\nserves = ["hello"]', "expected http://HOST[:PORT]"),
        ('url = "http://a:99999"\nserves = ["hello"]', "expected http://HOST[:PORT]"),
        ('url = "http://a/path"\nserves = ["hello"]', "expected http://HOST[:PORT] without a path"),
        ('url = "http://a"\nserves = []', "external.mine.serves: found []"),
        (
            'url = "http://a"\nserves = ["echo"]',
            "matrix.workloads: found 'hello', expected a workload of mine: echo",
        ),
        (
            'url = "http://a"\nserves = ["hello"]\npids = [0]',
            "external.mine.pids: found [0]; expected process ids above 0, each once",
        ),
        (
            'url = "http://a"\nserves = ["hello"]\npids = [4194304]',
            "external.mine.pids: found 4194304, expected ids of running processes",
        ),
        ('url = "http://a"\nserve = ["hello"]', "external.mine.serve: unknown key; did you mean 'serves'?"),
    ],
)
def test_an_external_stack_with_a_mistake_is_refused(tmp_path: Path, table: str, expected: str) -> None:
    assert expected in problem(study(tmp_path, rest=f"[external.mine]\n{table}\n", stacks='["pool", "mine"]'))


def test_an_external_stack_that_nobody_asks_for_or_that_takes_a_name_is_refused(tmp_path: Path) -> None:
    table = 'url = "http://a"\nserves = ["hello"]\n'
    unused = study(tmp_path, rest=f"[external.mine]\n{table}")
    assert "external.mine: expected one of matrix.stacks: pool, loop" in problem(unused)
    taken = study(tmp_path, rest=f"[external.loop]\n{table}")
    assert "external.loop: found the name of a built-in stack, expected another name" in problem(taken)


@pytest.mark.parametrize(
    ("hold", "expected"),
    [
        ("[]", "objective.hold: found []"),
        ('["fast"]', "objective.hold: found ['fast']; found 'fast', expected a metric, a comparison and a limit"),
        ('["p99<5"]', "expected one of the units"),
        ('["p99<5ms", "p99<5ms"]', "expected every condition only once"),
    ],
)
def test_an_objective_with_a_mistake_is_refused(tmp_path: Path, hold: str, expected: str) -> None:
    assert expected in problem(study(tmp_path, rest=f"[objective]\nhold = {hold}\n"))


def test_a_scenario_stands_in_for_the_request_and_its_content_is_part_of_the_cell(tmp_path: Path) -> None:
    scenario = tmp_path / "shop.toml"
    scenario.write_text('[[steps]]\npath = "/a"\n')
    path = study(tmp_path, "connections = [4]", 'scenario = "shop.toml"')
    before = cells(path)[0]
    assert before.load.scenario is not None
    plan = before.plan(
        before.workload.draw("http://a", random.Random(1)), targets=(), duration_s=1, interval_s=0.1, cpus=(0,)
    )
    assert plan.to_json()["scenario"]["steps"][0]["path"] == "/a"
    scenario.write_text('[[steps]]\npath = "/b"\n')
    assert cells(path)[0].cell.coordinates["scenario"] != before.cell.coordinates["scenario"]
    two = study(tmp_path, "connections = [4]", 'scenario = "shop.toml"', workloads='["hello", "echo"]')
    assert "load.scenario: found together with several matrix.workloads, expected one" in problem(two)
    spread = study(tmp_path, "connections = [4]\nreplicas = [2]", 'scenario = "shop.toml"')
    assert "load.scenario: found together with matrix.replicas above 1" in problem(spread)


def test_a_scale_adds_to_lists_of_tables_and_replaces_other_lists(tmp_path: Path) -> None:
    rest = """
[[override]]
where = { connections = 8 }
load = { duration_s = 5 }
[scales.quick.matrix]
connections = [8, 16]
[[scales.quick.override]]
where = { connections = 16 }
load = { duration_s = 3 }
[scales.evidence]
"""
    path = study(tmp_path, "connections = [4, 8]", rest=rest, stacks='["pool"]')
    assert [one.load.duration_s for one in read_study(path, scale="quick").cells(1)] == [5, 3]
    assert [one.load.duration_s for one in read_study(path, scale="evidence").cells(1)] == [1, 5]


def test_a_baseline_may_be_a_variant_of_the_matrix_and_no_other(tmp_path: Path) -> None:
    matrix = 'connections = [4]\nvariants = ["fast"]'
    assert cells(study(tmp_path, matrix, baseline="pool[fast]"))
    assert "method.baseline: found 'pool[slow]', expected a stack of the matrix: pool[fast], loop" in problem(
        study(tmp_path, matrix, baseline="pool[slow]")
    )


def test_a_published_figure_stands_beside_the_points_that_it_names(tmp_path: Path) -> None:
    def published(where: str) -> str:
        figure = f'[[published]]\nstack = "pool"\nmetric = "throughput_rps"\nvalue = 1.0\nwhere = {where}\n'
        return study(tmp_path, "connections = [4, 8]\nlimits.threads = [1, 2]", rest=figure)

    assert read_study(published("{ connections = 4, threads = 2 }")).published[0].where == {
        "connections": "4",
        "threads": "2",
    }
    assert "published.0.where.users: unknown key; expected one of: connections, threads, workload" in problem(
        published("{ users = 4 }")
    )


OWN = '[external.ours]\nurl = "http://127.0.0.1:8000"\nserves = ["search"]\n[workload.search]\nrequest = { path = "/s?q={{int 1 9}}" }\n'


def own(folder: Path, rest: str = OWN, load: str = "") -> str:
    return study(folder, load=load, rest=rest, stacks='["ours"]', workloads='["search"]', baseline="ours")


def test_an_external_server_is_asked_a_workload_of_the_studys_own(tmp_path: Path) -> None:
    answer = 'answer = { status = 201, text_matches = "found", json = { a = 1 } }\n'
    (cell,) = cells(own(tmp_path, OWN + answer))
    workload = cell.workload
    assert (workload.id, workload.title, workload.answer.status, workload.answer.json_) == (
        "search",
        "search",
        201,
        {"a": 1},
    )
    request = workload.draw("http://a", random.Random(1))
    assert request.target in {f"http://a/s?q={number}" for number in range(1, 10)}
    plan = cell.plan(request, targets=(), duration_s=1, interval_s=0.1, cpus=(0,))
    assert plan.expected_status == (201,)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (
            OWN + '[workload.other]\nrequest = { path = "/" }\n',
            "workload.other: expected one of matrix.workloads: search",
        ),
        (OWN.replace("search", "echo"), "found the name of a built-in workload, expected another name"),
        (
            OWN.replace('"/s', '"s'),
            "workload.search.request.path: found 's?q={{int 1 9}}'; expected a path that begins with '/'",
        ),
        (OWN + "answer = { rows = {} }\n", "workload.search.answer.rows: unknown key"),
        (
            OWN + 'answer = { text_matches = "(" }\n',
            "workload.search.answer.text_matches: found '('; expected a valid regular expression",
        ),
    ],
)
def test_a_workload_of_the_studys_own_with_a_mistake_is_refused(rest: str, expected: str, tmp_path: Path) -> None:
    path = Path(own(tmp_path, rest))
    if "echo" in rest:
        path.write_text(path.read_text().replace('workloads = ["search"]', 'workloads = ["echo"]'))
    assert expected in problem(str(path))


def test_a_scenario_may_stand_in_the_study_itself(tmp_path: Path) -> None:
    steps = 'scenario.steps = [{ path = "/a" }, { path = "/b", check = { json = { "/x" = 1 } } }]'
    (cell,) = cells(own(tmp_path, load=steps))
    assert cell.load.scenario is not None
    assert [step["path"] for step in cell.load.scenario["steps"]] == ["/a", "/b"]
    # The scenario does not use the workload's path.
    plan = cell.plan(
        cell.workload.draw("http://a", random.Random(1)), targets=(), duration_s=1, interval_s=0.1, cpus=(0,)
    )
    assert plan.request.target == "http://a/"
    wrong = own(tmp_path, load='scenario.steps = [{ path = "/a", chekc = {} }]')
    assert "mine.toml: load.scenario.steps.0.chekc: unknown key; did you mean 'check'?" in problem(wrong)
    feeder = 'scenario.steps = [{ path = "/{{csv u.id}}" }]\nscenario.feeders.u = { format = "csv", file = "none.csv" }'
    assert "load.scenario.feeders.u.file: found" in problem(own(tmp_path, load=feeder))
