"""The curves of a run that varies its load and something else."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_run import FLASK, SANIC, SyntheticStudy, write_run
from weir.findings import of_run
from weir.model.load import ClosedLoad
from weir.report.curve_series import curve_series
from weir.store import RunReader


def test_each_value_of_what_else_varies_has_curves_with_their_own_crossings_and_laws(tmp_path: Path) -> None:
    level = replace(FLASK, throughput_rps=1_000, growth=lambda n: n / (1 + 0.1 * (n - 1)), variation=0.005)
    rising = replace(SANIC, throughput_rps=300, growth=lambda n: n**0.9, variation=0.005)
    loads = [ClosedLoad(n) for n in (1, 2, 4, 8, 16, 32, 64)]
    study = SyntheticStudy(
        stacks=(level, rising), loads=loads, aa=None, blocks=2, duration_s=0.5, coordinates=[{"replicas": "1"}, {"replicas": "2"}]
    )
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        curves = curve_series(of_run(reader))
    assert [curve.where for curve in curves] == ["echo, 1 replica", "echo, 2 replicas"]
    for curve in curves:
        assert curve.measured == [1, 2, 4, 8, 16, 32, 64]
        # 1,000 N ÷ (1 + 0.1 (N − 1)) = 300 N^0.9 at 39.
        (crossing,) = curve.crossings
        assert crossing.at == pytest.approx(39, rel=0.1)
        flask, _ = curve.lines
        assert flask.name == "Flask"
        # The law is drawn between the measured amounts as well.
        assert len(flask.law_rps) == len(curve.amounts) > len(curve.measured)
        assert sum(value is not None for value in flask.rate_rps) == len(curve.measured)
