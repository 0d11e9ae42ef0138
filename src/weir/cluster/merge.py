"""What several agents saw of one load, made into what one generator would have said of it.

Histograms are added, bucket by bucket, and everything else is computed from the sums: no percentile is ever averaged. What cannot be had
from the parts is None: that of a step or a target its percentiles, that of all connections their fairness.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from weir.model.histogram import bytes_of_text, encoded, text_of_bytes
from weir.model.histograms import samples_of
from weir.model.merged import times_of_counts
from weir.model.records import (
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


class IntervalMerger:
    """Intervals of several agents, by their index: one comes out when every agent that goes on has told its part of it.

    The agents' loads begin at one moment, so that intervals of one index are the same slice of time.
    """

    def __init__(self, agents: Iterable[str]) -> None:
        self._reached = dict.fromkeys(agents, -1)
        """The last index that an agent has told that goes on."""
        self._parts: dict[int, list[Interval]] = {}

    def take(self, agent: str, interval: Interval) -> list[Interval]:
        """Takes an agent's interval, and gives those that are complete now, in their order."""
        self._parts.setdefault(interval.index, []).append(interval)
        self._reached[agent] = max(interval.index, self._reached.get(agent, -1))
        return self._complete()

    def ended(self, agent: str) -> list[Interval]:
        """Waits for this agent no longer."""
        self._reached.pop(agent, None)
        return self._complete()

    def _complete(self) -> list[Interval]:
        until = min(self._reached.values(), default=None)
        indices = sorted(index for index in self._parts if until is None or index <= until)
        return [merged_interval(self._parts.pop(index)) for index in indices]


def merged_interval(parts: Sequence[Interval]) -> Interval:
    """The interval that one generator would have seen in place of several."""
    first = parts[0]
    if len(parts) == 1:
        return first
    counts = _added(part.histogram for part in parts)
    times = times_of_counts(counts, _most(part.response_time_us.max for part in parts))
    return Interval(
        index=first.index,
        start_s=min(part.start_s for part in parts),
        end_s=max(part.end_s for part in parts),
        due=sum(part.due for part in parts),
        sent=sum(part.sent for part in parts),
        completed=sum(part.completed for part in parts),
        ok=sum(part.ok for part in parts),
        failed=sum(part.failed for part in parts),
        errors=_sum([part.errors for part in parts]),
        in_flight=sum(part.in_flight for part in parts),
        queued=sum(part.queued for part in parts),
        oldest_age_us=max(part.oldest_age_us for part in parts),
        bytes_sent=sum(part.bytes_sent for part in parts),
        bytes_received=sum(part.bytes_received for part in parts),
        response_time_us=IntervalQuantiles(mean=times.mean, p50=times.p50, p90=times.p90, p99=times.p99, max=times.max),
        histogram=text_of_bytes(encoded(counts)),
    )


def merged_end(ends: Mapping[str, LoadEnd], agents: Sequence[AgentSummary]) -> LoadEnd:
    """The end of a load from those of its parts.

    Args:
        ends: by the agent's name; at least one.
        agents: what is told of each.
    """
    parts = list(ends.values())
    summaries = [part.summary for part in parts]
    clocks = {clock: _added(part.histograms[clock] for part in parts) for clock in parts[0].histograms}
    slowest = sorted((one for part in parts for one in part.slowest), key=lambda one: one.intended_us - one.last_byte_us)
    return LoadEnd(
        stopped=_stopped(parts),
        summary=_merged_summary(summaries, clocks, list(ends), agents),
        histograms={clock: text_of_bytes(encoded(counts)) for clock, counts in clocks.items()},
        slowest=slowest[: max(len(part.slowest) for part in parts)],
    )


def _merged_summary(
    parts: Sequence[LoadSummary], clocks: Mapping[str, Mapping[int, int]], names: Sequence[str], agents: Sequence[AgentSummary]
) -> LoadSummary:
    first = parts[0]
    requests = _sum([part.requests for part in parts])
    lasted_s = max(part.duration_s for part in parts)

    def times(clock: str, of: Sequence[Quantiles]) -> Quantiles:
        return times_of_counts(clocks[f"{clock}_ns"], _most(one.max for one in of)) if f"{clock}_ns" in clocks else Quantiles()

    handshakes = [part.tls_handshake_us for part in parts if part.tls_handshake_us is not None]
    reads = [(part.requests.completed, part.read_time_us) for part in parts if part.read_time_us is not None]
    firsts = [part.first_answer for part in parts if part.first_answer is not None]
    return LoadSummary(
        schema_number=first.schema_number,
        target=first.target,
        duration_s=lasted_s,
        requests=requests,
        throughput_rps=requests.completed / lasted_s if lasted_s else 0.0,
        status=_sums_by_key(part.status for part in parts),
        errors=_sum([part.errors for part in parts]),
        response_time_us=times("response_time", [part.response_time_us for part in parts]),
        service_time_us=times("service_time", [part.service_time_us for part in parts]),
        schedule_lag_us=times("schedule_lag", [part.schedule_lag_us for part in parts]),
        connect_time_us=times("connect_time", [part.connect_time_us for part in parts]),
        tls_handshake_us=times("tls_handshake", handshakes) if handshakes else None,
        time_to_first_byte_us=times("time_to_first_byte", [part.time_to_first_byte_us for part in parts]),
        read_time_us=_mean_and_ends(reads) if reads else None,
        bytes=_sum([part.bytes for part in parts]),
        first_answer=firsts[0] if firsts else None,
        other_length=sum(part.other_length for part in parts),
        generator=_merged_generator([part.generator for part in parts]),
        steps=_merged_steps(parts),
        targets=_merged_targets(parts),
        agents=list(agents),
        verdict=_merged_verdict({name: part.verdict for name, part in zip(names, parts, strict=True)}),
    )


