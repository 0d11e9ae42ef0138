"""Tests trials from other people's CSV files, with repeated headers, gaps and errors."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from weir.cli.breakeven import breakeven
from weir.compat.csv_import import Imported, read_mapping, read_table, write_imported
from weir.findings import RunFindings, of_run
from weir.findings.run_findings import break_evens_in
from weir.model.errors import UsageError
from weir.report import render_terminal
from weir.store import RunReader

DATA = Path(__file__).parent.parent / "data"
PUBLISHED = DATA / "blocking_vs_nonblocking_raw.csv"
MAPPING = DATA / "blocking_vs_nonblocking_raw.toml"
MAPS = [
    "stack=server",
    "connections=c",
    "requests=n",
    "duration_s=took:ms",
    "errors=bad",
    "mean=lat:ms",
    "cpu_s=user:ticks+system:ticks",
]
HEADER = "server,c,n,took,bad,lat,user,system"


def read(tmp_path: Path, *rows: str, maps: list[str] = MAPS) -> Imported:
    path = tmp_path / "trials.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return read_table(path, read_mapping(None, maps)[1])


def test_a_row_is_a_trial_and_its_units_are_those_that_were_named(tmp_path: Path) -> None:
    (trial,) = read(tmp_path, "flask,20,1000,2000,0,1.5,150,50").trials
    summary, resources = trial.result.summary, trial.result.resources
    assert summary is not None
    assert resources is not None
    assert (trial.cell.stack, trial.cell.load.connections, trial.block) == ("flask", 20, 1)
    assert (summary.duration_s, summary.throughput_rps, summary.requests.ok) == (2.0, 500.0, 1000)
    assert summary.response_time_us.mean == pytest.approx(1500)
    assert summary.response_time_us.p99 is None
    assert resources.cpu_s == pytest.approx(2.0)


def test_the_nth_row_of_a_cell_belongs_to_block_n(tmp_path: Path) -> None:
    rows = [f"{stack},{c},1000,2000,0,1,1,1" for _ in range(3) for stack in ("flask", "sanic") for c in (10, 20)]
    imported = read(tmp_path, *rows)
    assert [(cell.stack, cell.load.connections) for cell in imported.cells.values()] == [
        ("flask", 10),
        ("flask", 20),
        ("sanic", 10),
        ("sanic", 20),
    ]
    assert [trial.block for trial in imported.trials] == [1] * 4 + [2] * 4 + [3] * 4


def test_headers_in_between_gaps_and_failed_rows_are_counted_and_nothing_is_made_of_them(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        "flask,20,1000,2000,0,1.5,150,50",
        HEADER,
        "flask,20,,2000,0,1.5,150,50",
        "",
        "flask,20,1000,2000,0,,,50",
        "flask,20,900,2000,100,1.5,150,50",
        ",20,1000,2000,0,1.5,150,50",
        "flask,20,nan,2000,0,1.5,150,50",
    )
    assert imported.headers == 1
    assert imported.incomplete == [(4, "requests"), (8, "stack"), (9, "requests")]
    assert imported.failed == 1
    first, without_times, failed = imported.trials
    assert without_times.result.resources is None
    assert without_times.result.summary is not None
    assert without_times.result.summary.response_time_us.mean is None
    assert (first.result.verdict.validity, failed.result.verdict.validity) == ("valid", "invalid")
    assert imported.sentence == (
        "3 trials; 1 repeated header lines left out; 3 rows left out, for example line 4 without requests; "
        "1 trials invalid, because they have failed requests"
    )


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (["stack=server"], "connections, duration_s"),
        (["stack=server", "connections=c", "duration_s=took"], "throughput_rps or requests"),
        ([*MAPS, "speed=n"], "found the field 'speed'"),
        ([*MAPS, "stack"], "expected FIELD=COLUMN"),
        ([*MAPS, "p99=nothing:ms"], "found no column 'nothing'"),
    ],
)
def test_a_mapping_that_does_not_fit_is_told_what_does(tmp_path: Path, maps: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(tmp_path, "flask,20,1000,2000,0,1.5,150,50", maps=maps)


def test_a_file_without_a_trial_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="found no trial"):
        read(tmp_path, HEADER)
    with pytest.raises(UsageError, match="not found"):
        read_table(tmp_path / "nowhere.csv", read_mapping(None, MAPS)[1])


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.weir"
    file, columns = read_mapping(MAPPING, [])
    write_imported(read_table(PUBLISHED, columns), file, PUBLISHED, path, command="weir import")
    return path


@pytest.fixture(scope="module")
def findings(published: Path) -> RunFindings:
    with RunReader(published) as reader:
        return of_run(reader)


@pytest.mark.parametrize(
    ("other", "at", "low", "high", "between"),
    [("WebFlux R2DBC", 27, 22, 33, (4, 50)), ("Web MVC R2DBC", 110, 96, 136, (100, 150))],
)
def test_the_published_trials_cross_where_their_author_did_not_look(
    published: Path, other: str, at: float, low: float, high: float, between: tuple[float, float]
) -> None:
    with RunReader(published) as reader:
        (found,) = break_evens_in(reader, other, "Web MVC JDBC", ["throughput_rps"])
    (crossing,) = found.crossings
    assert crossing.low is not None
    assert crossing.high is not None
    assert crossing.at == pytest.approx(at, rel=0.03)
    assert crossing.low == pytest.approx(low, rel=0.05)
    # One in twenty trials at 150 connections is a third slower than the others. This end depends on how often it is
    # drawn.
    assert crossing.high == pytest.approx(high, rel=0.15)
    assert crossing.between == between


def import_many(folder: Path, *, lat_factor: float, generator: str) -> tuple[RunFindings, str]:
    """Imports 360 invented trials of two stacks. `lat_factor`: the printed mean ÷ the largest possible mean.

    Every tenth trial of a cell has a possible mean. Returns the findings and the terminal's text."""
    rows = []
    for block in range(1, 31):
        for users in (4, 16, 64, 256, 512, 1024):
            for stack, peak_rps, half in (("flask", 9_000, 5), ("sanic", 20_000, 40)):
                requests = round(
                    10 * peak_rps * users / (users + half) * (1 + 0.01 * ((7 * block + users) % 11 - 5) / 5)
                )
                lat_ms = 10_000 * users / requests * (0.9 if block % 10 == 0 else lat_factor)
                rows.append(f"{stack},{users},{requests},10000,0,{lat_ms:.6f},100,50")
    source, run = folder / "trials.csv", folder / "run.weir"
    folder.mkdir()
    source.write_text("\n".join([HEADER, *rows]) + "\n")
    file, columns = read_mapping(None, MAPS)
    write_imported(read_table(source, columns, generator=generator), file, source, run, command="weir import")
    output = io.StringIO()
    with RunReader(run) as reader:
        found = of_run(reader)
    Console(file=output, width=10_000).print(render_terminal(found))
    return found, output.getvalue()


