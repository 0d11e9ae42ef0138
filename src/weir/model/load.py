"""The two kinds of load, and the plan that the engine reads. In a *closed* load, each user sends the next request after
the response. In an *open* load, arrivals do not wait for responses. `docs/reference/engine.md` describes the plan's
JSON."""

import math
from base64 import b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

PLAN_SCHEMA = 1
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
METHODS: tuple[str, ...] = get_args(Method)
"""The HTTP methods that a plan may have."""
LONGEST_S = 604_800.0
LONGEST_TIMEOUT_S = 3_600.0

Point = tuple[float, float]
"""A time in seconds since the start of the load, and the value of the profile at this time."""
Profile = float | tuple[Point, ...]
"""A constant, or points over time. The value is linear between points, and constant before the first and after the last
point. Two points with the same time are a step."""
Arrivals = Literal["constant", "poisson"]
"""`constant`: arrivals come at equal intervals. `poisson`: arrivals come at independent random times."""


@dataclass(frozen=True, slots=True)
class Think:
    """A pause between a response and the next request: uniform between two lengths, or constant if both are equal."""

    shortest_s: float
    longest_s: float

    @property
    def mean_s(self) -> float:
        return (self.shortest_s + self.longest_s) / 2

    @property
    def label(self) -> str:
        if self.shortest_s == self.longest_s:
            return f"{self.shortest_s:g} s"
        return f"{self.shortest_s:g} to {self.longest_s:g} s"

    def to_plan(self) -> dict[str, Any]:
        if self.shortest_s == self.longest_s:
            return {"constant_s": self.shortest_s}
        return {"uniform_s": [self.shortest_s, self.longest_s]}


@dataclass(frozen=True, slots=True)
class ExponentialThink:
    """A random pause with an exponential distribution and the mean `mean_s`."""

    mean_s: float

    @property
    def label(self) -> str:
        return f"{self.mean_s:g} s on average"

    def to_plan(self) -> dict[str, Any]:
        return {"exponential_s": self.mean_s}


ThinkTime = Think | ExponentialThink


@dataclass(frozen=True, slots=True)
class Session:
    """One arrival of an open load: a user who sends `requests` requests with pauses between them, and then leaves."""

    requests: int
    think: ThinkTime | None = None

    def to_plan(self) -> dict[str, Any]:
        return {"requests": self.requests} | ({} if self.think is None else {"think": self.think.to_plan()})


