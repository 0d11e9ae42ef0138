"""What a load of a thousand requests came to, where a test needs one."""

from weir.model.records import LoadSummary


def summary(*, failed: int = 0, timeouts: int = 0) -> LoadSummary:
    """1,000 requests in 10 s, some of them failed."""
    return LoadSummary.model_validate(
        {
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
        }
    )  # fmt: skip
