"""Builds the last record of a load from a recording: the summary, the histograms and the verdict. Pure."""

from collections.abc import Iterable

from weir.compat.locust.recording import Key, Recording, Tally
from weir.model import records
from weir.model.hdr import Hdr
from weir.model.records import LoadEnd, Quantiles, StepSummary, Verdict
from weir.model.verdict import Reason, TrialVerdict

LAG_LIMIT = 0.1
"""Limit for the p99 of the schedule lag, as a share of the median response time. The engine has the same limit."""
MOST_STEPS = 200
"""Maximum number of steps in a summary. A locustfile may give every request its own name."""
OTHERS = "(others)"
CLOCK = "from the end of the user's pause to the end of the response, as measured by Locust"
_MORE_CPU = "use more --processes, fewer users, FastHttpUser, or weir convert"


def summarize(recording: Recording, *, target: str, stopped: str, version: str, measures_lag: bool) -> LoadEnd:
    """Returns the last record of a load. `target` lists the hosts, and `version` is the version of Locust.

    `stopped` is the reason why the load ended: `duration`, `complete` or `signal`.
    """
    tally, duration_s = _add_up(recording.tallies.values()), recording.duration_s
    processes = recording.load_processes
    news = [process.news for process in processes if process.news is not None]
    unanswered = sum(one.unanswered for one in news)
    unanswered += sum(one.news.in_flight for one in processes if one.is_lost and one.news)
    busy = [one.cpu_s / duration_s for one in news] or [0.0]
    clocks = {"response_time": tally.response, "service_time": tally.service, "schedule_lag": tally.lag}
    if not measures_lag:
        del clocks["schedule_lag"]
    times = {f"{clock}_us": _quantiles(histogram) for clock, histogram in clocks.items()}
    times["response_time_us"] = _quantiles(tally.response, tally.longest_ns)
    summary = records.LoadSummary.from_figures(
        records.RequestCounts.from_outcomes(
            ok=tally.ok, failed=tally.failed, wrong=tally.errors["check"], unanswered=unanswered
        ),
        duration_s,
        target=target,
        status={str(status): count for status, count in sorted(tally.statuses.items())},
        errors=records.ErrorCounts(**tally.errors),
        **times,
        bytes=records.ByteCounts(received=tally.received_bytes, received_body=tally.received_bytes),
        generator=records.GeneratorUse(
            version=f"Locust {version}",
            cpu_fraction=sum(busy) / len(busy),
            busy_fraction=max(busy),
            peak_rss_bytes=sum(one.peak_rss_bytes for one in news),
            threads=len(processes),
            cpus=[],
            clock=CLOCK,
        ),
        steps=_summarize_steps(recording.tallies),
        verdict=_judge(recording, tally, max(busy), times),
    )
    histograms = {f"{clock}_ns": histogram.to_text() for clock, histogram in clocks.items()}
    return LoadEnd(stopped=stopped, summary=summary, histograms=histograms)


def _add_up(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total


def _summarize_steps(tallies: dict[Key, Tally]) -> dict[str, StepSummary]:
    """Returns a step for each type and name. Merges the rarest steps above `MOST_STEPS` into one step."""
    by_count = sorted(tallies.items(), key=lambda item: -item[1].requests)
    shown, rare = by_count[:MOST_STEPS], [tally for _, tally in by_count[MOST_STEPS:]]
    by_name = sorted(shown, key=lambda item: item[0][::-1])
    steps = {f"{kind} {name}".strip(): _summarize_step(tally) for (kind, name), tally in by_name}
    return steps | ({OTHERS: _summarize_step(_add_up(rare))} if rare else {})


def _summarize_step(tally: Tally) -> StepSummary:
    return StepSummary(
        sent=tally.requests,
        completed=tally.completed,
        ok=tally.ok,
        failed=tally.failed,
        response_time_us=_quantiles(tally.response, tally.longest_ns),
    )


def _quantiles(histogram: Hdr, longest_ns: int | None = None) -> Quantiles:
    return Quantiles.from_counts(histogram.counts, (histogram.max if longest_ns is None else longest_ns) / 1e3)


def _judge(recording: Recording, tally: Tally, busy: float, times: dict[str, Quantiles]) -> Verdict:
    reasons = []
    lost = sum(process.is_lost for process in recording.processes.values())
    if lost:
        fact = f"{lost} of {len(recording.processes)} processes of Locust died"
        cause = "the users in these processes stopped, and the last requests of these users are missing"
        reasons.append(Reason("lost", "invalid", fact, "limit 0", cause))
    if not tally.completed:
        cause = "the target does not respond, no task sends a request, or the workers run without weir"
        reasons.append(Reason("nothing", "invalid", "no request was answered", cause=cause))
    if tally.failed:
        errors = ", ".join(f"{kind} {count}" for kind, count in tally.errors.most_common())
        fact = f"{tally.failed} of {tally.requests} requests failed"
        reasons.append(Reason("failed", "suspect", fact, f"{errors}; limit 0"))
    if busy >= records.BUSY_FRACTION:
        fact = f"the busiest process of Locust was busy {busy:.0%} of the time"
        cause = "the response times include waiting time in Python"
        reasons.append(Reason("busy", "suspect", fact, f"limit {records.BUSY_FRACTION:.0%}", cause, _MORE_CPU))
    lag_us, median_us = times.get("schedule_lag_us", Quantiles()).p99, times["response_time_us"].p50
    if lag_us is not None and median_us is not None and lag_us > LAG_LIMIT * median_us:
        fact = f"the 99th percentile of the schedule lag is {lag_us:.0f} us"
        limit = f"limit {LAG_LIMIT:.0%} of the median response time, {median_us:.0f} us"
        cause = "users waited for their process, or the process waited for a CPU"
        reasons.append(Reason("lag", "suspect", fact, limit, cause, _MORE_CPU))
    if recording.foreign:
        fact = f"{recording.foreign} of {tally.requests} requests are not from the client of HttpUser or FastHttpUser"
        cause = "weir cannot count such requests in flight or without a response"
        reasons.append(Reason("clients", "valid", fact, cause=cause))
    verdict = TrialVerdict(tuple(reasons))
    texts, kinds = list(verdict.texts), [reason.kind for reason in reasons]
    return Verdict(validity=verdict.validity, reasons=texts, kinds=kinds)
