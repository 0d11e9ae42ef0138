"""Converts a tool's report to weir's own records. A figure that the report lacks stays empty."""

from collections.abc import Mapping

from weir.model import load_records
from weir.model.load import LoadPlan
from weir.model.load_records import PERCENTILES, ErrorCounts, GeneratorUse, LoadEnd, Quantiles, RequestCounts
from weir.model.reported_result import Figure, ReportedResult

_FIRST_WRONG_STATUS = 400


def build_load_end(
    plan: LoadPlan, result: ReportedResult, generator: GeneratorUse, *, load_s: float, stopped: str
) -> LoadEnd:
    """Builds the end record of a load from the tool's report. `load_s`: time from the start of the load to the end of
    the program. weir uses `load_s` if the report has no duration. `stopped`: the cause of the end, as in `LoadEnd`."""
    counts, errors = _counts(plan, result)
    summary = load_records.LoadSummary.from_figures(
        counts,
        _duration_s(result) or load_s,
        target=plan.title,
        throughput_rps=None if result.throughput_rps is None else result.throughput_rps.value,
        status=dict(result.statuses),
        errors=errors,
        response_time_us=_quantiles(result),
        bytes=load_records.ByteCounts(received=result.received_bytes or 0),
        generator=generator,
    )
    return LoadEnd(stopped=stopped, histograms={}, summary=summary)


def compute_cpu_fraction(cpu_s: float, load_s: float, threads: int, cpus: int) -> float:
    """Returns a tool's CPU time as a share of the maximum CPU time of its threads on its CPUs.

    >>> compute_cpu_fraction(1.0, 4.0, threads=2, cpus=1)
    0.25
    """
    return cpu_s / (load_s * min(threads, cpus))


def _counts(plan: LoadPlan, result: ReportedResult) -> tuple[RequestCounts, ErrorCounts]:
    """Counts requests by outcome. If the report counts statuses, the plan decides which statuses are correct. Otherwise
    the tool's count of failures decides."""
    ok = (result.requests or 0) - (result.failed or 0)
    errors = dict(result.errors)
    if result.statuses:
        right = sum(often for status, often in result.statuses.items() if _is_right(int(status), plan.expected_status))
        ok, errors["check"] = right, sum(result.statuses.values()) - right
    failed = sum(errors.values())
    # A failure without a kind is a request without a response at the end of the load.
    unanswered = max(0, (result.failed or 0) - failed)
    counts = RequestCounts.from_outcomes(
        ok=ok, failed=failed, wrong=errors.get("check", 0), unanswered=unanswered, unsent=result.unsent or 0
    )
    return counts, ErrorCounts(**errors)


def _is_right(status: int, expected: tuple[int, ...] | None) -> bool:
    return status < _FIRST_WRONG_STATUS if expected is None else status in expected


def _duration_s(result: ReportedResult) -> float | None:
    if result.duration_s is not None:
        return result.duration_s.value
    if result.requests and result.throughput_rps is not None and result.throughput_rps.value > 0:
        return result.requests / result.throughput_rps.value
    return None


def _quantiles(result: ReportedResult) -> Quantiles:
    found: Mapping[str, Figure | None] = {
        **{name: getattr(result, f"{name}_s") for name in ("mean", "stdev", "min", "max")},
        **{name: result.quantiles_s.get(quantile) for name, quantile in PERCENTILES.items()},
    }
    return Quantiles(**{name: _us(figure) for name, figure in found.items()})


def _us(figure: Figure | None) -> float | None:
    """Converts a figure to microseconds. None for a figure that rounding may have made 0, such as 0 ms."""
    return None if figure is None or figure.low <= 0 else round(figure.value * 1e6, 3)
