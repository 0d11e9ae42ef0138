from typing import Any

from weir.lab.verdict import judge
from weir.model.records import LoadSummary, Validity, Verdict


def summary(
    *, failed: int = 0, timeouts: int = 0, throughput_rps: float = 100.0, validity: Validity = "valid", reason: str = ""
) -> LoadSummary:
    return LoadSummary.model_validate(
        {
            "schema": 1,
            "target": "http://127.0.0.1:1/",
            "duration_s": 10.0,
            "requests": {"intended": 1000, "sent": 1000, "completed": 1000 - failed, "ok": 1000 - failed, "failed": failed,
                         "unanswered": 0, "unsent": 0},
            "throughput_rps": throughput_rps,
            "status": {"200": 1000 - failed},
            "errors": {"timeout": timeouts},
            **{f"{clock}_us": {} for clock in ("response_time", "service_time", "schedule_lag", "connect_time", "time_to_first_byte")},
            "bytes": {},
            "generator": {"version": "0", "cpu_fraction": 0.5, "peak_rss_bytes": 1, "threads": 1, "cpus": [0]},
            "verdict": {"validity": validity, "reasons": [reason] if reason else []},
        }
    )  # fmt: skip


def judged(one: LoadSummary, **overrides: Any) -> Verdict:
    facts: dict[str, Any] = {"stack_ended": None, "ceiling_rps": 1000.0, "steal_fraction": 0.0, "load_shares_stack_cpu": False}
    return judge(one, **(facts | overrides))


def test_a_trial_without_a_fault_is_valid() -> None:
    assert judged(summary()) == Verdict(validity="valid", reasons=[])


def test_one_failed_request_makes_a_trial_invalid_and_its_kind_is_said() -> None:
    verdict = judged(summary(failed=1, timeouts=1))
    assert verdict.validity == "invalid"
    assert "1 of 1000 requests failed (timeout 1)" in verdict.reasons[0]


def test_a_stack_that_ended_during_the_load_makes_a_trial_invalid() -> None:
    verdict = judged(summary(), stack_ended="by signal 9")
    assert verdict.validity == "invalid"
    assert "ended by signal 9" in verdict.reasons[0]


def test_a_generator_past_half_its_ceiling_makes_a_trial_suspect() -> None:
    assert judged(summary(throughput_rps=499)).validity == "valid"
    assert judged(summary(throughput_rps=501)).validity == "suspect"
    assert judged(summary(throughput_rps=501), ceiling_rps=None).validity == "valid"


def test_steal_and_shared_cpus_make_a_trial_suspect() -> None:
    assert judged(summary(), steal_fraction=0.03).validity == "suspect"
    assert judged(summary(), load_shares_stack_cpu=True).validity == "suspect"


def test_the_worst_reason_decides_and_all_are_kept() -> None:
    verdict = judged(summary(failed=2, timeouts=2, validity="suspect", reason="lag"), steal_fraction=0.5)
    assert verdict.validity == "invalid"
    assert len(verdict.reasons) == 3
