"""Summaries of loads for tests."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from weir.model.hdr import Hdr
from weir.model.load_records import CLOCKS, LoadEnd, LoadSummary


def summary(*, failed: int = 0, timeouts: int = 0) -> LoadSummary:
    """Returns the summary of 1,000 requests in 10 s, some of them failed."""
    return LoadSummary.from_json({
            "schema": 1,
            "target": "http://127.0.0.1:1/",
            "duration_s": 10.0,
            "requests": {"intended": 1000, "sent": 1000, "completed": 1000 - failed, "ok": 1000 - failed, "failed": failed,
                         "unanswered": 0, "unsent": 0},
            "throughput_rps": 100.0,
            "status": {"200": 1000 - failed},
            "errors": {"timeout": timeouts},
            **{f"{clock}_us": {} for clock in ("response_time", "service_time", "schedule_lag", "connect_time", "time_to_first_byte")},
            "bytes": {},
            "generator": {"version": "0", "cpu_fraction": 0.5, "peak_rss_bytes": 1, "threads": 1, "cpus": [0]},
            "verdict": {"validity": "valid", "reasons": []},
        })  # fmt: skip


def load_end(times_ns: Mapping[str, Sequence[int]], *, duration_s: float = 1.0, **given: Any) -> LoadEnd:
    """Returns the end of a load with response times `times_ns["response_time"]`, and the other clocks' times in
    `times_ns`.

    `given` replaces values of the summary.
    """
    completed = len(times_ns.get("response_time", ()))
    histograms, clocks = {}, {}
    for clock in CLOCKS:
        values = times_ns.get(clock, ())
        histogram = Hdr()
        for value in values:
            histogram.add(value)
        histograms[f"{clock}_ns"] = histogram.to_text()
        clocks[f"{clock}_us"] = (
            {"mean": fmean(values) / 1e3, "min": min(values) / 1e3, "max": max(values) / 1e3} if values else {}
        )
    counts = {
        "intended": completed,
        "sent": completed,
        "completed": completed,
        "ok": completed,
        "failed": 0,
        "unanswered": 0,
        "unsent": 0,
    }
    of_it = {
        "duration_s": duration_s,
        "throughput_rps": completed / duration_s,
        "requests": counts,
        "status": {"200": completed} if completed else {},
    }
    return LoadEnd(
        stopped="complete",
        summary=LoadSummary.from_json(summary().to_json() | clocks | of_it | given),
        histograms=histograms,
    )
