"""How requests arrive: the two primitives of load, and the plan that the engine reads.

*Closed*: users who ask again when they were answered. *Open*: arrivals that do not wait for answers.
The plan's JSON is described in `docs/reference/engine.md`.
"""

import math
from base64 import b64encode
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal

PLAN_SCHEMA = 1
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
"""Those of HTTP that a plan may have."""
LONGEST_S = 604_800.0
"""The longest that a load may last."""
LONGEST_TIMEOUT_S = 3_600.0
"""The longest that an answer may be waited for."""

Point = tuple[float, float]
"""Seconds since the start, and a value."""
Profile = float | tuple[Point, ...]
"""A number, or points: linear between them, a step where two share a time, constant before the first and after the last."""
Arrivals = Literal["constant", "poisson"]
"""How arrivals follow one another: at even distances, or independently."""


@dataclass(frozen=True, slots=True)
class Think:
    """A pause between an answer and the next request: always the same where the two are equal, otherwise any between them as likely."""

    shortest_s: float
    longest_s: float

    @property
    def mean_s(self) -> float:
        """How long it is on average."""
        return (self.shortest_s + self.longest_s) / 2

    @property
    def label(self) -> str:
        """How the pause is named on screen."""
        if self.shortest_s == self.longest_s:
            return f"{self.shortest_s:g} s"
        return f"{self.shortest_s:g} to {self.longest_s:g} s"

    def to_plan(self) -> dict[str, Any]:
        """The plan's value of `think`."""
        if self.shortest_s == self.longest_s:
            return {"constant_s": self.shortest_s}
        return {"uniform_s": [self.shortest_s, self.longest_s]}


@dataclass(frozen=True, slots=True)
class ExponentialThink:
    """A pause from the exponential distribution with a mean."""

    mean_s: float

    @property
    def label(self) -> str:
        """How the pause is named on screen."""
        return f"{self.mean_s:g} s on average"

    def to_plan(self) -> dict[str, Any]:
        """The plan's value of `think`."""
        return {"exponential_s": self.mean_s}


ThinkTime = Think | ExponentialThink


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who arrives, asks `requests` times with a pause in between, and leaves."""

    requests: int
    think: ThinkTime | None = None

    def to_plan(self) -> dict[str, Any]:
        """The plan's value of `session`."""
        return {"requests": self.requests} | ({} if self.think is None else {"think": self.think.to_plan()})


@dataclass(frozen=True, slots=True)
class ClosedLoad:
    """Users who ask again when they were answered, each on a connection of its own."""

    users: Profile
    think: ThinkTime | None = None
    loops: int | None = None
    """Requests after which a user leaves."""
    pace_s: float | None = None
    """The least time from one request's intended start to the next one's."""

    @property
    def connections(self) -> int:
        """The most users there ever are."""
        return math.ceil(highest(self.users))

    @property
    def is_plain(self) -> bool:
        """Whether its users are there all the time and ask again at once."""
        return self == ClosedLoad(self.users) and not _varies(self.users)

    @property
    def label(self) -> str:
        """How the load is named on screen."""
        parts = [_connections(self.connections) if self.is_plain else _over_time(self.users, "users")]
        parts += [] if self.loops is None else [f"{self.loops} requests each"]
        parts += [] if self.think is None else [f"thinking {self.think.label}"]
        parts += [] if self.pace_s is None else [f"one in {self.pace_s:g} s each"]
        return ", ".join(parts)

    def to_plan(self) -> dict[str, Any]:
        """The plan's value of `load`."""
        if self.is_plain:
            return {"closed": {"connections": self.connections}}
        closed: dict[str, Any] = {"users": _profile_to_plan(self.users)}
        if self.think is not None:
            closed["think"] = self.think.to_plan()
        if self.loops is not None:
            closed["loops"] = self.loops
        if self.pace_s is not None:
            closed["pace_s"] = self.pace_s
        return {"closed": closed}


@dataclass(frozen=True, slots=True)
class OpenLoad:
    """`rate_rps` arrivals a second that wait for nobody, over at most `connections` connections."""

    rate_rps: Profile
    connections: int
    arrivals: Arrivals = "constant"
    session: Session | None = None
    """What arrives, if it is not a single request."""

    @property
    def label(self) -> str:
        """How the load is named on screen."""
        unit = "req/s" if self.session is None else "sessions/s"
        parts = [f"{_over_time(self.rate_rps, unit)} over {_connections(self.connections)}"]
        parts += ["Poisson arrivals"] if self.arrivals == "poisson" else []
        if self.session is not None:
            parts.append(f"{self.session.requests} requests each")
            parts += [] if self.session.think is None else [f"thinking {self.session.think.label}"]
        return ", ".join(parts)

    def to_plan(self) -> dict[str, Any]:
        """The plan's value of `load`."""
        opened: dict[str, Any] = {"rate_rps": _profile_to_plan(self.rate_rps), "connections": self.connections}
        if self.arrivals != "constant":
            opened["arrivals"] = self.arrivals
        if self.session is not None:
            opened["session"] = self.session.to_plan()
        return {"open": opened}


