"""What was asked of a load, at the prompt or in a study, made into a load: which settings go together and which do not.

Pure: values in, a load out. Messages name a setting as the one who asked knows it: a flag, or a key of the study file.
"""

from dataclasses import dataclass

from weir.model.errors import UsageError
from weir.model.load import Arrivals, ClosedLoad, Load, OpenLoad, Profile, Session, ThinkTime

CONNECTIONS = 64
"""Where nobody says how many."""
_DEEPEST = 1024
_MOST_AT_A_TIME = 1_000_000


@dataclass(frozen=True, slots=True)
class Names:
    """What the settings are called where they were made."""

    connections: str
    rate: str
    arrivals: str
    users: str
    ramp: str
    loops: str
    think: str
    pace: str
    pipeline: str
    no_keep_alive: str
    scenario: str
    hint: str
    """The next thing to try."""


FLAGS = Names(
    connections="-c/--connections", rate="--rate", arrivals="--poisson", users="--users", ramp="--ramp", loops="--loops",
    think="--think", pace="--pace", pipeline="--pipeline", no_keep_alive="--no-keepalive", scenario="--scenario", hint="weir load --help",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AskedLoad:
    """The settings as they were made; None: not made."""

    connections: int | None = None
    rate_rps: Profile | None = None
    arrivals: Arrivals = "constant"
    users: Profile | None = None
    ramp_s: float | None = None
    loops: int | None = None
    think: ThinkTime | None = None
    pace_s: float | None = None


def load_of(asked: AskedLoad, names: Names) -> Load:
    """The load that is asked for.

    Raises:
        UsageError: settings contradict each other.
    """
    if asked.rate_rps is not None:
        return _open(asked, asked.rate_rps, names)
    if asked.arrivals != "constant":
        raise UsageError(f"{names.arrivals}: found without {names.rate}, expected arrivals at a rate", hint=names.hint)
    return ClosedLoad(_users(asked, names), asked.think, asked.loops, asked.pace_s)


def pipelining(depth: int, load: Load, names: Names, *, keep_alive: bool, has_scenario: bool) -> int:
    """How many requests a connection may carry unanswered, where that goes together with the load.

    Raises:
        UsageError: the number is out of range, or requests have to wait for the answers before them.
    """
    if not 1 <= depth <= _DEEPEST:
        raise UsageError(f"{names.pipeline}: found {depth}, expected a number from 1 to {_DEEPEST}")
    if depth == 1:
        return depth
    waits = {
        names.no_keep_alive: not keep_alive,
        names.scenario: has_scenario,
        f"users over time, {names.think}, {names.loops} or {names.pace}": isinstance(load, ClosedLoad) and not load.is_plain,
        names.loops: isinstance(load, OpenLoad) and load.session is not None,
    }
    if found := [name for name, given in waits.items() if given]:
        raise UsageError(
            f"{names.pipeline}: found {depth} beside {found[0]}, expected connections that are kept and ask again without a pause"
        )
    if load.connections * depth > _MOST_AT_A_TIME:
        each = f"{depth} on each of {load.connections} connections"
        raise UsageError(f"{names.pipeline}: found {each}, expected at most {_MOST_AT_A_TIME:,} requests at a time")
    return depth


def _open(asked: AskedLoad, rate_rps: Profile, names: Names) -> OpenLoad:
    for name, given in ((names.users, asked.users), (names.ramp, asked.ramp_s), (names.pace, asked.pace_s)):
        if given is not None:
            raise UsageError(f"{name}: found beside {names.rate}, expected one of them: arrivals at a rate wait for nobody")
    if asked.think is not None and asked.loops is None:
        raise UsageError(
            f"{names.think}: found beside {names.rate} without {names.loops}, expected how many requests each arrival has",
            hint=f"add {names.loops}",
        )
    session = None if asked.loops is None else Session(asked.loops, asked.think)
    return OpenLoad(rate_rps, asked.connections or CONNECTIONS, asked.arrivals, session)


def _users(asked: AskedLoad, names: Names) -> Profile:
    if asked.users is None:
        if asked.ramp_s is not None:
            raise UsageError(f"{names.ramp}: found without {names.users}, expected how many users come", hint=names.hint)
        return asked.connections or CONNECTIONS
    if asked.connections is not None:
        raise UsageError(f"{names.users}: found beside {names.connections}, expected one of them: every user has a connection")
    users = asked.users
    if not isinstance(users, tuple) and users != int(users):
        raise UsageError(f"{names.users}: found {users:g}, expected a whole number")
    if asked.ramp_s is None:
        return users
    if isinstance(users, tuple):
        points = ",".join(f"{t_s:g}s:{value:g}" for t_s, value in users)
        raise UsageError(f"{names.ramp}: found beside {names.users} {points}, expected a number of users where there is a ramp")
    return ((0.0, 0.0), (asked.ramp_s, users))
