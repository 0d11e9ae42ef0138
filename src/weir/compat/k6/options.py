"""`options` of a k6 script: its executors as loads, its thresholds as objectives. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weir.compat.conversion import duration_of
from weir.compat.native import number_text
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, Load, OpenLoad, Profile, Session, highest
from weir.objective import objective

Say = Callable[[str, str], None]
"""Is told of an option that cannot be said: its key, and a sentence."""

_SHORTCUTS = ("duration", "iterations", "stages", "scenarios")
_MAX_DURATION = "10m"
_WITHOUT_EFFECT = {
    "vus", *_SHORTCUTS, "thresholds", "cloud", "ext", "tags", "systemTags", "summaryTrendStats", "summaryTimeUnit", "setupTimeout",
    "teardownTimeout", "discardResponseBodies", "throw", "noUsageReport", "insecureSkipTLSVerify", "noConnectionReuse",
    "noCookiesReset", "userAgent", "minIterationDuration", "batch", "batchPerHost", "maxRedirects",
}  # fmt: skip
"""Those that are read, and those that change nothing of what a server sees."""
_OF_EVERY_SCENARIO = {"executor", "exec", "env", "tags", "startTime", "gracefulStop", "options"}
_THRESHOLD = re.compile(r"\s*(p\(\s*([\d.]+)\s*\)|[a-z]+)\s*(<=|>=|<|>)\s*([\d.]+)\s*")
_FIGURES = {"avg": "mean", "med": "p50", "max": "max"}


@dataclass(frozen=True, slots=True)
class Shortcuts:
    """Flags of `k6 run` that take the place of options."""

    vus: int | None = None
    duration: str | None = None
    iterations: int | None = None
    stages: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How users come: a scenario of k6's."""

    function: str = "default"
    """What they run."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of its own."""
    duration_s: float
    users: Profile | None = None
    """Closed: how many there are."""
    rate: Profile | None = None
    """Open: iterations a second."""
    most: int = 1
    """Open: users who may be there at a time."""
    loops: int | None = None
    """Iterations of each user."""
    iterations: int | None = None
    """Of all users together."""

    def load(self, steps: int, pace_s: float | None) -> Load:
        """The load whose users do so many steps in an iteration."""
        if self.rate is not None:
            return OpenLoad(self.rate, self.most, session=None if steps == 1 else Session(steps))
        assert self.users is not None
        return ClosedLoad(self.users, loops=None if self.loops is None else self.loops * steps, pace_s=pace_s)


def execution_of(options: Mapping[str, Any], shortcuts: Shortcuts, only: str | None, say: Say) -> Execution:
    """How users come, by the options and the flags over them.

    Args:
        options: of the script.
        shortcuts: flags.
        only: the name of the one scenario that is wanted.
        say: is told of what weir cannot do.

    Raises:
        UsageError: a value is none that k6 takes.
    """
    chosen = dict(options)
    if shortcuts.duration or shortcuts.iterations or shortcuts.stages:
        chosen = {key: value for key, value in chosen.items() if key not in _SHORTCUTS}
        given = {"duration": shortcuts.duration, "iterations": shortcuts.iterations, "stages": list(shortcuts.stages) or None}
        chosen |= {key: value for key, value in given.items() if value is not None}
    if shortcuts.vus is not None:
        chosen["vus"] = shortcuts.vus
    for key in sorted(set(chosen) - _WITHOUT_EFFECT):
        say(f"options.{key}", "found an option that weir load does not have")
    scenarios = chosen.get("scenarios")
    if not scenarios:
        if only is not None:
            raise UsageError(f"--only: found {only!r}, but there are no options.scenarios")
        return _executor(_of_shortcuts(chosen), "options", say)
    if not isinstance(scenarios, dict) or not all(isinstance(one, dict) for one in scenarios.values()):
        raise UsageError("options.scenarios: expected scenarios by name")
    if only is not None and only not in scenarios:
        raise UsageError(f"--only: found {only!r}, expected one of options.scenarios: {', '.join(scenarios)}")
    name = only or next(iter(scenarios))
    if only is None and len(scenarios) > 1:
        others = ", ".join(list(scenarios)[1:])
        say("options.scenarios", f"found {len(scenarios)}, of which a load is one: --only NAME chooses it; without {others} it is {name}")
    return _executor(scenarios[name], f"options.scenarios.{name}", say)


def objectives_of(thresholds: Any, say: Say) -> list[str]:
    """What must hold, as `weir load --objective` takes it."""
    found = []
    for metric, conditions in thresholds.items() if isinstance(thresholds, dict) else ():
        for condition in conditions if isinstance(conditions, list) else [conditions]:
            key = f"options.thresholds.{metric}"
            if isinstance(condition, dict):
                if condition.get("abortOnFail"):
                    say(key, "found abortOnFail: weir load --abort-on 'p99>1s' ends a load early, by its last second")
                condition = condition.get("threshold")
            text = _objective(metric, condition) if isinstance(condition, str) else None
            if text is None:
                say(key, f"found {condition!r}: objectives are on http_req_duration, http_req_failed and the rate of http_reqs")
            else:
                found.append(text)
    return list(dict.fromkeys(found))


