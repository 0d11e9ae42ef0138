"""Merges the records of several agents, as if one generator had produced them.

Histograms are added bucket by bucket, and other figures are computed from the sums; percentiles are never averaged.
Figures that cannot be computed are None: percentiles of a step or a target, and the fairness among all connections.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from weir.model.hdr import Hdr, bytes_of_text
from weir.model.hdr_batch import merge
from weir.model.load_records import (
    CLOCKS,
    AgentSummary,
    ByteCounts,
    ErrorCounts,
    GeneratorUse,
    Interval,
    IntervalQuantiles,
    KernelTimestamps,
    LoadEnd,
    LoadSummary,
    Quantiles,
    RequestCounts,
    StepSummary,
    TargetSummary,
    Validity,
    Verdict,
)
from weir.model.verdict import worst

Counts = TypeVar("Counts", RequestCounts, ErrorCounts, ByteCounts, KernelTimestamps)
_STEP_COUNTS = ("sent", "completed", "ok", "failed")
_INTERVAL_COUNTS = (*_STEP_COUNTS, "due", "in_flight", "queued", "bytes_sent", "bytes_received")


class IntervalMerger:
    """Merges the agents' intervals with the same index. An interval is complete if all running agents sent it."""

    def __init__(self, agents: Iterable[str]) -> None:
        self._reached = dict.fromkeys(agents, -1)
        """Index of the latest interval of each running agent; -1 before the first interval."""
        self._parts: dict[int, list[Interval]] = {}

    def take(self, agent: str, interval: Interval) -> list[Interval]:
        """Takes an agent's interval. Returns the merged intervals that are now complete, in order."""
        self._parts.setdefault(interval.index, []).append(interval)
        self._reached[agent] = max(interval.index, self._reached.get(agent, -1))
        return self._complete()

    def ended(self, agent: str) -> list[Interval]:
        """Removes an ended agent. Returns the merged intervals that are now complete, in order."""
        self._reached.pop(agent, None)
        return self._complete()

    def _complete(self) -> list[Interval]:
        until = min(self._reached.values(), default=None)
        indices = sorted(index for index in self._parts if until is None or index <= until)
        return [merge_intervals(self._parts.pop(index)) for index in indices]


def merge_intervals(parts: Sequence[Interval]) -> Interval:
    """Merges the agents' parts into the interval that a single generator would have measured."""
    first = parts[0]
    if len(parts) == 1:
        return first
    merged = merge([bytes_of_text(part.histogram) for part in parts])
    times = Quantiles.from_counts(merged.counts, _find_highest(part.response_time_us.max for part in parts))
    return Interval(
        index=first.index,
        start_s=min(part.start_s for part in parts),
        end_s=max(part.end_s for part in parts),
        oldest_age_us=max(part.oldest_age_us for part in parts),
        errors=_sum_records([part.errors for part in parts]),
        response_time_us=IntervalQuantiles(mean=times.mean, p50=times.p50, p90=times.p90, p99=times.p99, max=times.max),
        histogram=merged.to_text(),
        **_sum_fields(parts, _INTERVAL_COUNTS),
    )


def merge_ends(ends: Mapping[str, LoadEnd], agents: Sequence[AgentSummary]) -> LoadEnd:
    """Merges the end records of agents. `ends` is a dict from agent name to end record, with at least one entry."""
    parts = list(ends.values())
    clocks = {clock: merge([bytes_of_text(part.histograms[clock]) for part in parts]) for clock in parts[0].histograms}
    slowest = sorted(
        (one for part in parts for one in part.slowest), key=lambda one: one.intended_us - one.last_byte_us
    )
    return LoadEnd(
        stopped=_find_stop(parts),
        summary=_merge_summaries({name: end.summary for name, end in ends.items()}, clocks, agents),
        histograms={clock: merged.to_text() for clock, merged in clocks.items()},
        slowest=slowest[: max(len(part.slowest) for part in parts)],
    )


