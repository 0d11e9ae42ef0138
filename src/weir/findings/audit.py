"""The physics audit: laws that any load test's numbers must obey, applied to our own trials.

Each law takes a summary (and the load) and says what is wrong, or nothing. They know nothing of who measured, so that the output of
other tools can be held against them as well.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from weir.findings.types import Audit, BrokenLaw
from weir.findings.words import counted, significant
from weir.model.load import ClosedLoad, Load
from weir.model.records import LoadSummary, Quantiles
from weir.model.run import Trial

TOLERANCE = 0.005
"""Histograms keep three significant digits and clocks are read at slightly different moments: 0.5 % is not a contradiction."""

Law = Callable[[LoadSummary, Load], Iterator[str]]


def closed_loop_response_time(summary: LoadSummary, load: Load) -> Iterator[str]:
    """N users who wait for their answers cannot wait longer than N ÷ X on average (Little 1961; no think time here)."""
    mean_us, rate = summary.response_time_us.mean, summary.throughput_rps
    if isinstance(load, ClosedLoad) and mean_us is not None and rate > 0:
        limit_us = load.connections / rate * 1e6
        if mean_us > limit_us * (1 + TOLERANCE):
            yield (
                f"the mean response time is {significant(mean_us)} µs, but {load.connections} connections at {significant(rate)} req/s "
                f"allow {significant(limit_us)} µs at most"
            )


def counts_add_up(summary: LoadSummary, load: Load) -> Iterator[str]:
    """Every request has exactly one fate."""
    counts, errors, statuses = summary.requests, summary.errors, sum(summary.status.values())
    fates = counts.ok + counts.failed + counts.unanswered + counts.unsent
    if counts.intended != fates:
        yield f"{counts.intended:,} requests were intended, but ok + failed + unanswered + unsent is {fates:,}"
    failures = errors.connect + errors.timeout + errors.reset + errors.protocol + errors.check
    if counts.failed != failures:
        yield f"{counts.failed:,} requests failed, but the kinds of error add up to {failures:,}"
    if counts.completed != counts.ok + errors.check:
        yield f"{counts.completed:,} requests completed, but ok + wrong answers is {counts.ok + errors.check:,}"
    if counts.completed != statuses:
        yield f"{counts.completed:,} requests completed, but the statuses add up to {statuses:,}"


def rate_is_count_over_time(summary: LoadSummary, load: Load) -> Iterator[str]:
    """Throughput = completed ÷ duration."""
    expected = summary.requests.completed / summary.duration_s if summary.duration_s > 0 else 0.0
    if abs(summary.throughput_rps - expected) > TOLERANCE * max(expected, 1.0):
        yield f"the throughput is {significant(summary.throughput_rps)} req/s, but completed ÷ duration is {significant(expected)}"


def quantiles_are_ordered(summary: LoadSummary, load: Load) -> Iterator[str]:
    """Quantiles rise, and the mean lies between the smallest and the largest value."""
    for clock in ("response_time_us", "service_time_us"):
        times: Quantiles = getattr(summary, clock)
        ladder = [times.min, times.p50, times.p75, times.p90, times.p95, times.p99, times.p99_9, times.p99_99, times.max]
        known = [value for value in ladder if value is not None]
        if any(later < earlier * (1 - TOLERANCE) for earlier, later in pairwise(known)):
            yield f"the percentiles of {clock} do not rise"
        if times.mean is not None and known and not known[0] * (1 - TOLERANCE) <= times.mean <= known[-1] * (1 + TOLERANCE):
            yield f"the mean of {clock} lies outside its smallest and largest value"


LAWS: dict[str, Law] = {
    "mean response time ≤ connections ÷ throughput": closed_loop_response_time,
    "counts add up": counts_add_up,
    "throughput = completed ÷ duration": rate_is_count_over_time,
    "percentiles rise": quantiles_are_ordered,
}


def audit_trials(trials: Sequence[Trial]) -> Audit:
    """Hold every trial that measured something against every law."""
    measured = [trial for trial in trials if trial.result.summary is not None]
    broken = tuple(
        BrokenLaw(trial.id, name, fact)
        for trial in measured
        for name, law in LAWS.items()
        if trial.result.summary is not None
        for fact in law(trial.result.summary, trial.cell.load)
    )
    checks = len(measured) * len(LAWS)
    if not measured:
        sentence = "No trial measured anything that could be audited."
    elif not broken:
        sentence = f"All {counted(checks, 'check')} of the physics audit hold on {counted(len(measured), 'trial')}."
    else:
        trial_ids = sorted({law.trial for law in broken})
        sentence = f"{counted(len(broken), 'check')} of {checks:,} of the physics audit fail, in trials {', '.join(map(str, trial_ids))}."
    return Audit(checks, len(measured), broken, sentence)
