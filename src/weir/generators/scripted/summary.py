"""Builds the last record of a load from a recording: the summary, the histograms and the verdict. Pure."""

from collections.abc import Iterable, Iterator

from weir.audit.laws import find_violations
from weir.generators.scripted.lines import Claims, Started
from weir.generators.scripted.recording import Key, Recording, Tally
from weir.model import load_records
from weir.model.hdr import Hdr
from weir.model.load_records import LoadEnd, Quantiles, StepSummary, Verdict
from weir.model.reported_result import Figure, ReportedResult
from weir.model.verdict import Reason, TrialVerdict

LAG_LIMIT = 0.1
"""Limit for the p99 of the schedule lag, as a share of the median response time. The engine has the same limit."""
PAUSE_LIMIT = 0.01
"""Limit for the share of time in which garbage collections stop the tool. Above it, the p99 contains the pauses."""
LEAST_JUDGED_S = 1.0
"""Minimum length of a load whose CPU time weir judges. The kernel counts CPU time in hundredths of a second."""
MOST_STEPS = 200
"""Maximum number of steps in a summary. A script may give every request its own name."""
OTHERS = "(others)"


def summarize(
    recording: Recording, started: Started, *, target: str, stopped: str, clock: str, pauses_s: float = 0.0
) -> LoadEnd:
    """Returns the last record of a load. `target` names the load. `clock`: the start and end of the response times.

    `stopped` is the reason why the load ended: `duration`, `complete` or `signal`. `pauses_s`: time in which garbage
    collections stopped the tool.
    """
    tally, duration_s = recording.total, recording.duration_s
    processes = recording.load_processes
    news = [process.news for process in processes if process.news is not None]
    unanswered = sum(one.unanswered for one in news)
    unanswered += sum(one.news.in_flight or 0 for one in processes if one.is_lost and one.news)
    busy = [one.cpu_s / duration_s / started.cpus for one in news] or [0.0]
    clocks = {"response_time": tally.response, "service_time": tally.response}
    if recording.measures_lag:
        clocks |= {"service_time": recording.service.collect(), "schedule_lag": recording.lag.collect()}
    times = {f"{clock}_us": _quantiles(histogram) for clock, histogram in clocks.items()}
    times["response_time_us"] = _quantiles(tally.response, tally.longest_ns)
    summary = load_records.LoadSummary.from_figures(
        load_records.RequestCounts.from_outcomes(
            ok=tally.ok,
            failed=tally.failed,
            wrong=tally.errors["check"],
            unanswered=unanswered,
            unsent=sum(one.unsent for one in news),
        ),
        duration_s,
        target=target,
        status={str(status): count for status, count in sorted(tally.statuses.items())},
        errors=load_records.ErrorCounts(**tally.errors),
        **times,
        bytes=load_records.ByteCounts(received=tally.received_bytes, received_body=tally.received_bytes),
        generator=load_records.GeneratorUse(
            version=started.version,
            cpu_fraction=sum(busy) / len(busy),
            busy_fraction=max(busy),
            peak_rss_bytes=sum(one.peak_rss_bytes for one in news),
            threads=len(processes) * started.cpus,
            cpus=[],
            clock=clock,
        ),
        steps=_summarize_steps(recording.tallies),
        verdict=_judge(recording, started, max(busy), times, pauses_s),
    )
    histograms = {f"{clock}_ns": histogram.to_text() for clock, histogram in clocks.items()}
    return LoadEnd(stopped=stopped, summary=summary, histograms=histograms)


def _summarize_steps(tallies: dict[Key, Tally]) -> dict[str, StepSummary]:
    """Returns a step for each type and name. Merges the rarest steps above `MOST_STEPS` into one step."""
    by_count = sorted(tallies.items(), key=lambda item: -item[1].requests)
    shown, rare = by_count[:MOST_STEPS], [tally for _, tally in by_count[MOST_STEPS:]]
    by_name = sorted(shown, key=lambda item: item[0][::-1])
    steps = {f"{kind} {name}".strip(): _summarize_step(tally) for (kind, name), tally in by_name}
    return steps | ({OTHERS: _summarize_step(_add_up(rare))} if rare else {})