Load = ClosedLoad | OpenLoad


def highest(profile: Profile) -> float:
    """The highest value that a profile ever has."""
    return max(value for _, value in profile) if isinstance(profile, tuple) else profile


def value_at(profile: Profile, at_s: float) -> float:
    """A profile's value at a moment: linear between its points, a step where two share a time, constant outside of them.

    >>> value_at(((0.0, 100.0), (10.0, 200.0), (10.0, 50.0)), 5.0)
    150.0
    """
    if not isinstance(profile, tuple):
        return profile
    if at_s < profile[0][0]:
        return profile[0][1]
    for (start_s, low), (end_s, high) in pairwise(profile):
        if start_s <= at_s < end_s:
            return low + (high - low) * (at_s - start_s) / (end_s - start_s)
    return profile[-1][1]


def total(profile: Profile, until_s: float) -> float:
    """The area under a profile from its start to a moment: of a rate, how many arrive.

    >>> total(((0.0, 0.0), (10.0, 100.0)), 20.0)
    1500.0
    """
    if not isinstance(profile, tuple):
        return profile * until_s
    times = sorted({0.0, until_s, *(at_s for at_s, _ in profile if 0 < at_s < until_s)})
    # Just before a step the profile still has its earlier value.
    return sum((end - start) * (value_at(profile, start) + _value_before(profile, end)) / 2 for start, end in pairwise(times))


def _value_before(profile: tuple[Point, ...], at_s: float) -> float:
    if at_s <= profile[0][0]:
        return profile[0][1]
    for (start_s, low), (end_s, high) in pairwise(profile):
        if start_s < at_s <= end_s:
            return low + (high - low) * (at_s - start_s) / (end_s - start_s)
    return value_at(profile, at_s)


def constant_from_s(load: Load) -> float | None:
    """Since when a load is the same all the time: 0 of a constant one, the end of its ramp of one that has just a ramp; None of any other.

    >>> constant_from_s(ClosedLoad(((0.0, 0.0), (4.0, 200.0))))
    4.0
    """
    profile = load.users if isinstance(load, ClosedLoad) else load.rate_rps
    if not isinstance(profile, tuple):
        return 0.0
    return profile[1][0] if len(profile) == 2 else None


def _varies(profile: Profile) -> bool:
    return isinstance(profile, tuple)


def _connections(count: int) -> str:
    return "1 connection" if count == 1 else f"{count} connections"


def _over_time(profile: Profile, unit: str) -> str:
    if not isinstance(profile, tuple):
        return f"{profile:g} {unit}"
    return " → ".join(f"{value:g}" for _, value in profile) + f" {unit} in {profile[-1][0]:g} s"


def _profile_to_plan(profile: Profile) -> Any:
    return [list(point) for point in profile] if isinstance(profile, tuple) else profile


def load_from_plan(value: dict[str, Any]) -> Load:
    """The inverse of `to_plan`."""
    match value:
        case {"closed": {"connections": connections}}:
            return ClosedLoad(int(connections))
        case {"closed": dict(closed)}:
            return ClosedLoad(
                _profile_from_plan(closed["users"]), _think_from_plan(closed.get("think")), closed.get("loops"), closed.get("pace_s")
            )
        case {"open": dict(opened)}:
            session = opened.get("session")
            return OpenLoad(
                _profile_from_plan(opened["rate_rps"]),
                int(opened["connections"]),
                opened.get("arrivals", "constant"),
                None if session is None else Session(session["requests"], _think_from_plan(session.get("think"))),
            )
    raise ValueError(f"neither a closed nor an open load: {value!r}")


def _profile_from_plan(value: Any) -> Profile:
    return tuple((float(t_s), float(height)) for t_s, height in value) if isinstance(value, list) else float(value)


