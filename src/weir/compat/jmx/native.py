"""A test plan as weir's own loads: for each thread group a scenario, and the `weir load` command line that runs it.

A timer waits before its request and weir's users pause after an answer, so a step has the pause of the one behind it. What a user waits
before its very first request is in the moment at which it comes.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from weir.compat.jmx.plan import Assertion, DataSet, Delay, Sampler, TestPlan, ThreadGroup
from weir.compat.jmx.sampler import ENCODED, form_encoded
from weir.compat.jmx.values import Placeholder, template
from weir.compat.native import command_of
from weir.model.load import ClosedLoad, LoadPlan, Point, Profile, Request, Tls
from weir.scenario import DEFAULT_CAPTURE_BYTES, Check, Csv, Pause, Scenario, Step

LONGEST_S = 7 * 86400.0
"""A load that its loops end, or nobody but Ctrl-C: the longest that the engine runs."""
_CAPTURE_BYTES = 10 * 1024 * 1024
"""JMeter looks at so much of an answer."""
_EDGE_POINTS = 8
_META = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
"""What means something in a regular expression of Rust's."""


@dataclass(frozen=True, slots=True)
class Native:
    """One thread group as a load of weir's own."""

    group: ThreadGroup
    scenario: Scenario
    """Files of feeders are named without a folder."""
    files: Mapping[str, str]
    """The content of each of them."""
    plan: LoadPlan
    """The load, without its scenario."""
    scenario_file: str
    """A name for the file of the scenario."""

    @property
    def scenario_toml(self) -> str:
        """The scenario, as `weir load --scenario` takes it."""
        return tomli_w.dumps(self.scenario.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True))

    @property
    def command(self) -> str:
        """The `weir load …` command line that makes this load, where the scenario and its files lie in the current folder."""
        return command_of(replace(self.plan, scenario={}), scenario_file=self.scenario_file)

    @property
    def users(self) -> Profile:
        """How many users have come by when."""
        assert isinstance(self.plan.load, ClosedLoad)
        return self.plan.load.users

    @property
    def begins_s(self) -> float:
        """When the first user asks."""
        return self.group.delay_s + self.group.samplers[0].delay.shortest_s

    def load_plan(self, folder: Path) -> LoadPlan:
        """The load with its scenario, whose files are in `folder`. Where it has a duration, all are answered who asked until then."""
        plan = replace(self.plan, scenario=self.scenario.to_plan(folder))
        return plan if self.group.duration_s is None else plan.answered_to_the_end()


def native_of(plan: TestPlan) -> tuple[Native, ...]:
    """The loads of a test plan, one for each of its thread groups."""
    taken: list[str] = []
    found = []
    for group in plan.groups:
        stem = re.sub(r"\W+", "-", group.name.lower()).strip("-") or "thread-group"
        file = next(name for number in range(1, len(taken) + 2) if (name := f"{stem}{number if number > 1 else ''}.toml") not in taken)
        taken.append(file)
        found.append(_native(group, file))
    return tuple(found)


def _native(group: ThreadGroup, scenario_file: str) -> Native:
    samplers = group.samplers
    names = _apart([sampler.name for sampler in samplers])
    # The pause after a request is that before the next one; behind the last comes the first again.
    delays = [sampler.delay for sampler in (*samplers[1:], samplers[0])]
    steps = [_step(*step) for step in zip(names, samplers, delays, strict=True)]
    wanted = list(_columns(group.samplers))
    used = [data_set for data_set in group.data_sets.values() if any(name == data_set.name for name, _ in wanted)]
    looks_at_body = any(not assertion.of_status for sampler in samplers for assertion in sampler.assertions)
    scenario = Scenario(
        steps=steps,
        feeders={one.name: Csv(f"{one.name}.csv", at_end="stop" if one.stops else "wrap") for one in used},
        cookies=group.cookies,
        on_failure="leave" if group.on_error == "stop thread" else "continue",
        capture_bytes=_CAPTURE_BYTES if looks_at_body else DEFAULT_CAPTURE_BYTES,
    )
    load_plan = LoadPlan(
        request=Request("GET", samplers[0].origin),
        load=ClosedLoad(_users(group), loops=None if group.loops is None else group.loops * len(samplers)),
        duration_s=LONGEST_S if group.duration_s is None else group.delay_s + group.duration_s,
        timeout_s=group.timeout_s,
        keep_alive=group.keep_alive,
        # JMeter trusts every server.
        tls=Tls(insecure=True) if samplers[0].secure else None,
    )
    files = {f"{one.name}.csv": _csv(one, [column for name, column in wanted if name == one.name]) for one in used}
    return Native(group, scenario, files, load_plan, scenario_file)


