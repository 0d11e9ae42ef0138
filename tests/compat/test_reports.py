"""Reports that the tools really printed, read; and what only looks like one."""

from contextlib import suppress
from pathlib import Path

import pytest

from weir.audit.physics import breaches
from weir.compat.reports import ReportError, read_report
from weir.model.claim import Claim

REPORTS = Path(__file__).parent.parent / "data" / "reports"


def only(name: str) -> Claim:
    claims = read_report((REPORTS / name).read_text(), name)
    assert claims is not None
    (claim,) = claims
    return claim


def test_wrk() -> None:
    claim = only("wrk.txt")
    assert (claim.tool, claim.users, claim.requests, claim.failed) == ("wrk", 8, 122_265, 0)
    assert claim.throughput_rps is not None
    assert claim.throughput_rps.value == 122_041.66
    assert claim.mean_s is not None
    assert (claim.mean_s.value, claim.mean_s.rounding) == pytest.approx((189.92e-6, 0.005e-6))
    assert {q: figure.value for q, figure in claim.quantiles_s.items()} == pytest.approx(
        {0.5: 33e-6, 0.75: 43e-6, 0.9: 332e-6, 0.99: 2.93e-3}
    )


def test_wrk2_is_told_from_wrk_and_bound_by_no_connections() -> None:
    text = (REPORTS / "wrk.txt").read_text().replace("Latency Distribution", "Latency Distribution (HdrHistogram - Recorded Latency)")
    claims = read_report(text, "wrk2")
    assert claims is not None
    assert (claims[0].tool, claims[0].users) == ("wrk2", None)


def test_hey() -> None:
    claim = only("hey.txt")
    assert claim.tool == "hey"
    assert claim.statuses.keys() == {"200"}
    assert claim.requests == claim.statuses["200"]
    assert claim.quantiles_s.keys() == {0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99}
    assert breaches(claim) == ()


def test_ab() -> None:
    claim = only("ab.txt")
    assert (claim.tool, claim.users, claim.requests) == ("ab", 8, 3000)
    assert claim.max_s is not None
    assert claim.max_s.value == 0.002
    assert breaches(claim) == ()


def test_oha() -> None:
    claim = only("oha.json")
    assert claim.tool == "oha"
    assert claim.requests == claim.statuses["200"] + (claim.failed or 0)
    assert 0.5 in claim.quantiles_s


def test_k6() -> None:
    claim = only("k6.json")
    assert (claim.tool, claim.users) == ("k6", 8)
    assert claim.quantiles_s.keys() == {0.9, 0.95}
    assert breaches(claim) == ()


def test_locust() -> None:
    claim = only("locust_stats.csv")
    assert (claim.tool, claim.requests, claim.failed) == ("Locust", 4208, 0)
    assert claim.mean_s is not None
    assert claim.mean_s.value == pytest.approx(1.3752e-3, rel=1e-3)
    assert 0.999 in claim.quantiles_s
    assert breaches(claim) == ()


def test_jmeters_samples_show_who_came_when_and_how_often_each_asked() -> None:
    rows = ["timeStamp,elapsed,label,responseCode,threadName,success,bytes"]
    for thread in range(10):
        rows += [f"{1000 * thread + 50 * loop},50,ping,200,users 1-{thread + 1},{str(loop != 2).lower()},100" for loop in range(3)]
    claims = read_report("\n".join(rows) + "\n", "samples.jtl")
    assert claims is not None
    (claim,) = claims
    assert (claim.users, claim.loops, claim.ramp_s, claim.requests, claim.failed) == (10, 3, 9.0, 30, 10)
    assert [breach.kind for breach in breaches(claim)] == ["capped"]


def test_jmeters_reports_have_a_claim_for_each_label() -> None:
    text = """Label,# Samples,Average,Min,Max,Std. Dev.,Error %,Throughput,Received KB/sec,Sent KB/sec,Avg. Bytes
ping,10000,14377,2010,26000,5000.00,1.00%,75.8,10.0,9.0,300.0
issue,90000,1138,2,9000,700.00,0.00%,2483.2,10.0,9.0,300.0
TOTAL,100000,2461,2,26000,5000.00,0.10%,100.0,10.0,9.0,300.0
"""
    claims = read_report(text, "summary.csv")
    assert claims is not None
    assert [claim.name for claim in claims] == ["summary.csv: ping", "summary.csv: issue"]
    assert claims[0].failed == 100


@pytest.mark.parametrize("name", sorted(path.name for path in REPORTS.iterdir()))
def test_a_report_that_is_cut_off_anywhere_is_an_error_or_no_report_but_never_a_traceback(name: str) -> None:
    text = (REPORTS / name).read_text()
    for end in range(0, len(text), 7):
        with suppress(ReportError):
            claims = read_report(text[:end], name)
            assert claims is None or claims[0].name == name


def test_what_is_no_report_is_none() -> None:
    assert read_report("", "nothing") is None
    assert read_report('{"summary": 1}', "other.json") is None
    assert read_report("a,b\n1,2\n", "other.csv") is None
