"""What a locustfile's load came to as weir records it, with the verdict on how far that can be trusted. Pure."""

from collections import Counter
from collections.abc import Sequence

from weir import __version__
from weir.compat.locust.gathered import Gathered, WorkerUse
from weir.compat.locust.recorder import OTHERS
from weir.compat.locust.tally import Tally, together
from weir.model import histogram
from weir.model.merged import times_of_counts
from weir.model.records import (
    ByteCounts,
    ErrorCounts,
    GeneratorUse,
    LoadEnd,
    LoadSummary,
    Quantiles,
    RequestCounts,
    StepSummary,
    Verdict,
)
from weir.model.verdict import Reason, TrialVerdict

BUSY_LIMIT = 0.85
"""As in the verdict of weir's engine."""
MOST_STEPS = 200
"""Names of requests that are told apart."""
LAG_LIMIT = 0.1
"""The 99th percentile of the schedule lag beyond this share of the median response time distorts it: as there."""


def load_end(gathered: Gathered, *, target: str, duration_s: float, stopped: str) -> LoadEnd:
    """The end of a load.

    Args:
        gathered: all that workers have reported.
        target: the hosts.
        duration_s: how long it took.
        stopped: by what: `duration`, `complete` or `signal`.
    """
    tally = together(gathered.tallies.values())
    workers = gathered.workers
    unanswered = sum(worker.unanswered for worker in workers)
    sent = tally.requests + unanswered
    response = _quantiles(tally.response, tally)
    busy = [worker.cpu_s / duration_s for worker in workers]
    lag = _quantiles(tally.lag)
    summary = LoadSummary(
        schema_number=1,
        target=target,
        duration_s=duration_s,
        requests=RequestCounts(
            intended=sent, sent=sent, completed=tally.completed, ok=tally.ok, failed=tally.failed, unanswered=unanswered, unsent=0
        ),
        throughput_rps=tally.completed / duration_s,
        status={str(status): count for status, count in sorted(tally.statuses.items())},
        errors=ErrorCounts(**tally.errors),
        response_time_us=response,
        service_time_us=_quantiles(tally.service),
        schedule_lag_us=lag,
        connect_time_us=Quantiles(),
        time_to_first_byte_us=Quantiles(),
        bytes=ByteCounts(sent=tally.sent_bytes, received=tally.received_bytes, received_body=tally.received_bytes),
        generator=GeneratorUse(
            version=f"weir locust {__version__}",
            cpu_fraction=sum(busy) / len(busy),
            busy_fraction=max(busy),
            peak_rss_bytes=sum(worker.peak_rss_bytes for worker in workers),
            threads=len(workers),
            cpus=[],
        ),
        steps=_steps(gathered),
        verdict=_verdict(tally, workers, max(busy), response, lag),
    )
    clocks = {"response_time": tally.response, "service_time": tally.service, "schedule_lag": tally.lag}
    return LoadEnd(
        stopped=stopped,
        summary=summary,
        histograms={f"{clock}_ns": histogram.text_of_bytes(histogram.encoded(counts)) for clock, counts in clocks.items()},
    )


def _steps(gathered: Gathered) -> dict[str, StepSummary]:
    """By method and name. A file that names requests by their whole URLs has names without end: the rarest are one step together."""
    often = sorted(gathered.tallies.items(), key=lambda item: -item[1].requests)
    shown, others = often[:MOST_STEPS], [tally for _, tally in often[MOST_STEPS:]]
    steps = {f"{method} {name}".strip(): _step(tally) for (method, name), tally in sorted(shown, key=lambda item: item[0][::-1])}
    return steps | ({OTHERS: _step(together(others))} if others else {})


def _step(tally: Tally) -> StepSummary:
    return StepSummary(
        sent=tally.requests,
        completed=tally.completed,
        ok=tally.ok,
        failed=tally.failed,
        response_time_us=_quantiles(tally.response, tally),
    )


def _quantiles(counts: dict[int, int], exact: Tally | None = None) -> Quantiles:
    rising = dict(sorted(counts.items()))
    longest_ns = exact.most_answered_ns if exact is not None else histogram.highest_at(max(counts, default=0))
    return times_of_counts(rising, longest_ns / 1e3)


def _verdict(tally: Tally, workers: Sequence[WorkerUse], busy: float, response: Quantiles, lag: Quantiles) -> Verdict:
    found: list[Reason] = []
    lost = sum(worker.is_lost for worker in workers)
    if lost:
        found.append(
            Reason(
                "lost",
                "invalid",
                f"{lost} of {len(workers)} workers died: its users stopped asking"
                if lost == 1
                else f"{lost} of {len(workers)} workers died",
                "limit 0",
                "what is told of them above says why",
            )
        )
    if not tally.completed:
        found.append(Reason("nothing", "invalid", "no request was answered", cause="the target does not serve, or no task asks it"))
    if tally.failed:
        kinds = ", ".join(f"{kind} {count}" for kind, count in Counter(tally.errors).most_common())
        found.append(Reason("failed", "suspect", f"{tally.failed} of {tally.requests} requests failed", f"{kinds}; limit 0"))
    if busy >= BUSY_LIMIT:
        found.append(
            Reason(
                "busy",
                "suspect",
                f"the busiest worker was busy {busy:.0%} of the time",
                f"limit {BUSY_LIMIT:.0%}",
                "Python was the limit, and its queueing is in the response times",
                "more --processes, fewer users, FastHttpUser, or the native scenario",
            )
        )
    if lag.p99 is not None and response.p50 is not None and lag.p99 > LAG_LIMIT * response.p50:
        found.append(
            Reason(
                "lag",
                "suspect",
                f"the 99th percentile of the schedule lag is {lag.p99:.0f} us",
                f"limit {LAG_LIMIT:.0%} of the median response time, {response.p50:.0f} us",
                "users waited for their worker, or it for a CPU, before they could ask",
                "more --processes, or fewer users",
            )
        )
    verdict = TrialVerdict(tuple(found))
    return Verdict(validity=verdict.validity, reasons=list(verdict.texts), kinds=[reason.kind for reason in found])