def _add_up(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total


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


def _judge(
    recording: Recording, started: Started, busy: float, times: dict[str, Quantiles], pauses_s: float
) -> Verdict:
    reasons, tally, tool = [], recording.total, started.version.partition(" ")[0]
    more_cpu = f"give {tool} more CPUs, or use fewer users"
    if tool == "Locust":
        more_cpu = "use more --processes, fewer users, FastHttpUser, or weir convert"
    lost = sum(process.is_lost for process in recording.processes.values())
    if lost:
        fact = f"{lost} of {len(recording.processes)} processes of {tool} died"
        cause = "the users in these processes stopped, and the last requests of these users are missing"
        reasons.append(Reason("lost", "invalid", fact, "limit 0", cause))
    if not tally.completed:
        cause = "the target does not respond, or the script sends no request"
        reasons.append(Reason("no_response", "invalid", "no request was answered", cause=cause))
    if tally.failed:
        errors = ", ".join(f"{kind} {count}" for kind, count in tally.errors.most_common())
        fact = f"{tally.failed} of {tally.requests} requests failed"
        reasons.append(Reason("failed", "suspect", fact, f"{errors}; limit 0"))
    if busy >= load_records.BUSY_FRACTION and recording.duration_s >= LEAST_JUDGED_S:
        place = "the busiest process of Locust" if tool == "Locust" else tool
        cpus = f" of {started.cpus} CPUs" if started.cpus > 1 else ""
        fact = f"{place} was busy {busy:.0%} of the time{cpus}"
        cause = f"the response times include waiting time in {tool}"
        reasons.append(Reason("busy", "suspect", fact, f"limit {load_records.BUSY_FRACTION:.0%}", cause, more_cpu))
    if pauses_s > PAUSE_LIMIT * recording.duration_s:
        fact = f"garbage collections stopped {tool} for {pauses_s / recording.duration_s:.1%} of the time"
        cause = "the slowest response times include these pauses"
        reasons.append(Reason("gc", "suspect", fact, f"limit {PAUSE_LIMIT:.0%}", cause, "set more memory with HEAP"))
    lag_us, median_us = times.get("schedule_lag_us", Quantiles()).p99, times["response_time_us"].p50
    if lag_us is not None and median_us is not None and lag_us > LAG_LIMIT * median_us:
        fact = f"the 99th percentile of the schedule lag is {lag_us:.0f} us"
        limit = f"limit {LAG_LIMIT:.0%} of the median response time, {median_us:.0f} us"
        cause = "users waited for their process, or the process waited for a CPU"
        reasons.append(Reason("lag", "suspect", fact, limit, cause, more_cpu))
    if recording.foreign:
        fact = f"{recording.foreign} of {tally.requests} requests are not from the client of HttpUser or FastHttpUser"
        cause = "weir cannot count such requests in flight or without a response"
        reasons.append(Reason("clients", "valid", fact, cause=cause))
    if recording.claims is not None:
        reasons += _check_claims(recording.claims, recording, tool)
    verdict = TrialVerdict(tuple(reasons))
    texts, kinds = list(verdict.texts), [reason.kind for reason in reasons]
    return Verdict(validity=verdict.validity, reasons=texts, kinds=kinds)


def _check_claims(claims: Claims, recording: Recording, tool: str) -> Iterator[Reason]:
    """Yields reasons about the tool's own figures: violated laws, and differences from the recorded requests."""
    reported = ReportedResult(
        name=tool,
        tool=tool,
        users=recording.users or claims.users or None,
        throughput_rps=Figure(claims.throughput_rps, 0.05),
        requests=claims.requests,
        failed=claims.failed,
        mean_s=Figure(claims.mean_ms / 1e3, 0.001),
        min_s=Figure(claims.min_ms / 1e3, 0.0005),
        max_s=Figure(claims.max_ms / 1e3, 0.0005),
    )
    for violation in find_violations(reported):
        if violation.kind == "impossible":
            yield Reason("audit", "suspect", f"{tool}'s own report is impossible", violation.law, violation.found)
    left_out = [process.news.unclaimed for process in recording.load_processes if process.news]
    said, tally = (claims.requests, claims.failed), recording.total
    found = (tally.requests - sum(all_ for all_, _ in left_out), tally.failed - sum(failed for _, failed in left_out))
    if said != found:
        fact = f"{tool} reports {said[0]} requests ({said[1]} failed), weir recorded {found[0]} ({found[1]} failed)"
        yield Reason("counts", "suspect", fact, cause=f"{tool} left out or repeated requests in one of its outputs")
