"""Tests the settings of the service `delay`. The tests of the lab start the service."""

from pathlib import Path

import pytest

from weir.services.delay import DelaySettings, build_delay_command
from weir.services.manifest import read_service
from weir.services.settings import parse_settings

ENGINE = Path("/bin/weir-engine")


@pytest.mark.parametrize(
    ("delay", "distribution"),
    [
        ("2s", "constant:2.0s"),
        ("150ms", "constant:0.15s"),
        ("uniform:1s..3s", "uniform:1.0s..3.0s"),
        ("exp:5ms", "exponential:0.005s"),
    ],
)
def test_a_delay_is_written_as_studies_write_pauses(delay: str, distribution: str) -> None:
    assert f"--distribution={distribution}" in build_delay_command(ENGINE, "127.0.0.1", 8000, {"delay": delay})


def test_a_queue_with_faults_is_asked_of_the_engine() -> None:
    command = build_delay_command(
        ENGINE, "127.0.0.1", 8000, {"delay": "2s", "servers": "4", "fault": "reset", "fault_share": "0.25"}
    )
    assert command[:4] == [str(ENGINE), "serve", "times", "--listen=127.0.0.1:8000"]
    assert command[-3:] == ["--servers=4", "--fault=reset", "--fault-share=0.250000"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"delay": "soon"}, "delay: found 'soon'; expected a pause such as 1s"),
        ({"delay": "2s", "servers": "0"}, "servers: found '0'"),
        ({"delay": "2s", "fault": "tired"}, "fault: found 'tired'"),
        ({"delay": "2s", "fault_share": "0.1"}, "fault_share: found without 'fault', expected both"),
        ({"delay": "2s", "wait": "2s"}, "wait: unknown setting; expected one of: delay, servers"),
    ],
)
def test_a_setting_that_means_nothing_is_named(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_settings(DelaySettings, settings)


def test_the_manifests_own_delay_holds_until_somebody_sets_another() -> None:
    service = read_service("delay")
    service.check({})
    with pytest.raises(ValueError, match="delay: found '2 days'"):
        service.check({"delay": "2 days"})
