"""Converts a test plan to weir loads: each thread group becomes a scenario and a `weir load` command line.

A JMeter timer waits before a request, but weir's users pause after a response. So the wait before a request becomes the
pause of the previous step. The wait before a user's first request delays the start of the user.
"""

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weir.compat.jmx.references import Placeholder, write_template
from weir.compat.jmx.sampler import encode_column
from weir.compat.jmx.test_plan import Assertion, DataSet, ExactPlan, Sampler, ThreadGroup
from weir.load_spec import LoadSpec, choose_user_settings
from weir.model.load import LONGEST_S, ClosedLoad, LoadPlan, Point, Profile, Think
from weir.scenario import DEFAULT_CAPTURE_BYTES, Check, Csv, Pause, Scenario, Step

_CAPTURE_BYTES = 10 * 1024 * 1024
"""JMeter checks at most this number of bytes of a response."""
_EDGE_POINTS = 8
_META = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
"""The special characters in Rust's regular expressions."""
_DOLLAR = re.compile(r"\\.|\[(?:\\.|[^\]])*\]|(\$)", re.DOTALL)
"""Matches an unescaped $ outside a character class, as group 1."""


@dataclass(frozen=True, slots=True)
class NativeLoad:
    """One thread group as a weir load."""

    group: ThreadGroup
    scenario: Scenario
    """The scenario. File names of feeders have no folder."""
    files: Mapping[str, str]
    """The content of the feeders' CSV files, by file name."""
    spec: LoadSpec
    """The load, without its scenario."""
    scenario_file: str

    @property
    def command(self) -> str:
        """The `weir load` command line of this load. It must run in the folder of the scenario file and the CSV files."""
        return replace(self.spec, scenario={}, scenario_file=self.scenario_file).to_command()

    @property
    def plan(self) -> LoadPlan:
        """The plan of the load, without its scenario."""
        return self.spec.to_plan()

    @property
    def users(self) -> Profile:
        assert isinstance(self.plan.load, ClosedLoad)
        return self.plan.load.users

    @property
    def begins_s(self) -> float:
        """Seconds from the load's start to the first request."""
        return self.group.delay_s + self.group.samplers[0].delay.shortest_s

    @property
    def mixes_redirects(self) -> bool:
        """Whether JMeter would follow the redirects of some requests, but not of all."""
        return len({sampler.follows_redirects for sampler in self.group.samplers}) > 1

    def load_plan(self, folder: Path) -> LoadPlan:
        """Returns the plan of the load, with the scenario. `folder` contains the scenario's CSV files. At the end of
        the group's duration, the load waits for outstanding responses."""
        plan = replace(self.plan, scenario=self.scenario.to_plan(folder))
        return plan if self.group.duration_s is None else plan.answered_to_the_end()


def list_native_loads(plan: ExactPlan) -> list[NativeLoad]:
    """Returns the loads of a test plan, one for each thread group."""
    stems = [re.sub(r"\W+", "-", group.name.lower()).strip("-") or "thread-group" for group in plan.groups]
    names = _make_distinct(stems, "{}{}")
    return [_convert(group, f"{name}.toml") for group, name in zip(plan.groups, names, strict=True)]


def _convert(group: ThreadGroup, scenario_file: str) -> NativeLoad:
    samplers = group.samplers
    names = _make_distinct([sampler.name for sampler in samplers], "{} #{}")
    # The pause after a request is the wait before the next request. The first request follows the last request.
    delays = [sampler.delay for sampler in (*samplers[1:], samplers[0])]
    columns = _list_columns(samplers)
    used = [data_set for data_set in group.data_sets if data_set.name in columns]
    checks_body = any(not assertion.is_for_status for sampler in samplers for assertion in sampler.assertions)
    scenario = Scenario(
        steps=[_write_step(*step) for step in zip(names, samplers, delays, strict=True)],
        feeders={one.name: Csv(f"{one.name}.csv") for one in used},
        cookies=group.cookies,
        on_failure="leave" if group.on_error == "stop thread" else "continue",
        capture_bytes=_CAPTURE_BYTES if checks_body else DEFAULT_CAPTURE_BYTES,
    )
    spec = LoadSpec(
        urls=(samplers[0].origin,),
        **choose_user_settings(_count_users(group)),
        loops=None if group.loops is None else group.loops * len(samplers),
        duration_s=LONGEST_S if group.duration_s is None else group.delay_s + group.duration_s,
        timeout_s=group.timeout_s,
        keep_alive=group.keep_alive,
        # A sample fails if the server closes its connection.
        retry=False,
        # JMeter trusts every certificate.
        tls_insecure=samplers[0].origin.startswith("https:"),
    )
    files = {f"{one.name}.csv": _write_csv(one, list(columns[one.name])) for one in used}
    return NativeLoad(group, scenario, files, spec, scenario_file)


