"""Tests the result of a load as text."""

from dataclasses import replace

from tests.support.load_summary import summary
from weir.cli.load_summary import summary_text
from weir.model.load import ClosedLoad
from weir.model.load_records import AgentSummary, Quantiles


def test_an_agent_that_began_late_is_told_so_from_a_millisecond_on() -> None:
    whole = summary()

    def agent(name: str, began_late_us: float) -> AgentSummary:
        return AgentSummary(
            name=name, requests=whole.requests, throughput_rps=50.0, response_time_us=Quantiles(), generator=whole.generator,
            clock_offset_us=0.0, clock_error_us=40.0, began_late_us=began_late_us,
        )  # fmt: skip

    agents = [agent("in-time", 900.0), agent("late", 2_340.0)]
    lines = summary_text(replace(whole, agents=agents), ClosedLoad(2), None).splitlines()
    said = {line.split()[0]: line for line in lines if "1,000 answered  p50" in line}
    assert said["late"].endswith("clock +0.00 ms (± 0.04)  began 2.34 ms late")
    assert said["in-time"].endswith("clock +0.00 ms (± 0.04)")