def _think_from_plan(value: dict[str, Any] | None) -> ThinkTime | None:
    match value:
        case None:
            return None
        case {"constant_s": pause_s}:
            return Think(float(pause_s), float(pause_s))
        case {"uniform_s": [shortest_s, longest_s]}:
            return Think(float(shortest_s), float(longest_s))
        case {"exponential_s": mean_s}:
            return ExponentialThink(float(mean_s))
    raise ValueError(f"not a think time: {value!r}")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request as the plan states it: what is sent, and where."""

    method: str
    target: str
    """The URL, or unix:/SOCKET:/PATH; its path and query are what is asked for."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    """Settings of TLS, for a target that begins with https://. Paths are of files in PEM, from the engine's folder."""

    ca: str | None = None
    """Authorities to trust instead of the system's."""
    certificate: str | None = None
    """What is shown to a server that asks for a certificate; needs `key`."""
    key: str | None = None
    insecure: bool = False
    """Whether any certificate of the server is good enough."""
    server_name: str | None = None
    """The name to ask for and to look for in the certificate, instead of the URL's host."""
    resumption: bool = True
    """Whether a connection may resume the session of one before it."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Everything the engine needs for one load."""

    request: Request
    load: Load
    duration_s: float
    timeout_s: float = 2.0
    interval_s: float = 0.1
    address: str | None = None
    """IP and port to connect to, instead of resolving the host of the target."""
    keep_alive: bool = True
    """Whether a connection carries one request after the other, or each request makes its own."""
    targets: tuple[str, ...] = ()
    """Where there are several: their URLs, one connection after the other, in place of the request's own."""
    pipeline: int = 1
    """How many requests a connection may carry unanswered."""
    local_addresses: tuple[str, ...] = ()
    """Addresses of this machine to connect from, in turn: each has some 28,000 ports to one server."""
    tls: Tls | None = None
    kernel_timestamps: bool = False
    """Whether an answer arrives when the kernel received it, and not when the generator read it."""
    expected_status: tuple[int, ...] | None = None
    """Statuses that are right; None: every status below 400."""
    threads: int = 1
    cpus: tuple[int, ...] = ()
    requests: int | None = None
    """How many requests the whole load has; None: as many as there is time for."""
    until_first_failure: bool = False
    """The first request that fails ends the load."""
    seed: int = 0
    """Where think times, Poisson arrivals and what is random in a scenario begin."""
    scenario: dict[str, Any] | None = None
    """What users do, instead of the one request, of which only the target holds then: `weir.Scenario.to_plan()`."""
    request_log: str | None = None
    """The path of a file that gets a record of each request, from the engine's folder; `weir.model.request_log` reads it."""
    part: tuple[int, int] | None = None
    """Where several engines share the load: the first of this engine's threads, from 0, and how many threads all of them have."""
    held: bool = False
    """Whether the load, its connections open, waits to be told when it begins."""

    def answered_to_the_end(self) -> "LoadPlan":
        """The same load, in which nobody asks any more from `duration_s` on, and which ends with the last answer to what was asked before.

        It takes longer by what that answer takes, `timeout_s` at most. Nothing of it is left in the server then, which a load that ends
        at its time leaves. A pipelined load stays as it is: its users cannot leave.
        """
        if self.pipeline > 1:
            return self
        ending = replace(self, duration_s=self.duration_s + self.timeout_s)
        match self.load:
            case ClosedLoad(users):
                points = users if isinstance(users, tuple) else ((0.0, users),)
                last = (self.duration_s, _value_before(points, self.duration_s))
                leaving = (*(point for point in points if point[0] < self.duration_s), last, (self.duration_s, 0.0))
                # Users who would come later only do not come at all: there is nothing to wait for.
                return replace(ending, load=replace(self.load, users=leaving)) if highest(leaving) > 0 else self
            case OpenLoad(rate_rps, session=session):
                due = math.floor(total(rate_rps, self.duration_s)) * (1 if session is None else session.requests)
                return replace(ending, requests=max(1, due if self.requests is None else min(due, self.requests)))

    @property
    def title(self) -> str:
        """The URLs, with spaces between."""
        return " ".join(self.targets or (self.request.target,))

    def to_json(self) -> dict[str, Any]:
        """The plan as the engine reads it."""
        request: dict[str, Any] = {"method": self.request.method, "headers": [list(pair) for pair in self.request.headers]}
        if self.request.body is not None:
            request["body"] = {"base64": b64encode(self.request.body).decode("ascii")}
        plan: dict[str, Any] = {
            "schema": PLAN_SCHEMA,
            "target": self.request.target,
            "request": request,
            "load": self.load.to_plan(),
            "duration_s": self.duration_s,
            "timeout_s": self.timeout_s,
            "interval_s": self.interval_s,
            "check": {"status": None if self.expected_status is None else list(self.expected_status)},
            "threads": self.threads,
            "cpus": list(self.cpus),
        }
        if self.address is not None:
            plan["address"] = self.address
        if self.requests is not None:
            plan["requests"] = self.requests
        if self.until_first_failure:
            plan["until"] = "first_failure"
        if self.scenario is not None:
            del plan["request"]
            plan["scenario"] = self.scenario
        if self.seed:
            plan["seed"] = self.seed
        if self.targets:
            del plan["target"]
            plan["targets"] = list(self.targets)
        if self.pipeline != 1:
            plan["pipeline"] = self.pipeline
        if not self.keep_alive:
            plan["keep_alive"] = False
        if self.local_addresses:
            plan["local_addresses"] = list(self.local_addresses)
        if self.tls is not None:
            plan["tls"] = asdict(self.tls)
        if self.kernel_timestamps:
            plan["kernel_timestamps"] = True
        if self.request_log is not None:
            plan["request_log"] = self.request_log
        if self.part is not None:
            plan["part"] = {"first": self.part[0], "of": self.part[1]}
        if self.held:
            plan["held"] = True
        return plan
