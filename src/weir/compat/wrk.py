"""wrk 4.1: its command line and its report, of a closed loop."""

from collections.abc import Sequence
from dataclasses import dataclass

from weir.compat import wrk_report
from weir.compat.front_end import Outcome
from weir.compat.native import command_of
from weir.compat.wrk_flags import plan_of, read_flags
from weir.compat.wrk_report import AskedOfEither
from weir.compat.wrk_units import aligned, microseconds
from weir.model.load import ClosedLoad

USAGE = """\
Usage: wrk <options> <url>
  Options:
    -c, --connections <N>  Connections that are kept open (10)
    -d, --duration    <T>  How long (10s)
    -t, --threads     <N>  Threads, with as many connections each (2)

    -s, --script      <S>  Not with weir: docs/guides/scenarios.md
    -H, --header      <H>  A header, as 'Name: value'
    -L, --latency          Print percentiles of the latency
    -T, --timeout     <T>  How long an answer may take (2s)
    -v, --version          Print the version

  A number may have a unit: 1k, 1M, 1G
  A time may have a unit: 2s, 2m, 2h
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOfWrk(AskedOfEither):
    """A command line of wrk, understood."""

    def report(self, outcome: Outcome) -> str:
        """Thread statistics, percentiles where they were asked for, and totals."""
        summary = outcome.end.summary
        lines = ""
        if self.flags.latency:
            times = summary.response_time_us
            shown = {50: times.p50, 75: times.p75, 90: times.p90, 99: times.p99}
            lines = "  Latency Distribution\n"
            lines += "".join(f"{percent:7d}%{aligned(value or 0.0, microseconds, 10)}\n" for percent, value in shown.items())
        return wrk_report.thread_stats(self.flags, outcome, self.plan.interval_s) + lines + wrk_report.totals(summary)

    def notes(self, outcome: Outcome) -> list[str]:
        """That nothing was corrected, and what else differs."""
        corrected = "latencies are those measured, from the moment a user was free; wrk adds some of its own, to correct for stalls"
        return [corrected, *wrk_report.common_notes(self.flags, self.plan.threads, outcome.end.summary)]


def read(argv: Sequence[str]) -> AskedOfWrk:
    """What a command line of wrk asks for.

    Raises:
        ToolExit: wrk would print its usage, or this is something that weir does not do.
    """
    flags = read_flags("wrk", argv, USAGE)
    plan = plan_of(flags, ClosedLoad(flags.connections))
    return AskedOfWrk(plan=plan, native=command_of(plan), flags=flags)
