"""Tests what makes a trial suspect or invalid, from plain figures."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.load_summary import summary
from weir.audit.laws import Violation
from weir.lab.post_checks import PostLoadCheck
from weir.lab.trial_verdict import Facts, judge
from weir.model.load_records import FEWER_AGENTS, LATE_AGENT, LOST_AGENT, ErrorCounts, LoadSummary, Quantiles, Verdict
from weir.model.resources import NetworkUse, StackResources
from weir.model.run_types import MeasurementWindow
from weir.model.verdict import TrialVerdict

LOAD: dict[str, Any] = {
    "intended": 1000, "completed": 1000, "failed": 0, "errors": {}, "generator": [], "max_rate_rps": 1000.0,
    "busy_fraction": 0.5, "generator_cpu_fraction": 0.5, "response_p50_us": 1000.0,
}  # fmt: skip
WINDOW: dict[str, Any] = {"steady": True, "not_steady_because": "", "extended": False}
STACK: dict[str, Any] = {"steal_fraction": 0.0, "tcp_retransmits": 0, "listen_overflows": 0, "listen_drops": 0}
SOLD_TWICE = PostLoadCheck(discrepancies=("3 tickets sold twice",))
GOOD: dict[str, Any] = {"throughput_rps": 100.0, "lag_p99_us": 10.0}


def load(**figures: Any) -> LoadSummary:
    whole, kinds = summary(), [kind for kind, _ in figures["generator"]]
    counts = {name: figures[name] for name in ("intended", "completed", "failed")}
    use = {"max_rate_rps": figures["max_rate_rps"], "busy_fraction": figures["busy_fraction"]}
    use["cpu_fraction"] = figures["generator_cpu_fraction"]
    update: dict[str, Any] = {
        "requests": replace(whole.requests, **counts),
        "errors": ErrorCounts(**figures["errors"]),
        "response_time_us": Quantiles(p50=figures["response_p50_us"]),
        "generator": replace(whole.generator, **use),
        "verdict": Verdict(validity="valid", reasons=[text for _, text in figures["generator"]], kinds=kinds),
    }
    return replace(whole, **update)


def resources(*, steal_fraction: float | None, **counts: int) -> StackResources:
    more = {"received_bytes": 0, "sent_bytes": 0, "loopback_bytes": 0}
    return StackResources(
        cpu_user_s=0.0,
        cpu_system_s=0.0,
        peak_threads=1,
        peak_processes=1,
        pss_bytes=None,
        private_bytes=None,
        steal_fraction=steal_fraction,
        network=NetworkUse(**counts, **more, peak_sockets={}) if counts else None,
    )


def judged(**overrides: Any) -> TrialVerdict:
    """Returns the verdict on a good trial with some figures changed: of the load, of the measured window, and around
    them."""
    of_load, of_window, of_stack = (
        {name: overrides.pop(name, known[name]) for name in known} for known in (LOAD, WINDOW, STACK)
    )
    window = MeasurementWindow(0.0, 10.0, of_window["steady"], of_window["not_steady_because"], of_window["extended"])
    return judge(
        Facts(
            load=load(**of_load),
            window=window,
            **({"stack": "flask"} | GOOD | {"resources": resources(**of_stack)} | overrides),
        )
    )


def only(verdict: TrialVerdict) -> tuple[str, str]:
    (reason,) = verdict.reasons
    return reason.kind, reason.validity


def test_a_trial_without_a_fault_is_valid() -> None:
    assert judged() == TrialVerdict()
    assert judged().validity == "valid"


def test_what_is_not_known_is_no_reason() -> None:
    nothing = dict.fromkeys(("max_rate_rps", "busy_fraction", "response_p50_us"), None)
    facts = Facts(stack="flask", load=load(**(LOAD | nothing)), resources=resources(steal_fraction=None))
    assert judge(facts) == TrialVerdict()


def test_one_failed_request_makes_a_trial_invalid_and_its_kind_is_said() -> None:
    verdict = judged(failed=1, errors={"timeout": 1, "reset": 0})
    assert only(verdict) == ("failed requests", "invalid")
    assert "1 of 1000 requests failed (timeout 1)" in verdict.texts[0]


def test_where_failures_are_a_result_they_are_noted_with_their_share_and_the_trial_counts() -> None:
    verdict = judged(failed=20, errors={"timeout": 20}, failures="measure")
    assert only(verdict) == ("failed requests", "valid")
    assert verdict.validity == "valid"
    assert "2.00%" in verdict.texts[0]


def test_wrong_answers_under_load_lead_to_the_command_that_checks_them() -> None:
    assert "next: weir stacks check flask" in judged(failed=2, errors={"check": 2}).texts[0]
    assert "weir stacks check" not in judged(failed=2, errors={"check": 1, "reset": 1}).texts[0]
    assert "next: read the server's log" in judged(failed=2, errors={"check": 2}, stack="").texts[0]


def test_a_script_that_ends_at_once_makes_a_trial_invalid() -> None:
    verdict = judged(script_ended_s=0.02)
    assert only(verdict) == ("short script", "invalid")
    assert "the script ended after 1,000 responses and 0.02 s (limit 0.3 s)" in verdict.texts[0]
    assert judged(script_ended_s=1.0) == TrialVerdict()


@pytest.mark.parametrize(("failures", "validity"), [("reject", "invalid"), ("measure", "suspect")])
def test_a_stack_that_ended_during_the_load_is_no_valid_trial_of_it(failures: str, validity: str) -> None:
    verdict = judged(stack_ended="by signal 9 during the load", failures=failures)
    assert only(verdict) == ("stack ended", validity)
    assert "ended by signal 9" in verdict.texts[0]


def test_an_invariant_that_does_not_hold_rejects_a_trial_or_is_reported() -> None:
    assert only(judged(after=SOLD_TWICE)) == ("invariant", "invalid")
    reported = judged(after=SOLD_TWICE, invariant="report")
    assert reported.validity == "valid"
    assert "3 tickets sold twice" in reported.texts[0]


@pytest.mark.parametrize(
    ("facts", "below", "above", "kind", "validity"),
    [
        ("throughput_rps", 500, 501, "generator limit", "suspect"),
        ("busy_fraction", 0.849, 0.85, "generator busy", "suspect"),
        ("lag_p99_us", 100, 101, "schedule lag", "suspect"),
        ("steal_fraction", 0.02, 0.021, "steal", "suspect"),
        ("tcp_retransmits", 1, 2, "retransmits", "suspect"),
        ("listen_overflows", 0, 1, "listen queue", "suspect"),
        ("listen_drops", 0, 1, "listen queue", "suspect"),
        ("load_shares_stack_cpu", False, True, "shared CPU", "suspect"),
        ("steady", True, False, "no steady state", "suspect"),
    ],
)
def test_each_figure_has_a_threshold(facts: str, below: float, above: float, kind: str, validity: str) -> None:
    under = judged(**{facts: below})
    assert (kind, validity) not in {(reason.kind, reason.validity) for reason in under.reasons}
    assert only(judged(**{facts: above})) == (kind, validity)


def test_an_unknown_highest_rate_limits_nothing() -> None:
    assert judged(throughput_rps=5000, max_rate_rps=None).validity == "valid"


def test_a_highest_rate_that_is_exceeded_was_measured_too_low_and_condemns_nothing() -> None:
    assert judged(throughput_rps=1200, busy_fraction=0.9).validity == "invalid"
    assert judged(throughput_rps=1201, busy_fraction=0.9).validity == "suspect"


def test_a_generator_at_its_highest_rate_is_what_is_measured_only_if_it_is_busy() -> None:
    assert judged(throughput_rps=900, busy_fraction=0.9).validity == "suspect"
    assert judged(throughput_rps=901, busy_fraction=0.9).validity == "invalid"
    assert only(judged(throughput_rps=901, busy_fraction=0.5)) == ("generator limit", "suspect")


def test_dropped_connections_are_a_result_where_failures_are() -> None:
    assert judged(listen_drops=5, failures="measure").validity == "valid"


def test_a_broken_law_makes_a_trial_invalid() -> None:
    assert only(judged(violations=[Violation("impossible", "percentiles rise", "p50 is 2 ms and p90 1 ms.", "")])) == (
        "physics",
        "invalid",
    )


def test_the_generators_own_reasons_count_unless_the_lab_knows_better() -> None:
    verdict = judged(
        generator=[("busy", "the generator was busy"), ("failed", "x failed"), ("lag", "late"), ("redirects", "301s")]
    )
    assert only(verdict) == ("redirects", "valid")
    assert judged(generator=[("unsent", "12 were not sent")]).validity == "suspect"
    assert judged(generator=[(LATE_AGENT, "one began 9 ms late")]).validity == "suspect"
    assert judged(generator=[(FEWER_AGENTS, "one was lost before")]).validity == "suspect"
    assert judged(generator=[("gc", "the collector stopped it")]).validity == "suspect"
    assert only(judged(generator=[(LOST_AGENT, "one is lost")])) == ("lost agent", "invalid")
    assert judged(generator=[("lost", "one process died")]).validity == "invalid"


def test_a_script_without_an_answered_request_makes_a_trial_invalid_and_leads_to_its_output() -> None:
    (reason,) = judged(other_generator="locust", generator=[("no_response", "no request was answered")]).reasons
    assert (reason.validity, reason.next_step) == ("invalid", "read the output of locust in the run's folder logs")


def test_ports_that_are_used_up_are_the_generators_failure_even_where_failures_are_a_result() -> None:
    verdict = judged(
        failed=9, errors={"connect": 9}, failures="measure", generator=[("ports", "the ports are used up")]
    )
    assert verdict.validity == "invalid"


def test_the_worst_reason_decides_and_all_are_kept() -> None:
    verdict = judged(failed=2, errors={"timeout": 2}, steal_fraction=0.5, steady=False, not_steady_because="it drifts")
    assert verdict.validity == "invalid"
    assert len(verdict.reasons) == 3


def test_a_reason_is_a_fact_a_threshold_a_cause_and_a_next_step() -> None:
    (text,) = judged(steal_fraction=0.031).texts
    assert text == (
        "the hypervisor took 3.1% of the server's CPU time (limit 2%): other virtual machines on the same host; "
        "next: repeat at another time, or on a machine of your own"
    )


def test_what_another_generator_cannot_tell_is_a_note_and_no_fault() -> None:
    verdict = judged(
        other_generator="hey", busy_fraction=None, lag_p99_us=None, steady=None, generator_cpu_fraction=0.5
    )
    assert only(verdict) == ("unchecked", "valid")
    assert verdict.texts[0].startswith("hey reports no intervals and no schedule lag")


def test_a_claim_of_another_generator_that_cannot_be_makes_its_trial_suspect_with_the_cause() -> None:
    mean = Violation("impossible", "users = …", "the mean is 17 ms", "It adds what it never measured.")
    load = Violation("capped", "throughput ≤ …", "the throughput is 95 rps", "The load limits it.")
    verdict = judged(other_generator="wrk", violations=[load, mean])
    reason = next(one for one in verdict.reasons if one.kind == "physics")
    assert (reason.validity, reason.cause) == ("suspect", "It adds what it never measured")
    assert reason.fact == "wrk reports impossible figures: the mean is 17 ms (users = …)"


def test_another_generator_that_used_all_of_its_cpus_is_suspect() -> None:
    verdict = judged(other_generator="hey", busy_fraction=None, generator_cpu_fraction=0.97)
    assert ("generator busy", "suspect") in [(one.kind, one.validity) for one in verdict.reasons]
    # weir's own generator polls while it waits, and reports itself how busy it was.
    assert judged(generator_cpu_fraction=1.0) == TrialVerdict()


def test_a_count_that_the_kernel_did_not_see_makes_a_trial_suspect() -> None:
    assert only(judged(connections=4, requests_in_kernel=900)) == ("counts", "suspect")
    assert "counts 1,000 responses, the kernel counts 900" in judged(connections=4, requests_in_kernel=900).texts[0]
    assert judged(connections=4, requests_in_kernel=1009) == TrialVerdict()
    assert judged(connections=4, requests_in_kernel=None) == TrialVerdict()


def test_that_nobody_could_listen_in_is_a_note() -> None:
    assert only(judged(not_tapped="packet sockets take root")) == ("not tapped", "valid")


def test_a_trial_without_samples_of_its_server_is_suspect_and_one_of_unknown_processes_has_a_note() -> None:
    verdict = judged(resources=None)
    assert only(verdict) == ("no samples", "suspect")
    assert "the server's CPU time, memory and network are unknown" in verdict.texts[0]
    external = judged(resources=None, processes_unknown=True)
    assert only(external) == ("no samples", "valid")
    assert "external.ID.pids" in external.texts[0]