def test_a_habit_of_the_generator_is_told_once_and_makes_many_trials_suspect(tmp_path: Path) -> None:
    honest, _ = import_many(tmp_path / "honest", lat_factor=0.95, generator="wrk")
    found, text = import_many(tmp_path / "corrected", lat_factor=1.5, generator="wrk")
    assert (honest.answer.validity, found.answer.validity) == ("valid", "suspect")
    assert found.trials.suspect == 324
    assert "[suspect]" in text
    assert "not use" not in text
    assert text.count("wrk corrects for requests that it did not send") == 1
    assert len(found.answer.reasons) == 1
    # The answer does not need the mean.
    assert found.answer.sentence == honest.answer.sentence
    assert [one.sentence for one in found.break_evens] == [one.sentence for one in honest.break_evens]
    assert found.break_evens[0].crossings


def test_many_trials_are_told_as_few_ranges_and_each_point_is_one_row(tmp_path: Path) -> None:
    found, text = import_many(tmp_path / "run", lat_factor=1.5, generator="another tool")
    assert found.audit.sentence.endswith("in trials 1–108, 121–228, 241–348.")
    assert text.count("1–108") == 1
    assert len([line for line in text.splitlines() if line.startswith("64 connections")]) == 1
    assert "p99 ms" not in text
    assert "Next: Name the tool with --generator." in text


def test_the_published_mean_latencies_are_found_impossible(findings: RunFindings) -> None:
    broken = {law.law for law in findings.audit.broken}
    assert len({law.trial for law in findings.audit.broken}) > 300
    assert broken == {"users = throughput × response time"}


def test_the_plateau_that_no_cpu_explains_is_a_limit_of_the_software(findings: RunFindings) -> None:
    held = {found.name: found for found in findings.bottlenecks}
    assert held["Web MVC JDBC"].kind == "resource"
    plateau = held["WebFlux JDBC"]
    assert plateau.kind == "software limit"
    assert plateau.throughput_rps == pytest.approx(11_000, rel=0.02)
    assert plateau.resources[0].utilisation < 0.85
    assert "throughput is the same from" in plateau.what


def test_two_stacks_that_are_not_in_the_run_are_named(published: Path) -> None:
    with pytest.raises(UsageError, match="found no stack Flask"):
        breakeven("Flask", "WebFlux R2DBC", published)
    with pytest.raises(UsageError, match="twice"):
        breakeven("WebFlux R2DBC", "WebFlux R2DBC", published)
