"""A generator in a synthetic trial: its throughput, its report, and the kernel's view."""

import base64
from dataclasses import dataclass, replace
from typing import Any

from weir.model.load_records import CLOCKS, Quantiles
from weir.model.reported_result import Figure, ReportedResult
from weir.model.run_types import CaptureResult, TrialResult


@dataclass(frozen=True)
class SyntheticGenerator:
    """The truth about one generator."""

    name: str
    reach: float = 1.0
    """Share of the server's throughput that the generator reaches."""
    says: float = 1.0
    """Reported response times ÷ response times that the kernel saw."""
    cpu_fraction: float = 0.5
    memory_bytes: int = 9_000_000
    rounding_s: float = 0.0
    """Step to which the generator rounds its times."""


def made_by(generator: SyntheticGenerator, measured: TrialResult) -> TrialResult:
    """Returns the trial as another generator reports it, with the kernel's view beside it."""
    seen, summary = measured.histograms["response_time_ns"], measured.summary
    assert summary is not None
    use = replace(
        summary.generator,
        cpu_fraction=generator.cpu_fraction,
        peak_rss_bytes=generator.memory_bytes,
        max_rate_rps=50_000.0,
    )
    times = summary.response_time_us
    tap = CaptureResult(
        requests=summary.requests.completed // 2,
        connections=8,
        packets=summary.requests.completed,
        dropped_packets=0,
        response_time_us=times,
        histogram=base64.b64encode(seen).decode(),
    )
    if generator.name == "weir":
        return replace(measured, tap=tap, summary=replace(summary, generator=use))
    said = Quantiles(mean=times.mean, **{name: generator.says * getattr(times, name) for name in ("p50", "p99")})
    quantiles = {0.5: said.p50, 0.99: said.p99}
    result = ReportedResult(
        name=generator.name,
        tool=generator.name,
        throughput_rps=Figure(summary.throughput_rps, 0.005),
        duration_s=Figure(summary.duration_s),
        requests=summary.requests.completed,
        failed=0,
        mean_s=Figure((times.mean or 0.0) / 1e6),
        quantiles_s={
            quantile: Figure((time_us or 0.0) / 1e6, generator.rounding_s) for quantile, time_us in quantiles.items()
        },
    )
    use = replace(use, version=f"{generator.name} 1.0", busy_fraction=None, clock="from here to there")
    clocks: dict[str, Any] = {f"{clock}_us": Quantiles() for clock in CLOCKS if clock != "response_time"}
    told = replace(summary, response_time_us=said, generator=use, **clocks)
    return replace(measured, summary=told, histograms={}, reported_result=result, tap=tap)
