"""wrk2: its command line and its report, of requests at a fixed rate."""

from collections.abc import Sequence
from dataclasses import dataclass

from weir.compat import wrk_report
from weir.compat.front_end import Outcome
from weir.compat.native import command_of
from weir.compat.percentile_spectrum import latency_block
from weir.compat.wrk_flags import plan_of, read_flags
from weir.compat.wrk_report import AskedOfEither
from weir.model.load import OpenLoad

USAGE = """\
Usage: wrk2 <options> <url>
  Options:
    -c, --connections <N>  Connections that are kept open (10)
    -d, --duration    <T>  How long (10s)
    -t, --threads     <N>  Threads, with as many connections each (2)

    -s, --script      <S>  Not with weir: docs/guides/scenarios.md
    -H, --header      <H>  A header, as 'Name: value'
    -L  --latency          Print percentiles of the latency
    -U  --u_latency        Print those of the time from the sending, too
    -T, --timeout     <T>  How long an answer may take (2s)
    -B, --batch_latency    Of batches of pipelined requests, which only
                           scripts make: no difference with weir
    -v, --version          Print the version
    -R, --rate        <T>  Requests per second, of all threads together
                           [Required Parameter]

  A number may have a unit: 1k, 1M, 1G
  A time may have a unit: 2s, 2m, 2h
"""
_CALIBRATION_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOfWrk2(AskedOfEither):
    """A command line of wrk2, understood."""

    def report(self, outcome: Outcome) -> str:
        """Thread statistics, percentile spectra where they were asked for, and totals."""
        summary, histograms = outcome.end.summary, outcome.end.histograms
        blocks = ""
        if self.flags.latency:
            blocks = latency_block("Recorded Latency", histograms["response_time_ns"], summary.response_time_us)
        if self.flags.uncorrected_latency:
            title = "Uncorrected Latency (measured without taking delayed starts into account)"
            blocks += "\n" + latency_block(title, histograms["service_time_ns"], summary.service_time_us)
        return wrk_report.thread_stats(self.flags, outcome, self.plan.interval_s) + blocks + wrk_report.totals(summary)

    def notes(self, outcome: Outcome) -> list[str]:
        """That there is no calibration, and what else differs."""
        notes = ["requests are due to the microsecond; wrk2 waits in whole milliseconds, and catches up at twice the rate at most"]
        if self.flags.duration_s > _CALIBRATION_S:
            notes.append("the latencies are of the whole run; wrk2 leaves out its first 10 s, in which it calibrates")
        return notes + wrk_report.common_notes(self.flags, self.plan.threads, outcome.end.summary)


def read(argv: Sequence[str]) -> AskedOfWrk2:
    """What a command line of wrk2 asks for.

    Raises:
        ToolExit: wrk2 would print its usage, or this is something that weir does not do.
    """
    flags = read_flags("wrk2", argv, USAGE)
    plan = plan_of(flags, OpenLoad(flags.rate_rps, flags.connections))
    return AskedOfWrk2(plan=plan, native=command_of(plan), flags=flags)
