"""One job that several generators do in alternating rounds on the same nginx: which makes most requests with one CPU?

Every generator has one thread on one CPU; nginx has the other CPU. nginx counts the requests. A generator that reports
another number has failed.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from bench.engine import engine_load
from bench.machine import BenchError, Idleness, run_on
from bench.peers import Job, Peer
from bench.result import Table
from bench.rounds import alternate
from bench.setting import Setting
from bench.spread import Spread
from weir.model.load import LoadPlan


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one generator in one round."""

    throughput_rps: float
    requests: int
    cpu_user_s: float
    cpu_system_s: float
    load_idle: float
    """Idle fraction of the generator's CPU."""
    server_idle: float
    """Idle fraction of the server's CPU. Near 0 the server is the limit."""
    peak_rss_bytes: int | None = None
    back_end: str | None = None
    busy_fraction: float | None = None
    """Fraction of time in which weir handled requests, by its own report; polling for responses does not count."""


@dataclass(frozen=True, slots=True)
class Contest:
    """One job, with each generator's rounds."""

    label: str
    rounds: dict[str, list[Round]]

    def ratio(self, ours: str, theirs: str) -> Spread | None:
        """Returns `ours` ÷ `theirs` in throughput, round by round; None if one of them is missing."""
        if ours not in self.rounds or theirs not in self.rounds:
            return None
        pairs = zip(self.rounds[ours], self.rounds[theirs], strict=True)
        return Spread.of([one.throughput_rps / other.throughput_rps for one, other in pairs])

    def memory_bytes(self, name: str) -> int | None:
        """Returns the generator's peak memory of all rounds in bytes; None if it is unknown."""
        return max(
            (round_.peak_rss_bytes for round_ in self.rounds.get(name, ()) if round_.peak_rss_bytes), default=None
        )

    def cpu_user_us(self, name: str) -> float:
        """Returns user CPU per request in microseconds, of all rounds together: one round has too few of the kernel's
        ticks."""
        return sum(round_.cpu_user_s for round_ in self.rounds[name]) / self._requests(name) * 1e6

    def cpu_system_us(self, name: str) -> float:
        """Returns system CPU per request in microseconds, of all rounds together."""
        return sum(round_.cpu_system_s for round_ in self.rounds[name]) / self._requests(name) * 1e6

    def idle(self, name: str) -> tuple[float, float]:
        """Returns the mean idle fractions of the generator's CPU and of the server's CPU."""
        rounds = self.rounds[name]
        return fmean(round_.load_idle for round_ in rounds), fmean(round_.server_idle for round_ in rounds)

    def free(self, name: str) -> float:
        """Returns the mean fraction of the load's CPU that the generator did not need: idle time, and weir's
        polling."""
        return fmean(one.load_idle if one.busy_fraction is None else 1 - one.busy_fraction for one in self.rounds[name])

    def _requests(self, name: str) -> int:
        return sum(round_.requests for round_ in self.rounds[name])

    def rows(self, baseline: str = "weir") -> list[list[str]]:
        """Returns the contest's rows of a table. A ratio is the throughput of `baseline` ÷ the row's throughput."""
        rows = []
        for name, rounds in self.rounds.items():
            back_ends = dict.fromkeys(
                round_.back_end for round_ in rounds if round_.back_end and round_.back_end not in name
            )
            memory = self.memory_bytes(name)
            load_idle, server_idle = self.idle(name)
            ratio = None if name == baseline else self.ratio(baseline, name)
            rows.append(
                [
                    self.label,
                    name + (f" ({', '.join(back_ends)})" if back_ends else ""),
                    Spread.of([round_.throughput_rps for round_ in rounds]).text(),
                    "" if ratio is None else ratio.text(2),
                    f"{self.cpu_user_us(name):.2f}",
                    f"{self.cpu_system_us(name):.2f}",
                    f"{load_idle:.0%}",
                    f"{server_idle:.0%}",
                    "" if memory is None else f"{memory / 1e6:.1f}",
                ]
            )
        return rows

    def measured(self) -> dict[str, Any]:
        """Returns the figures of every round, for further calculations."""
        return {name: [asdict(round_) for round_ in rounds] for name, rounds in self.rounds.items()}


def contest_table(contests: list[Contest], baseline: str = "weir", ratio: str = "weir is times as fast") -> Table:
    """Returns one table of several contests; `ratio` is the heading of the ratios."""
    cpu = ["user CPU, µs/request", "system CPU, µs/request", "load's CPU idle", "server's CPU idle"]
    columns = ["", "", "requests/s", ratio, *cpu, "memory, MB"]
    return Table(columns, [row for contest in contests for row in contest.rows(baseline)], 2)


def hold_contest(
    setting: Setting,
    label: str,
    generators: Mapping[str, Callable[[], Round]],
    notes: list[str],
    required: Collection[str],
) -> Contest:
    """Runs all rounds of one contest."""
    print(f"{label}: {', '.join(generators)} …", file=sys.stderr)
    return Contest(label, alternate(generators, setting.rounds, required, notes, label, setting.taken))


def weir_round(setting: Setting, plan: LoadPlan, back_end: str, *, owns_cpu: bool = True) -> Round:
    """Runs one round of weir."""
    before = setting.nginx.requests()
    idleness = Idleness(setting.cpus)
    load = engine_load(plan, setting.cpus.load, setting.folder, back_end=back_end, owns_cpu=owns_cpu)
    idle = idleness.fractions()
    _check_count("weir", plan.load.connections, load.completed, setting.nginx.requests() - before - 1)
    return Round(
        load.summary["throughput_rps"],
        load.completed,
        load.process.cpu_user_s,
        load.process.cpu_system_s,
        *idle,
        load.summary["generator"]["peak_rss_bytes"],
        load.hello["backend"],
        load.summary["generator"]["busy_fraction"],
    )


def peer_round(setting: Setting, peer: Peer, job: Job, url: str) -> Round:
    """Runs one round of another generator. Raises BenchError if the generator cannot do the job or counts wrong."""
    arguments = peer.command(job, url, setting.seconds, setting.folder)
    if arguments is None or peer.binary is None:
        raise BenchError(f"{peer.name} cannot do {job.label}")
    before = setting.nginx.requests()
    idleness = Idleness(setting.cpus)
    process = run_on(setting.cpus.load, [peer.binary, *arguments], setting.folder, setting.seconds)
    idle = idleness.fractions()
    said = peer.parse(process.output)
    counted = setting.nginx.requests() - before - 1
    if said.completed is not None:
        _check_count(peer.name, job.connections, said.completed, counted)
    return Round(said.throughput_rps, counted, process.cpu_user_s, process.cpu_system_s, *idle, process.peak_rss_bytes)


def _check_count(name: str, connections: int, claimed: int, counted: int) -> None:
    """Raises BenchError if the generator's count differs from nginx's by more than the requests in flight at the
    end."""
    if not counted - 2 * connections <= claimed <= counted:
        raise BenchError(f"{name} reports {claimed} responses, nginx counted {counted} requests")