def _users(group: ThreadGroup) -> Profile:
    """Users over time. Thread k of n starts at k·ramp ÷ n and first waits for its timers; a random wait spreads the beginnings evenly."""
    first = group.samplers[0].delay
    base_s, count = group.delay_s + first.shortest_s, float(group.threads)
    short_s, long_s = sorted((group.ramp_s, first.longest_s - first.shortest_s))
    if long_s == 0 and base_s == 0:
        return count
    before: list[Point] = [(0.0, 0.0)] if base_s else []
    if short_s == 0:
        return (*before, (base_s, 0.0), (base_s + long_s, count))
    # The sum of two evenly spread times: its share grows with the square at first, and shrinks so in the end.
    rise = [short_s * step / _EDGE_POINTS for step in range(_EDGE_POINTS + 1)]
    shares = [(t_s, t_s * t_s / (2 * short_s * long_s)) for t_s in rise]
    mirrored = [(short_s + long_s - t_s, 1 - share) for t_s, share in reversed(shares)]
    return (*before, *((base_s + t_s, count * share) for t_s, share in [*shares, *mirrored]))


def _step(name: str, sampler: Sampler, delay: Delay) -> Step:
    return Step(
        name=name,
        method=sampler.method,
        path=template(sampler.path),
        headers={name: template(value) for name, value in sampler.headers},
        body=None if sampler.body is None else template(sampler.body),
        think=_pause(delay),
        check=Check.model_validate(_check(sampler)),
    )


def _pause(delay: Delay) -> Pause | None:
    if delay.longest_s == 0:
        return None
    if delay.shortest_s == delay.longest_s:
        return Pause(constant_s=delay.shortest_s)
    return Pause(uniform_s=[delay.shortest_s, delay.longest_s])


def _apart(names: Iterable[str]) -> list[str]:
    """Names that differ: steps are told apart by them."""
    # Of a loop there may be thousands of one name.
    found: dict[str, None] = {}
    used: Counter[str] = Counter()
    for name in names:
        apart = name
        while apart in found:
            used[name] += 1
            apart = f"{name} #{used[name] + 1}"
        found[apart] = None
    return list(found)


def _columns(samplers: Sequence[Sampler]) -> Iterable[tuple[str, str]]:
    """The columns of data sets that requests have values of, each once."""
    texts = [text for one in samplers for text in (one.path, one.body or (), *(value for _, value in one.headers))]
    return dict.fromkeys(piece.column for text in texts for piece in text if isinstance(piece, Placeholder) and piece.column is not None)


def _csv(data_set: DataSet, columns: Sequence[str]) -> str:
    """The columns of a data set as a feeder reads them."""
    places = [(data_set.columns.index(column.removesuffix(ENCODED)), column.endswith(ENCODED)) for column in columns]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows([form_encoded(row[at]) if is_encoded else row[at] for at, is_encoded in places] for row in data_set.rows)
    return text.getvalue()


def _check(sampler: Sampler) -> dict[str, Any]:
    """What the assertions of a sampler ask of its answer."""
    check: dict[str, Any] = {}
    of_body = [assertion for assertion in sampler.assertions if not assertion.of_status]
    matches = [pattern for assertion in of_body if not assertion.is_denied for pattern in _patterns(assertion)]
    lacks = [pattern for assertion in of_body if assertion.is_denied for pattern in _patterns(assertion)]
    if matches:
        check["body_matches"] = matches
    if lacks:
        check["body_lacks"] = lacks
    if sampler.statuses is not None:
        check["status"] = list(sampler.statuses)
    return check


def _patterns(assertion: Assertion) -> list[str]:
    """Regular expressions of which each is to be found in the body, or none if the assertion denies them."""
    patterns = []
    for text in assertion.texts:
        plain = _META.sub(r"\\\g<0>", text)
        match assertion.asked:
            case "substring":
                patterns.append(plain)
            case "equals":
                patterns.append(rf"\A(?:{plain})\z")
            case "contains":
                patterns.append(text)
            case "matches":
                patterns.append(rf"\A(?:{text})\z")
    return ["|".join(f"(?:{pattern})" for pattern in patterns)] if assertion.any_of else patterns