def _merged_generator(parts: Sequence[GeneratorUse]) -> GeneratorUse:
    threads = sum(part.threads for part in parts)
    stamps = [part.kernel_timestamps for part in parts if part.kernel_timestamps is not None]
    return GeneratorUse(
        version=parts[0].version,
        cpu_fraction=sum(part.cpu_fraction * part.threads for part in parts) / threads,
        busy_fraction=_most(part.busy_fraction for part in parts),
        peak_rss_bytes=sum(part.peak_rss_bytes for part in parts),
        threads=threads,
        # CPUs have numbers on a machine, not among several.
        cpus=[],
        kernel_timestamps=_sum(stamps) if stamps else None,
    )


def _merged_verdict(verdicts: Mapping[str, Verdict]) -> Verdict:
    """The worst, and every reason with the agent that gave it."""
    reasons = [f"{name}: {reason}" for name, verdict in verdicts.items() for reason in verdict.reasons]
    kinds = [kind for verdict in verdicts.values() for kind in verdict.kinds]
    return Verdict(validity=worst(verdict.validity for verdict in verdicts.values()), reasons=reasons, kinds=kinds)


def with_reason(verdict: Verdict, validity: Validity, kind: str, reason: str) -> Verdict:
    """The verdict with one reason more."""
    return Verdict(validity=worst((verdict.validity, validity)), reasons=[*verdict.reasons, reason], kinds=[*verdict.kinds, kind])


def _merged_steps(parts: Sequence[LoadSummary]) -> dict[str, StepSummary] | None:
    tables = [part.steps for part in parts if part.steps is not None]
    if not tables:
        return None
    return {name: _merged_step([table[name] for table in tables if name in table]) for name in tables[0]}


def _merged_targets(parts: Sequence[LoadSummary]) -> list[TargetSummary] | None:
    tables = [part.targets for part in parts if part.targets is not None]
    if not tables:
        return None
    return [TargetSummary(url=of[0].url, **dict(_merged_step(of))) for of in zip(*tables, strict=True)]


def _merged_step(parts: Sequence[StepSummary]) -> StepSummary:
    return StepSummary(
        sent=sum(part.sent for part in parts),
        completed=sum(part.completed for part in parts),
        ok=sum(part.ok for part in parts),
        failed=sum(part.failed for part in parts),
        response_time_us=_mean_and_ends([(part.completed, part.response_time_us) for part in parts]),
    )


def _mean_and_ends(parts: Sequence[tuple[int, Quantiles]]) -> Quantiles:
    """What adds up without a histogram, of so many samples each: the mean, the shortest and the longest."""
    known = [(count, part) for count, part in parts if count and part.mean is not None]
    samples = sum(count for count, _ in known)
    return Quantiles(
        mean=sum(count * (part.mean or 0.0) for count, part in known) / samples if samples else None,
        min=min((part.min for _, part in known if part.min is not None), default=None),
        max=_most(part.max for _, part in known),
    )


def _stopped(parts: Sequence[LoadEnd]) -> str:
    """What ended the load: what ended the parts, and if that differs, what cut one short."""
    found = {part.stopped for part in parts}
    return next((why for why in ("input", "signal", "first_failure", "duration") if why in found), parts[0].stopped)


def _added(texts: Iterable[str]) -> dict[int, int]:
    """How many samples there are in each bucket of several histograms, in rising order."""
    samples = samples_of([bytes_of_text(text) for text in texts])
    if not len(samples.bucket):
        return {}
    buckets, which = np.unique(samples.bucket, return_inverse=True)
    counts = np.zeros(len(buckets), np.int64)
    np.add.at(counts, which, samples.often)
    return dict(zip(buckets.tolist(), counts.tolist(), strict=True))


def _sum(parts: Sequence[Counts]) -> Counts:
    """Counts added up, each with its like."""
    kind = type(parts[0])
    return kind(**{name: sum(getattr(part, name) for part in parts) for name in kind.model_fields})


def _sums_by_key(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for table in tables:
        for key, count in table.items():
            sums[key] = sums.get(key, 0) + count
    return dict(sorted(sums.items()))


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
