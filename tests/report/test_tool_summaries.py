"""Tests a run in the formats of other tools."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_run import FLASK, SANIC, SyntheticStudy, write_run
from weir.findings import of_run
from weir.model.load import ClosedLoad
from weir.model.run_types import TrialResult
from weir.report import exports
from weir.report.tool_summaries import SummaryTable, build_summaries
from weir.store import RunReader


def readings(folder: Path, study: SyntheticStudy) -> dict[str, SummaryTable]:
    with RunReader(write_run(folder / "run.weir", study)) as reader:
        findings = of_run(reader)
        return {
            reading.title: reading
            for reading in build_summaries(reader, findings, exports.collect_samples(reader, findings))
        }


def numbers(cells: tuple[str, ...]) -> list[float]:
    return [float(cell.replace(",", "").rstrip("%")) for cell in cells]


def test_the_tools_say_what_weir_says_of_the_same_requests(tmp_path: Path) -> None:
    found = readings(tmp_path, SyntheticStudy(duration_s=2.0))
    assert list(found) == ["hey", "wrk", "JMeter"]
    for reading in found.values():
        assert [name for name, _ in reading.rows] == ["Flask", "Sanic"]
        assert all(len(cells) == len(reading.columns) for _, cells in reading.rows)
    hey, wrk, jmeter = (dict(reading.rows) for reading in found.values())
    rate, average, fastest, slowest, *percentiles = numbers(hey["Sanic"])
    assert rate == pytest.approx(9_900, rel=0.05)
    assert fastest <= percentiles[0] <= average <= percentiles[-1] <= slowest
    assert percentiles == sorted(percentiles)
    # 20 users make requests without pauses, so response time × throughput is 20, less the loss of weir's synthetic
    # users.
    assert average * rate / 1e3 == pytest.approx(20, rel=0.05)
    assert numbers(wrk["Sanic"])[1] == average
    assert 60 < numbers(wrk["Sanic"])[4] < 100
    assert numbers(jmeter["Sanic"])[1] == average
    assert jmeter["Sanic"][8] == "0.00%"


def test_where_requests_begin_to_fail_is_told_with_what_was_reached_before(tmp_path: Path) -> None:
    def change(label: str, block: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        if label != "sanic" or result.summary.requests.unanswered < 64:
            return result
        counts = result.summary.requests
        failed = replace(counts, ok=counts.completed // 2, failed=counts.completed - counts.completed // 2)
        return replace(result, summary=replace(result.summary, requests=failed))

    loads = [ClosedLoad(n) for n in (4, 16, 64, 256)]
    found = readings(
        tmp_path, SyntheticStudy(stacks=(FLASK, SANIC), loads=loads, aa=None, duration_s=1.0, change=change)
    )
    rows = dict(found["Where requests begin to fail"].rows)
    assert rows["Flask"][:3] == ("256", "none", "–")
    without, first, share, highest, mean_ms = rows["Sanic"]
    assert (without, first) == ("16", "64")
    assert float(share.rstrip("%")) == pytest.approx(50, abs=1)
    assert float(highest.replace(",", "")) == pytest.approx(9_900, rel=0.05)
    assert float(mean_ms) > 0


def test_a_run_in_which_nothing_failed_has_no_such_table(tmp_path: Path) -> None:
    loads = [ClosedLoad(4), ClosedLoad(16)]
    assert "Where requests begin to fail" not in readings(
        tmp_path, SyntheticStudy(loads=loads, aa=None, duration_s=1.0)
    )