def _count_users(group: ThreadGroup) -> Profile:
    """Returns the number of users over time. Thread k of n starts at k·ramp ÷ n. Timers then delay the thread's first
    request. The distribution of random delays is uniform."""
    first = group.samplers[0].delay
    base_s, count = group.delay_s + first.shortest_s, float(group.threads)
    short_s, long_s = sorted((group.ramp_s, first.longest_s - first.shortest_s))
    if long_s == 0 and base_s == 0:
        return count
    before: list[Point] = [(0.0, 0.0)] if base_s else []
    if short_s == 0:
        return (*before, (base_s, 0.0), (base_s + long_s, count))
    # The sum of two uniform times has a quadratic start, a linear part and a mirrored quadratic end.
    rise = [short_s * step / _EDGE_POINTS for step in range(_EDGE_POINTS + 1)]
    shares = [(t_s, t_s * t_s / (2 * short_s * long_s)) for t_s in rise]
    mirrored = [(short_s + long_s - t_s, 1 - share) for t_s, share in reversed(shares)]
    return (*before, *((base_s + t_s, count * share) for t_s, share in [*shares, *mirrored]))


def _write_step(name: str, sampler: Sampler, delay: Think) -> Step:
    about_body = [assertion for assertion in sampler.assertions if not assertion.is_for_status]
    return Step(
        name=name,
        method=sampler.method,
        path=write_template(sampler.path),
        headers={name: write_template(value) for name, value in sampler.headers},
        body=None if sampler.body is None else write_template(sampler.body),
        think=Pause(**delay.to_plan()) if delay.longest_s else None,
        check=Check(
            status=None if sampler.statuses is None else list(sampler.statuses),
            body_matches=[pattern for one in about_body if not one.is_negated for pattern in _list_patterns(one)],
            body_lacks=[pattern for one in about_body if one.is_negated for pattern in _list_patterns(one)],
        ),
    )


def _list_patterns(assertion: Assertion) -> list[str]:
    """Returns an assertion's regular expressions. The body must match all, or none if the assertion is negated."""
    is_text, is_whole = assertion.comparison in ("substring", "equals"), assertion.comparison in ("equals", "matches")
    # For JMeter, $ also matches before a newline at the very end of the body.
    end = r"\z" if is_whole else r"\n?\z"
    patterns = [
        _META.sub(r"\\\g<0>", text) if is_text else _DOLLAR.sub(lambda found: end if found[1] else found[0], text)
        for text in assertion.texts
    ]
    patterns = [rf"\A(?:{pattern})\z" if is_whole else pattern for pattern in patterns]
    return ["|".join(f"(?:{pattern})" for pattern in patterns)] if assertion.any_is_enough else patterns


def _make_distinct(names: Iterable[str], form: str) -> list[str]:
    """Returns all names. Appends a number to each repeated name, because steps and files need distinct names."""
    # A loop may repeat the same name thousands of times.
    found: dict[str, None] = {}
    used: Counter[str] = Counter()
    for name in names:
        distinct = name
        while distinct in found:
            used[name] += 1
            distinct = form.format(name, used[name] + 1)
        found[distinct] = None
    return list(found)


def _list_columns(samplers: Sequence[Sampler]) -> dict[str, dict[str, None]]:
    """Returns the names of the columns in the requests, by data set."""
    columns: dict[str, dict[str, None]] = defaultdict(dict)
    texts = [text for one in samplers for text in (one.path, one.body or (), *(value for _, value in one.headers))]
    for piece in (piece for text in texts for piece in text):
        if isinstance(piece, Placeholder) and piece.column is not None:
            data_set, column = piece.column
            columns[data_set][column] = None
    return columns


def _write_csv(data_set: DataSet, columns: Sequence[str]) -> str:
    """Returns a feeder's CSV file with some columns of a data set."""
    values = [data_set.list_values(re.sub(" encoded( again)?$", "", column)) for column in columns]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    for row in zip(*values, strict=True):
        writer.writerow(encode_column(*pair) for pair in zip(columns, row, strict=True))
    return text.getvalue()
