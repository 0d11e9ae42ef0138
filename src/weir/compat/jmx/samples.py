"""The results of a test plan as JMeter's samples: one sample for each request, with times in milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weir.model.load import highest
from weir.model.load_records import LoadEnd
from weir.model.request_log import NO_STEP, OUTCOMES

if TYPE_CHECKING:
    # Imported only for type checks: reports do not need the reader of test plans.
    from weir.compat.jmx.native import NativeLoad

Integers = NDArray[np.int64]
_REDIRECTS = (301, 302, 303, 307, 308)
_CONNECT, _TIMEOUT, _UNANSWERED = (OUTCOMES.index(name) for name in ("connect", "timeout", "unanswered"))


@dataclass(frozen=True, slots=True)
class GroupLog:
    """The request log of a thread group."""

    native: "NativeLoad"
    started_unix_ns: int
    """The start of the load, in nanoseconds since 1970. Times in `requests` count from this start."""
    requests: NDArray[Any]


Table = NDArray[np.void]
_COLUMNS = (
    "group",  # The index in `Samples.groups`.
    "step",
    "thread",  # From 1.
    "started_ns",  # The time at which the request was due, since 1970.
    "ended_ns",
    "elapsed_ms",  # From the start to the last received byte.
    "latency_ms",  # From the start to the first byte of the response; 0 without a response.
    "connect_ms",  # 0 if the request used an open connection.
    "status",
    "outcome",  # The index in `OUTCOMES`.
    "body_bytes",
    "received_bytes",
    "sent_bytes",
    "group_threads",  # Number of running threads in the group at the end of the request.
    "all_threads",
)


class Samples(NamedTuple):
    """The samples of several thread groups."""

    groups: "tuple[NativeLoad, ...]"
    rows: Table
    """A row for each sample, in order of the ends of the samples. The columns are `_COLUMNS`."""


def collect_samples(logs: Sequence[GroupLog]) -> Samples:
    """Returns the samples of thread groups. Leaves out the requests that were in flight at the end of a load."""
    parts = [_read_rows(place, log) for place, log in enumerate(logs)]
    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows["ended_ns"], kind="stable")]
    active = np.stack([_count_active(*one, rows["ended_ns"]) for one in zip(logs, parts, strict=True)])
    rows["group_threads"], rows["all_threads"] = active[rows["group"], np.arange(len(rows))], np.sum(active, axis=0)
    return Samples(tuple(log.native for log in logs), rows)


def judge_redirects(native: "NativeLoad", end: LoadEnd, log: NDArray[Any] | None) -> LoadEnd:
    """Returns the end of a thread group's load. The verdict is suspect if JMeter would have followed redirects. `log`:
    the request log. The log may be None only if the group's `mixes_redirects` is false."""
    follows = np.array([sampler.follows_redirects for sampler in native.group.samplers])
    if log is not None:
        step = _fill_steps(log["user"], log["step"], len(follows))
        count = int(np.count_nonzero(follows[step] & np.isin(log["status"], _REDIRECTS)))
    else:
        count = sum(end.summary.status.get(str(code), 0) for code in _REDIRECTS) if follows.all() else 0
    if not count:
        return end
    verdict = end.summary.verdict
    validity = "suspect" if verdict.validity == "valid" else verdict.validity
    reason = f"{count} responses are redirects; JMeter would have followed them with further requests"
    verdict = replace(
        verdict, validity=validity, reasons=[*verdict.reasons, reason], kinds=[*verdict.kinds, "redirects"]
    )
    return replace(end, summary=replace(end.summary, verdict=verdict))


def _read_rows(place: int, log: GroupLog) -> Table:
    found = log.requests[log.requests["outcome"] != _UNANSWERED]
    columns = {name: found[name].astype(np.int64) for name in found.dtype.names or ()}
    intended_ns, written_ns, connect_ns = columns["intended_ns"], columns["written_ns"], columns["connect_ns"]
    outcome = columns["outcome"]
    moments = ("intended_ns", "written_ns", "first_byte_ns", "last_byte_ns")
    last_known_ns = np.maximum.reduce([columns[name] for name in moments])
    ended_ns = np.select(
        [outcome == _CONNECT, outcome == _TIMEOUT],
        [intended_ns + connect_ns, written_ns + int(log.native.plan.timeout_s * 1e9)],
        last_known_ns,
    )
    ended_ns = np.maximum(ended_ns, last_known_ns)
    columns |= {
        "group": np.full(len(found), place, np.int64),
        "step": _fill_steps(columns["user"], columns["step"], len(log.native.scenario.steps)),
        "thread": columns["user"] + 1,
        "started_ns": intended_ns + log.started_unix_ns,
        "ended_ns": ended_ns + log.started_unix_ns,
        "elapsed_ms": _round_ms(ended_ns - intended_ns),
        "latency_ms": np.where(columns["first_byte_ns"] >= 0, _round_ms(columns["first_byte_ns"] - intended_ns), 0),
        # A request pays no time to connect if the connection existed before the request was due.
        "connect_ms": _round_ms(np.where(connect_ns <= ended_ns - intended_ns, connect_ns, 0)),
    }
    rows = np.zeros(len(found), [(name, np.int64) for name in _COLUMNS])
    for name in columns.keys() & set(_COLUMNS):
        rows[name] = columns[name]
    return rows


def _fill_steps(user: Integers, step: Integers, step_count: int) -> Integers:
    """Returns the step of each request. A request without a step in the log gets the user's next step."""
    known = step != NO_STEP
    if known.all():
        return step
    order = np.argsort(user, kind="stable")
    sorted_user, sorted_step, is_known = user[order], step[order], known[order]
    before = np.maximum.accumulate(np.where(is_known, np.arange(len(order)), -1))
    has_one = (before >= 0) & (sorted_user[before] == sorted_user)
    found = np.empty_like(step)
    found[order] = np.where(is_known, sorted_step, np.where(has_one, (sorted_step[before] + 1) % step_count, 0))
    return found


def _count_active(log: GroupLog, part: Table, at_ns: Integers) -> Integers:
    """Returns the number of a group's running threads at the times `at_ns`: started threads minus ended threads."""
    users = log.native.users
    points = users if isinstance(users, tuple) else ((0.0, users),)
    times_ns = [t_s * 1e9 for t_s, _ in points]
    came = np.ceil(np.interp(at_ns - log.started_unix_ns, times_ns, [value for _, value in points])).astype(np.int64)
    last_ns = np.zeros(int(highest(users)) + 1, np.int64)
    np.maximum.at(last_ns, part["thread"], part["ended_ns"])
    gone = np.searchsorted(np.sort(last_ns[last_ns > 0]), at_ns, side="left")
    active: Integers = np.maximum(came - gone, 0)
    return active


def _round_ms(ns: Integers) -> Integers:
    return (ns + 500_000) // 1_000_000
