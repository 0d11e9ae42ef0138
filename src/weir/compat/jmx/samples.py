"""What came of a test plan, as JMeter sees it: a sample for each request, in milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weir.model.load import highest
from weir.model.request_log import NO_STEP, OUTCOMES

if TYPE_CHECKING:
    # Reports ask for the tables of samples alone, without what reads plans.
    from weir.compat.jmx.native import Native

Integers = NDArray[np.int64]
_CONNECT, _TIMEOUT, _UNANSWERED = (OUTCOMES.index(name) for name in ("connect", "timeout", "unanswered"))


@dataclass(frozen=True, slots=True)
class Ran:
    """A thread group that has run."""

    native: "Native"
    started_unix_ns: int
    """When its clock began."""
    requests: NDArray[Any]
    """Its request log."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of several thread groups, in the order of their ends. All arrays are of the same length."""

    groups: "tuple[Native, ...]"
    group: Integers
    """Of each sample, its place in `groups`."""
    step: Integers
    thread: Integers
    """Its number, from 1."""
    started_ns: Integers
    """Since 1970."""
    ended_ns: Integers
    latency_ms: Integers
    """To the first byte of the answer; 0 without one."""
    connect_ms: Integers
    """0 where the connection had been made before."""
    status: Integers
    outcome: Integers
    """A place in `OUTCOMES`."""
    received_bytes: Integers
    body_bytes: Integers
    sent_bytes: Integers
    group_threads: Integers
    """Threads of its group that were running when it ended."""
    all_threads: Integers

    @property
    def elapsed_ms(self) -> Integers:
        """From the moment at which the request was due to the last byte of its answer, as far as it came."""
        return _ms(self.ended_ns - self.started_ns)


def samples_of(ran: Sequence[Ran]) -> Samples:
    """The samples of thread groups. Requests that were in flight when a load was stopped are none."""
    parts = [_of_group(place, one) for place, one in enumerate(ran)]
    order = np.argsort(np.concatenate([part["ended_ns"] for part in parts]), kind="stable")
    columns = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
    active = [_active(one, part["ended_ns"], part["thread"], columns["ended_ns"]) for one, part in zip(ran, parts, strict=True)]
    own = np.choose(columns["group"], active) if len(active) <= 32 else np.stack(active)[columns["group"], np.arange(len(order))]
    return Samples(groups=tuple(one.native for one in ran), group_threads=own, all_threads=np.sum(active, axis=0), **columns)


def _of_group(place: int, ran: Ran) -> dict[str, Integers]:
    found = ran.requests[ran.requests["outcome"] != _UNANSWERED]
    columns = {name: found[name].astype(np.int64) for name in found.dtype.names or ()}
    intended_ns, outcome = columns["intended_ns"], columns["outcome"]
    last_known_ns = np.maximum.reduce([intended_ns, columns["written_ns"], columns["first_byte_ns"], columns["last_byte_ns"]])
    ended_ns = np.select(
        [outcome == _CONNECT, outcome == _TIMEOUT],
        [intended_ns + columns["connect_ns"], columns["written_ns"] + int(ran.native.plan.timeout_s * 1e9)],
        last_known_ns,
    )
    ended_ns = np.maximum(ended_ns, last_known_ns)
    return {
        "group": np.full(len(found), place, np.int64),
        "step": _steps(columns["user"], columns["step"], len(ran.native.scenario.steps)),
        "thread": columns["user"] + 1,
        "started_ns": intended_ns + ran.started_unix_ns,
        "ended_ns": ended_ns + ran.started_unix_ns,
        "latency_ms": np.where(columns["first_byte_ns"] >= 0, _ms(columns["first_byte_ns"] - intended_ns), 0),
        # A connection that was made before the request was due is no part of its time.
        "connect_ms": _ms(np.where(columns["connect_ns"] <= ended_ns - intended_ns, columns["connect_ns"], 0)),
        "status": columns["status"],
        "outcome": outcome,
        "received_bytes": columns["received_bytes"],
        "body_bytes": columns["body_bytes"],
        "sent_bytes": columns["sent_bytes"],
    }


def _steps(user: Integers, step: Integers, steps: int) -> Integers:
    """The step of each request; of one that had no connection, that which its user would have done: the one behind its last."""
    known = step != NO_STEP
    if known.all():
        return step
    order = np.argsort(user, kind="stable")
    sorted_user, sorted_step, is_known = user[order], step[order], known[order]
    before = np.maximum.accumulate(np.where(is_known, np.arange(len(order)), -1))
    has_one = (before >= 0) & (sorted_user[before] == sorted_user)
    guessed = np.where(is_known, sorted_step, np.where(has_one, (sorted_step[before] + 1) % steps, 0))
    found = np.empty_like(step)
    found[order] = guessed
    return found


def _active(ran: Ran, ended_ns: Integers, thread: Integers, at_ns: Integers) -> Integers:
    """How many threads of a group run at some moments: those that have come and have another sample to end."""
    users = ran.native.users
    points = users if isinstance(users, tuple) else ((0.0, users),)
    times_ns = [t_s * 1e9 for t_s, _ in points]
    came = np.ceil(np.interp(at_ns - ran.started_unix_ns, times_ns, [value for _, value in points])).astype(np.int64)
    last_ns = np.zeros(int(highest(users)) + 1, np.int64)
    np.maximum.at(last_ns, thread, ended_ns)
    gone = np.searchsorted(np.sort(last_ns[last_ns > 0]), at_ns, side="left")
    active: Integers = np.maximum(came - gone, 0)
    return active


def _ms(ns: Integers) -> Integers:
    return (ns + 500_000) // 1_000_000
