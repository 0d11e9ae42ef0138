"""The flags of `weir load` that say how requests arrive, made into a load. Pure: strings in, a load out."""

from dataclasses import dataclass

from weir.asked_load import FLAGS, AskedLoad, load_of
from weir.load_values import duration_s, profile, think_time
from weir.model.load import ClosedLoad, Load

_DURATION_S = 10.0
_LONGEST_S = 3600.0


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
    asked = AskedLoad(
        connections=flags.connections,
        rate_rps=None if flags.rate is None else profile(flags.rate, "-R/--rate"),
        arrivals="poisson" if flags.poisson else "constant",
        users=None if flags.users is None else profile(flags.users, FLAGS.users),
        ramp_s=None if flags.ramp is None else duration_s(flags.ramp, FLAGS.ramp),
        loops=flags.loops,
        think=None if flags.think is None else think_time(flags.think),
        pace_s=None if flags.pace is None else duration_s(flags.pace, FLAGS.pace),
    )
    return load_of(asked, FLAGS)


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
