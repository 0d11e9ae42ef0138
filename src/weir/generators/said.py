"""What a tool said of its load, in the records of weir's own: as much as it said, and nothing in place of the rest."""

from collections.abc import Mapping
from dataclasses import dataclass

from weir.model.claim import Claim, Figure
from weir.model.load import LoadPlan
from weir.model.records import ByteCounts, ErrorCounts, GeneratorUse, LoadEnd, LoadSummary, Quantiles, RequestCounts, Verdict

_QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
_FIRST_WRONG_STATUS = 400


@dataclass(frozen=True, slots=True)
class Usage:
    """What its processes used, and for how long."""

    load_s: float
    """From the beginning of the load to the end of the program."""
    load_cpu_s: float
    """CPU time in that."""
    peak_rss_bytes: int


def load_end(plan: LoadPlan, claim: Claim, usage: Usage, *, version: str, clock: str, threads: int, cpus: int, stopped: str) -> LoadEnd:
    """The end of a load, from what the tool said of it.

    Args:
        plan: what was asked for.
        claim: what the tool said.
        usage: what it used.
        version: its name and version.
        clock: what its response times are.
        threads: how many carried the load.
        cpus: how many CPUs it could use.
        stopped: what ended it, in the engine's words.
    """
    counts, errors = _counts(plan, claim)
    duration_s = _duration_s(claim) or usage.load_s
    empty = Quantiles()
    return LoadEnd(
        stopped=stopped,
        histograms={},
        summary=LoadSummary(
            schema_number=1,
            target=plan.title,
            duration_s=duration_s,
            requests=counts,
            throughput_rps=counts.completed / duration_s if claim.throughput_rps is None else claim.throughput_rps.value,
            status=dict(claim.statuses),
            errors=errors,
            response_time_us=_quantiles(claim),
            service_time_us=empty,
            schedule_lag_us=empty,
            connect_time_us=empty,
            time_to_first_byte_us=empty,
            bytes=ByteCounts(received=claim.received_bytes or 0),
            generator=GeneratorUse(
                version=version,
                cpu_fraction=usage.load_cpu_s / (usage.load_s * max(1, min(threads, cpus))),
                peak_rss_bytes=usage.peak_rss_bytes,
                threads=threads,
                cpus=list(plan.cpus),
                clock=clock,
            ),
            verdict=Verdict(validity="valid"),
        ),
    )


def _counts(plan: LoadPlan, claim: Claim) -> tuple[RequestCounts, ErrorCounts]:
    """Requests by what became of them. Where the tool counts statuses, the plan says which are right, else the tool does."""
    ok = (claim.requests or 0) - (claim.failed or 0)
    errors = dict(claim.errors)
    if claim.statuses:
        right = sum(often for status, often in claim.statuses.items() if _is_right(int(status), plan.expected_status))
        ok, errors["check"] = right, sum(claim.statuses.values()) - right
    failed = sum(errors.values())
    # What failed in no way that it tells had no answer when the load ended.
    unanswered = max(0, (claim.failed or 0) - failed)
    sent, unsent = ok + failed + unanswered, claim.unsent or 0
    counts = RequestCounts(
        intended=sent + unsent,
        sent=sent,
        completed=ok + errors.get("check", 0),
        ok=ok,
        failed=failed,
        unanswered=unanswered,
        unsent=unsent,
    )
    return counts, ErrorCounts(**errors)


def _is_right(status: int, expected: tuple[int, ...] | None) -> bool:
    return status < _FIRST_WRONG_STATUS if expected is None else status in expected


def _duration_s(claim: Claim) -> float | None:
    if claim.duration_s is not None:
        return claim.duration_s.value
    if claim.requests and claim.throughput_rps is not None and claim.throughput_rps.value > 0:
        return claim.requests / claim.throughput_rps.value
    return None


def _quantiles(claim: Claim) -> Quantiles:
    found: Mapping[str, Figure | None] = {
        "mean": claim.mean_s,
        "stdev": claim.stdev_s,
        "min": claim.min_s,
        "max": claim.max_s,
        **{name: claim.quantiles_s.get(quantile) for name, quantile in _QUANTILES.items()},
    }
    return Quantiles(**{name: _us(figure) for name, figure in found.items()})


def _us(figure: Figure | None) -> float | None:
    """Microseconds; None of what may as well be nothing, as a mean of 0 whole milliseconds."""
    return None if figure is None or figure.low <= 0 else round(figure.value * 1e6, 3)