def _merge_summaries(
    summaries: Mapping[str, LoadSummary], clocks: Mapping[str, Hdr], agents: Sequence[AgentSummary]
) -> LoadSummary:
    parts = list(summaries.values())

    def times(clock: str, of: Sequence[Quantiles]) -> Quantiles:
        merged = clocks.get(f"{clock}_ns")
        return Quantiles.from_counts(merged.counts, _find_highest(one.max for one in of)) if merged else Quantiles()

    handshakes = [part.tls_handshake_us for part in parts if part.tls_handshake_us is not None]
    reads = [(part.requests.completed, part.read_time_us) for part in parts if part.read_time_us is not None]
    return LoadSummary.from_figures(
        _sum_records([part.requests for part in parts]),
        max(part.duration_s for part in parts),
        schema=parts[0].schema,
        target=parts[0].target,
        status=dict(sorted(sum((Counter(part.status) for part in parts), Counter[str]()).items())),
        errors=_sum_records([part.errors for part in parts]),
        **{f"{clock}_us": times(clock, [getattr(part, f"{clock}_us") for part in parts]) for clock in CLOCKS},
        tls_handshake_us=times("tls_handshake", handshakes) if handshakes else None,
        read_time_us=_merge_means(reads) if reads else None,
        bytes=_sum_records([part.bytes for part in parts]),
        first_response=next((part.first_response for part in parts if part.first_response is not None), None),
        other_length=sum(part.other_length for part in parts),
        generator=_merge_generators([part.generator for part in parts]),
        steps=_merge_step_tables(parts),
        targets=_merge_target_lists(parts),
        agents=list(agents),
        verdict=_merge_verdicts({name: part.verdict for name, part in summaries.items()}),
    )


def _merge_generators(parts: Sequence[GeneratorUse]) -> GeneratorUse:
    threads = sum(part.threads for part in parts)
    stamps = [part.kernel_timestamps for part in parts if part.kernel_timestamps is not None]
    return GeneratorUse(
        version=parts[0].version,
        cpu_fraction=sum(part.cpu_fraction * part.threads for part in parts) / threads,
        busy_fraction=_find_highest(part.busy_fraction for part in parts),
        peak_rss_bytes=sum(part.peak_rss_bytes for part in parts),
        threads=threads,
        # CPU numbers have no meaning across machines.
        cpus=[],
        kernel_timestamps=_sum_records(stamps) if stamps else None,
    )


def _merge_verdicts(verdicts: Mapping[str, Verdict]) -> Verdict:
    """Returns the worst validity and all reasons, with the agents' names."""
    reasons = [f"{name}: {reason}" for name, verdict in verdicts.items() for reason in verdict.reasons]
    kinds = [kind for verdict in verdicts.values() for kind in verdict.kinds]
    return Verdict(validity=worst(verdict.validity for verdict in verdicts.values()), reasons=reasons, kinds=kinds)


def add_reason(verdict: Verdict, validity: Validity, kind: str, reason: str) -> Verdict:
    """Returns the verdict with one more reason."""
    return Verdict(
        validity=worst((verdict.validity, validity)), reasons=[*verdict.reasons, reason], kinds=[*verdict.kinds, kind]
    )


def _merge_step_tables(parts: Sequence[LoadSummary]) -> dict[str, StepSummary] | None:
    tables = [part.steps for part in parts if part.steps is not None]
    names = tables[0] if tables else ()
    return {name: _merge_steps([table[name] for table in tables if name in table]) for name in names} or None


def _merge_target_lists(parts: Sequence[LoadSummary]) -> list[TargetSummary] | None:
    tables = [part.targets for part in parts if part.targets is not None]
    if not tables:
        return None
    return [TargetSummary(url=of[0].url, **vars(_merge_steps(of))) for of in zip(*tables, strict=True)]


def _merge_steps(parts: Sequence[StepSummary]) -> StepSummary:
    times = _merge_means([(part.completed, part.response_time_us) for part in parts])
    return StepSummary(response_time_us=times, **_sum_fields(parts, _STEP_COUNTS))


def _sum_fields(parts: Sequence[object], names: Sequence[str]) -> dict[str, Any]:
    return {name: sum(getattr(part, name) for part in parts) for name in names}


def _merge_means(parts: Sequence[tuple[int, Quantiles]]) -> Quantiles:
    """Merges mean, minimum and maximum without a histogram. Each part has a number of samples and these figures."""
    known = [(count, part) for count, part in parts if count and part.mean is not None]
    samples = sum(count for count, _ in known)
    return Quantiles(
        mean=sum(count * (part.mean or 0.0) for count, part in known) / samples if samples else None,
        min=min((part.min for _, part in known if part.min is not None), default=None),
        max=_find_highest(part.max for _, part in known),
    )


def _find_stop(parts: Sequence[LoadEnd]) -> str:
    """Returns the reason why the load ended. If the parts' reasons differ, returns the reason for an early end."""
    found = {part.stopped for part in parts}
    return next((why for why in ("input", "signal", "first_failure", "duration") if why in found), parts[0].stopped)


def _sum_records(parts: Sequence[Counts]) -> Counts:
    kind = type(parts[0])
    return kind(**_sum_fields(parts, kind.names()))


def _find_highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
