"""The flags of `weir load` that say how requests arrive, made into a load. Pure: strings in, a load out."""

from dataclasses import dataclass

from weir.cli.values import duration_s, profile, think_time
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, Load, OpenLoad, Profile, Session

_CONNECTIONS = 64
_DURATION_S = 10.0
_LONGEST_S = 3600.0
_DEEPEST = 1024
_MOST_AT_A_TIME = 1_000_000


@dataclass(frozen=True, slots=True)
class LoadFlags:
    """The flags as they were given; None or False: not given."""

    connections: int | None = None
    rate: str | None = None
    poisson: bool = False
    users: str | None = None
    ramp: str | None = None
    loops: int | None = None
    think: str | None = None
    pace: str | None = None


def chosen_load(flags: LoadFlags) -> Load:
    """The load that the flags ask for.

    Raises:
        UsageError: a value cannot be read, or flags contradict each other.
    """
    if flags.rate is not None:
        return _open(flags, flags.rate)
    if flags.poisson:
        raise UsageError("--poisson: found without --rate, expected arrivals at a rate", hint="weir load URL --rate 100 --poisson")
    return ClosedLoad(
        _users(flags),
        None if flags.think is None else think_time(flags.think),
        flags.loops,
        None if flags.pace is None else duration_s(flags.pace, "--pace"),
    )


def default_duration_s(load: Load, ramp: str | None, requests: int | None, until_failure: bool) -> float:
    """How long a load lasts that was not told: to the end of its profile or ramp, and an hour at most where something else ends it."""
    has_loops = isinstance(load, ClosedLoad) and load.loops is not None
    if requests is not None or has_loops:
        return _LONGEST_S
    if ramp is not None:
        return duration_s(ramp, "--ramp") + _DURATION_S
    varying = load.users if isinstance(load, ClosedLoad) else load.rate_rps
    last_s = varying[-1][0] if isinstance(varying, tuple) else 0.0
    return last_s or (_LONGEST_S if until_failure else _DURATION_S)


def pipelining(depth: int, load: Load, *, keep_alive: bool, has_scenario: bool) -> int:
    """How many requests a connection may carry unanswered, where that goes together with the load.

    Raises:
        UsageError: the number is out of range, or requests have to wait for the answers before them.
    """
    if not 1 <= depth <= _DEEPEST:
        raise UsageError(f"--pipeline: found {depth}, expected a number from 1 to {_DEEPEST}")
    if depth == 1:
        return depth
    waits = {
        "--no-keepalive": not keep_alive,
        "--scenario": has_scenario,
        "users over time, --think, --loops or --pace": isinstance(load, ClosedLoad) and not load.is_plain,
        "--loops": isinstance(load, OpenLoad) and load.session is not None,
    }
    if found := [flag for flag, given in waits.items() if given]:
        raise UsageError(f"--pipeline: found {depth} beside {found[0]}, expected connections that are kept and ask again without a pause")
    if load.connections * depth > _MOST_AT_A_TIME:
        raise UsageError(
            f"--pipeline: found {depth} on each of {load.connections} connections, expected at most {_MOST_AT_A_TIME:,} requests at a time"
        )
    return depth


def _open(flags: LoadFlags, rate: str) -> OpenLoad:
    for name, given in (("--users", flags.users), ("--ramp", flags.ramp), ("--pace", flags.pace)):
        if given is not None:
            raise UsageError(f"{name}: found beside --rate, expected one of them: arrivals at a rate wait for nobody")
    if flags.think is not None and flags.loops is None:
        raise UsageError("--think: found beside --rate without --loops, expected how many requests each arrival has", hint="add --loops N")
    think = None if flags.think is None else think_time(flags.think)
    return OpenLoad(
        profile(rate, "-R/--rate"),
        flags.connections or _CONNECTIONS,
        "poisson" if flags.poisson else "constant",
        None if flags.loops is None else Session(flags.loops, think),
    )


def _users(flags: LoadFlags) -> Profile:
    if flags.users is None:
        if flags.ramp is not None:
            raise UsageError("--ramp: found without --users, expected how many users come", hint="weir load URL --users 200 --ramp 50s")
        return flags.connections or _CONNECTIONS
    if flags.connections is not None:
        raise UsageError("--users: found beside -c/--connections, expected one of them: every user has a connection")
    users = profile(flags.users, "--users")
    if not isinstance(users, tuple) and users != int(users):
        raise UsageError(f"--users: found {flags.users}, expected a whole number")
    if flags.ramp is None:
        return users
    if isinstance(users, tuple):
        raise UsageError(f"--ramp: found beside --users {flags.users}, expected a number of users where there is a ramp")
    return ((0.0, 0.0), (duration_s(flags.ramp, "--ramp"), users))