@dataclass(frozen=True, slots=True)
class ClosedLoad:
    """Closed-loop users, each on its own connection: a user sends the next request after the response."""

    users: Profile
    think: ThinkTime | None = None
    requests_per_user: int | None = None
    """Number of requests after which a user leaves."""
    pace_s: float | None = None
    """Minimum time from the intended start of a user's request to the intended start of the user's next request."""
    has_pauses: bool = field(default=False, compare=False)
    """Whether a scenario or a script contains pauses. Two loads that differ only in this field are equal."""

    @property
    def limits_throughput(self) -> bool:
        """Whether pauses limit the throughput. A faster server may then show the same throughput."""
        return self.think is not None or self.pace_s is not None or self.has_pauses

    @property
    def connections(self) -> int:
        """The maximum number of users."""
        return math.ceil(highest(self.users))

    @property
    def is_plain(self) -> bool:
        """Whether the number of users is constant, and each user sends the next request right after a response."""
        return self == ClosedLoad(self.users) and not isinstance(self.users, tuple)

    @property
    def label(self) -> str:
        parts = [_describe_connections(self.connections) if self.is_plain else _describe_profile(self.users, "users")]
        parts += [] if self.requests_per_user is None else [f"{self.requests_per_user} requests each"]
        parts += [] if self.think is None else [f"thinking {self.think.label}"]
        parts += [] if self.pace_s is None else [f"one request in {self.pace_s:g} s each"]
        parts += ["with pauses"] if self.has_pauses else []
        return ", ".join(parts)

    def to_plan(self) -> dict[str, Any]:
        if self.is_plain:
            return {"closed": {"connections": self.connections}}
        think = self.think and self.think.to_plan()
        given = {
            "users": _profile_to_plan(self.users),
            "think": think,
            "loops": self.requests_per_user,
            "pace_s": self.pace_s,
        }
        return {"closed": {key: value for key, value in given.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class OpenLoad:
    """`rate_rps` arrivals per second over at most `connections` connections; arrivals do not wait for responses."""

    rate_rps: Profile
    connections: int
    arrivals: Arrivals = "constant"
    session: Session | None = None
    """The requests of each arrival. None if each arrival is a single request."""
    limits_throughput: ClassVar[bool] = True
    """Whether the load limits the throughput. A faster server may then show the same throughput."""

    @property
    def label(self) -> str:
        unit = "req/s" if self.session is None else "sessions/s"
        parts = [f"{_describe_profile(self.rate_rps, unit)} over {_describe_connections(self.connections)}"]
        parts += ["Poisson arrivals"] if self.arrivals == "poisson" else []
        if self.session is not None:
            parts.append(f"{self.session.requests} requests each")
            parts += [] if self.session.think is None else [f"thinking {self.session.think.label}"]
        return ", ".join(parts)

    def to_plan(self) -> dict[str, Any]:
        opened: dict[str, Any] = {"rate_rps": _profile_to_plan(self.rate_rps), "connections": self.connections}
        if self.arrivals != "constant":
            opened["arrivals"] = self.arrivals
        if self.session is not None:
            opened["session"] = self.session.to_plan()
        return {"open": opened}


Load = ClosedLoad | OpenLoad


def highest(profile: Profile) -> float:
    """Returns the maximum value of a profile."""
    return max(value for _, value in profile) if isinstance(profile, tuple) else profile


def value_at(profile: Profile, at_s: float, *, before_step: bool = False) -> float:
    """Returns the value of a profile at a moment. With `before_step`: the value before a step at this moment.

    >>> value_at(((0.0, 100.0), (10.0, 200.0), (10.0, 50.0)), 5.0)
    150.0
    """
    if not isinstance(profile, tuple):
        return profile
    find = bisect_left if before_step else bisect_right
    after = find(profile, at_s, key=lambda point: point[0])
    if after in (0, len(profile)):
        return profile[max(0, after - 1)][1]
    (start_s, low), (end_s, high) = profile[after - 1 : after + 1]
    return low + (high - low) * (at_s - start_s) / (end_s - start_s)


def total(profile: Profile, until_s: float) -> float:
    """Returns the area under a profile from time 0 to `until_s`. For a rate, the area is the number of arrivals.

    >>> total(((0.0, 0.0), (10.0, 100.0)), 20.0)
    1500.0
    """
    if not isinstance(profile, tuple):
        return profile * until_s
    times = sorted({0.0, until_s, *(at_s for at_s, _ in profile if 0 < at_s < until_s)})
    spans = pairwise(times)
    return sum(
        (end - start) * (value_at(profile, start) + value_at(profile, end, before_step=True)) / 2
        for start, end in spans
    )


def constant_from_s(load: Load) -> float | None:
    """Returns the time at which a load becomes constant: 0, or the end of its only ramp. None for other loads.

    >>> constant_from_s(ClosedLoad(((0.0, 0.0), (4.0, 200.0))))
    4.0
    """
    profile = load.users if isinstance(load, ClosedLoad) else load.rate_rps
    if not isinstance(profile, tuple):
        return 0.0
    return profile[1][0] if len(profile) == 2 else None


def _describe_connections(count: int) -> str:
    return "1 connection" if count == 1 else f"{count} connections"


def _describe_profile(profile: Profile, unit: str) -> str:
    if not isinstance(profile, tuple):
        return f"{profile:g} {unit}"
    return " → ".join(f"{value:g}" for _, value in profile) + f" {unit} in {profile[-1][0]:g} s"


def _profile_to_plan(profile: Profile) -> Any:
    return [list(point) for point in profile] if isinstance(profile, tuple) else profile


def store_load(load: Load) -> dict[str, Any]:
    """Returns the load as in the engine's plan. Adds `pauses` if the users' requests contain pauses."""
    return load.to_plan() | ({"pauses": True} if isinstance(load, ClosedLoad) and load.has_pauses else {})


def load_from_plan(value: dict[str, Any]) -> Load:
    """Returns the load for the key `load` of a plan. Inverse of `to_plan` and of `store_load`."""
    match value:
        case {"closed": {"connections": connections}}:
            return ClosedLoad(int(connections), has_pauses=value.get("pauses", False))
        case {"closed": dict(closed)}:
            users, think = _profile_from_plan(closed["users"]), _think_from_plan(closed.get("think"))
            pauses = value.get("pauses", False)
            return ClosedLoad(users, think, closed.get("loops"), closed.get("pace_s"), has_pauses=pauses)
        case {"open": dict(opened)}:
            found = opened.get("session")
            session = None if found is None else Session(found["requests"], _think_from_plan(found.get("think")))
            rate_rps, arrivals = _profile_from_plan(opened["rate_rps"]), opened.get("arrivals", "constant")
            return OpenLoad(rate_rps, int(opened["connections"]), arrivals, session)
    raise ValueError(f"found {value!r}, expected a closed or an open load")


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
    raise ValueError(f"found {value!r}, expected a think time")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request of the plan."""

    method: str
    target: str
    """The URL, or unix:/SOCKET:/PATH."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS settings of an https:// target. Paths of PEM files are relative to the engine's working directory."""

    ca: str | None = None
    """PEM file of the authorities that the client trusts. None: the client trusts the system's authorities."""
    certificate: str | None = None
    """PEM file of the client certificate for a server that requests a certificate. Needs `key`."""
    key: str | None = None
    insecure: bool = False
    """Whether the client accepts any certificate of the server."""
    server_name: str | None = None
    """Server name for the TLS handshake and the certificate check. None: the host of the URL."""
    resumption: bool = True
    """Whether a connection may resume the TLS session of an earlier connection."""


def _plan_key(default: Any, key: str, write: Callable[[Any], Any] = lambda value: value) -> Any:
    """Declares a field of the plan and the field's key in the JSON. The JSON omits the key of a default value."""
    return field(default=default, metadata={"key": key, "write": write})


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """All settings of one load that the engine needs."""

    request: Request
    load: Load
    duration_s: float
    timeout_s: float = 2.0
    interval_s: float = 0.1
    address: str | None = _plan_key(None, "address")
    """IP address and port to which the generator connects. None: the host and port of the target."""
    keep_alive: bool = _plan_key(True, "keep_alive")
    """Whether a connection carries many requests. Otherwise each request opens a new connection."""
    retry: bool = _plan_key(True, "retry")
    """Whether the generator sends a request once more if its reused connection ends before a response."""
    all_addresses: bool = _plan_key(False, "all_addresses")
    """Whether connections go to all addresses of the target's host, in turn. Otherwise to the first working address."""
    targets: tuple[str, ...] = _plan_key((), "targets", list)
    """URLs of several targets, in place of the request's URL. Connections take the targets in turn."""
    pipeline: int = _plan_key(1, "pipeline")
    """Maximum number of requests in flight on a connection."""
    local_addresses: tuple[str, ...] = _plan_key((), "local_addresses", list)
    """Addresses of this machine that connections use in turn. Each address has about 28,000 ports to one server."""
    tls: Tls | None = _plan_key(None, "tls", asdict)
    kernel_timestamps: bool = _plan_key(False, "kernel_timestamps")
    """Whether response times end at the kernel's receipt of the response. False: they end at the generator's read."""
    expected_status: tuple[int, ...] | None = None
    """Statuses of correct responses. None means every status below 400."""
    threads: int = 1
    cpus: tuple[int, ...] = ()
    requests: int | None = _plan_key(None, "requests")
    """Number of requests of the whole load. None if the duration ends the load."""
    until_first_failure: bool = _plan_key(False, "until", lambda _: "first_failure")
    """Whether the first failed request ends the load."""
    seed: int = _plan_key(0, "seed")
    """Seed of all random values: think times, Poisson arrivals and random values in a scenario."""
    scenario: dict[str, Any] | None = _plan_key(None, "scenario")
    """The requests of users, from `weir.Scenario.to_plan()`. The engine then uses only the target of `request`."""
    script: tuple[str, ...] = ()
    """The path and arguments of another tool's script. Empty: weir's engine makes the load from this plan."""
    request_log: str | None = _plan_key(None, "request_log")
    """Path of the request log, relative to the engine's working directory. See `weir.model.request_log`."""
    part: tuple[int, int] | None = _plan_key(None, "part", lambda part: {"first": part[0], "of": part[1]})
    """If several engines share the load: the index of this engine's first thread, and the number of all threads."""
    held: bool = _plan_key(False, "held")
    """Whether the engine opens the connections and then waits until weir sends the start time."""
    shares_cpu: bool = _plan_key(False, "shares_cpu")
    """Whether weir needs CPU time during the load, for the live page. On a single CPU, an open load then sleeps."""

    def answered_to_the_end(self) -> "LoadPlan":
        """Returns the same load, but the generator waits for the last responses. The generator sends no new request
        after `duration_s`. The load ends with the last response, at most `timeout_s` later: so the server has no
        unfinished request. A pipelined load stays unchanged, because its users cannot stop before the load ends."""
        if self.pipeline > 1:
            return self
        ending = replace(self, duration_s=self.duration_s + self.timeout_s)
        match self.load:
            case ClosedLoad(users):
                points = users if isinstance(users, tuple) else ((0.0, users),)
                last = (self.duration_s, value_at(points, self.duration_s, before_step=True))
                leaving = (*(point for point in points if point[0] < self.duration_s), last, (self.duration_s, 0.0))
                # If the load never has a user, no response can be missing.
                return replace(ending, load=replace(self.load, users=leaving)) if highest(leaving) > 0 else self
            case OpenLoad(rate_rps, session=session):
                due = math.floor(total(rate_rps, self.duration_s)) * (1 if session is None else session.requests)
                return replace(ending, requests=max(1, due if self.requests is None else min(due, self.requests)))

    @property
    def ends_by_itself(self) -> bool:
        """Whether a condition other than `duration_s` can end the load."""
        users_leave = isinstance(self.load, ClosedLoad) and self.load.requests_per_user is not None
        return self.requests is not None or self.until_first_failure or users_leave

    @property
    def title(self) -> str:
        return " ".join(self.targets or (self.request.target,))

    def to_json(self) -> dict[str, Any]:
        headers = [list(pair) for pair in self.request.headers]
        request: dict[str, Any] = {"method": self.request.method, "headers": headers}
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
        for one in fields(self):
            value = getattr(self, one.name)
            if one.metadata and value != one.default:
                plan[one.metadata["key"]] = one.metadata["write"](value)
        if self.scenario is not None:
            del plan["request"]
        if self.targets:
            del plan["target"]
        return plan