def _objective(metric: str, condition: str) -> str | None:
    match = _THRESHOLD.fullmatch(condition)
    if match is None:
        return None
    figure, quantile, comparison, limit = match.groups()
    try:
        amount = float(limit)
        match metric:
            case "http_req_duration" if quantile is not None:
                text = f"{'max' if float(quantile) == 100 else f'p{quantile}'}{comparison}{number_text(amount)}ms"
            case "http_req_duration" if figure in _FIGURES:
                text = f"{_FIGURES[figure]}{comparison}{number_text(amount)}ms"
            case "http_req_failed" if figure == "rate":
                text = f"errors{comparison}{number_text(round(amount * 100, 9))}%"
            case "http_reqs" if figure == "rate":
                text = f"throughput{comparison}{number_text(amount)}"
            case _:
                return None
        objective(text)
    except (ValueError, UsageError):
        return None
    return text


def _of_shortcuts(options: Mapping[str, Any]) -> dict[str, Any]:
    """The executor that k6 makes of options without scenarios."""
    vus = options.get("vus", 1)
    if options.get("stages"):
        return {"executor": "ramping-vus", "startVUs": vus, "stages": options["stages"]}
    if options.get("iterations"):
        most = options.get("duration", _MAX_DURATION)
        return {"executor": "shared-iterations", "vus": vus, "iterations": options["iterations"], "maxDuration": most}
    if options.get("duration"):
        return {"executor": "constant-vus", "vus": vus, "duration": options["duration"]}
    return {"executor": "shared-iterations", "vus": vus, "iterations": vus}


def _executor(scenario: Mapping[str, Any], where: str, say: Say) -> Execution:
    reader = _Reader(scenario, where)
    name = scenario.get("executor")
    environment = {str(key): str(value) for key, value in (scenario.get("env") or {}).items()}
    common: dict[str, Any] = {"function": scenario.get("exec", "default"), "environment": environment}
    match name:
        case "constant-vus":
            found = Execution(users=reader.count("vus", 1), duration_s=reader.seconds("duration"), **common)
        case "ramping-vus":
            stages = reader.stages(reader.number("startVUs", 1))
            found = Execution(users=stages, duration_s=stages[-1][0], **common)
        case "constant-arrival-rate":
            rate = reader.number("rate") / reader.seconds("timeUnit", "1s")
            found = Execution(rate=rate, most=reader.most(), duration_s=reader.seconds("duration"), **common)
        case "ramping-arrival-rate":
            unit_s = reader.seconds("timeUnit", "1s")
            stages = tuple((at_s, amount / unit_s) for at_s, amount in reader.stages(reader.number("startRate", 0)))
            found = Execution(rate=stages, most=reader.most(), duration_s=stages[-1][0], **common)
        case "per-vu-iterations":
            longest_s = reader.seconds("maxDuration", _MAX_DURATION)
            found = Execution(users=reader.count("vus", 1), loops=reader.count("iterations", 1), duration_s=longest_s, **common)
        case "shared-iterations":
            longest_s = reader.seconds("maxDuration", _MAX_DURATION)
            found = Execution(users=reader.count("vus", 1), iterations=reader.count("iterations", 1), duration_s=longest_s, **common)
        case _:
            raise UsageError(f"{where}.executor: found {name!r}, expected an executor such as constant-vus")
    for key in sorted(set(scenario) - _OF_EVERY_SCENARIO - reader.read):
        if key not in ("gracefulRampDown",):
            say(f"{where}.{key}", "found a key that is not read")
    highest_ = highest(found.users if found.users is not None else found.rate or 0.0)
    if highest_ <= 0 or found.duration_s <= 0:
        raise UsageError(f"{where}: found a load that is never above 0, expected users or a rate for some time")
    return found


class _Reader:
    """Values of a scenario, each with its key in messages."""

    def __init__(self, scenario: Mapping[str, Any], where: str) -> None:
        self._scenario = scenario
        self._where = where
        self.read: set[str] = set()

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise UsageError(f"{self._where}.{key}: found {value!r}, expected a number")
        return value

    def count(self, key: str, default: int | None = None) -> int:
        value = self.number(key, default)
        if value != int(value) or value < 1:
            raise UsageError(f"{self._where}.{key}: found {value!r}, expected a whole number above 0")
        return int(value)

    def seconds(self, key: str, default: str | None = None) -> float:
        value = self._get(key, default)
        found = value / 1000 if isinstance(value, int | float) else duration_of(value) if isinstance(value, str) else None
        if found is None or found <= 0:
            raise UsageError(f"{self._where}.{key}: found {value!r}, expected a duration such as '30s' or '1m30s'")
        return found

    def most(self) -> int:
        self.read |= {"preAllocatedVUs", "maxVUs"}
        return self.count("maxVUs" if "maxVUs" in self._scenario else "preAllocatedVUs", 1)

    def stages(self, start: float) -> tuple[tuple[float, float], ...]:
        stages = self._get("stages", None)
        if not isinstance(stages, list) or not stages:
            raise UsageError(f"{self._where}.stages: found {stages!r}, expected a list of stages")
        points = [(0.0, float(start))]
        for index, stage in enumerate(stages):
            if not isinstance(stage, dict):
                raise UsageError(f"{self._where}.stages.{index}: found {stage!r}, expected {{ duration: '30s', target: 10 }}")
            reader = _Reader(stage, f"{self._where}.stages.{index}")
            length_s = 0.0 if stage.get("duration") in ("0s", "0", 0) else reader.seconds("duration")
            points.append((round(points[-1][0] + length_s, 9), float(reader.number("target"))))
        return tuple(points)

    def _get(self, key: str, default: Any) -> Any:
        self.read.add(key)
        return self._scenario.get(key, default)
