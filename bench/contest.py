"""One job, done by several generators in alternating rounds on the same nginx: who gets more requests out of one CPU?

Every generator has one thread on one CPU; nginx has the other CPU. nginx counts the requests itself, and a generator
that claims another number has failed.
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
    """What one generator did in one round."""

    throughput_rps: float
    requests: int
    cpu_user_s: float
    cpu_system_s: float
    load_idle: float
    """Of its CPU's time, what it left over."""
    server_idle: float
    """Of the server's CPU: where nothing is left, the server is the limit."""
    peak_rss_bytes: int | None = None
    back_end: str | None = None
    busy_fraction: float | None = None
    """As weir says itself: of its time, what it took to handle requests, and not to look for answers that were not
    there."""


@dataclass(frozen=True, slots=True)
class Contest:
    """One job and the rounds of each generator."""

    label: str
    rounds: dict[str, list[Round]]

    def ratio(self, ours: str, theirs: str) -> Spread | None:
        """One's throughput divided by the other's, round by round; None if one is missing."""
        if ours not in self.rounds or theirs not in self.rounds:
            return None
        pairs = zip(self.rounds[ours], self.rounds[theirs], strict=True)
        return Spread.of([one.throughput_rps / other.throughput_rps for one, other in pairs])

    def memory_bytes(self, name: str) -> int | None:
        """The most memory that a generator had in any round."""
        return max(
            (round_.peak_rss_bytes for round_ in self.rounds.get(name, ()) if round_.peak_rss_bytes), default=None
        )

    def cpu_user_us(self, name: str) -> float:
        """CPU in user space for a request, of all rounds together: in one the kernel's ticks are too few."""
        return sum(round_.cpu_user_s for round_ in self.rounds[name]) / self._requests(name) * 1e6

    def cpu_system_us(self, name: str) -> float:
        """CPU in the kernel for a request, of all rounds together."""
        return sum(round_.cpu_system_s for round_ in self.rounds[name]) / self._requests(name) * 1e6

    def idle(self, name: str) -> tuple[float, float]:
        """Of the load's CPU and of the server's, on average."""
        rounds = self.rounds[name]
        return fmean(round_.load_idle for round_ in rounds), fmean(round_.server_idle for round_ in rounds)

    def free(self, name: str) -> float:
        """Of the load's CPU, on average, what the generator had no use for: its idle time, and of weir's what it looks
        for answers in."""
        return fmean(one.load_idle if one.busy_fraction is None else 1 - one.busy_fraction for one in self.rounds[name])

    def _requests(self, name: str) -> int:
        return sum(round_.requests for round_ in self.rounds[name])

    def rows(self, baseline: str = "weir") -> list[list[str]]:
        """The contest's rows in a table; `baseline` is whose throughput is divided by the others'."""
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
        """Every round, for whoever wants to reckon for himself."""
        return {name: [asdict(round_) for round_ in rounds] for name, rounds in self.rounds.items()}


def contest_table(contests: list[Contest], baseline: str = "weir", ratio: str = "weir is times as fast") -> Table:
    """Contests below one another; `ratio` is what their ratios are called."""
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
    """All rounds of one contest."""
    print(f"{label}: {', '.join(generators)} …", file=sys.stderr)
    return Contest(label, alternate(generators, setting.rounds, required, notes, label, setting.taken))


def weir_round(setting: Setting, plan: LoadPlan, back_end: str, *, owns_cpu: bool = True) -> Round:
    """One round of weir's."""
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
    """One round of another generator's."""
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
    """nginx has also answered what was in flight when the load ended; beyond that the counts must agree."""
    if not counted - 2 * connections <= claimed <= counted:
        raise BenchError(f"{name} claims {claimed} answers, nginx counted {counted} requests")
