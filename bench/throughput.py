"""weir and the other generators on the same nginx, alternating: who gets more requests out of one CPU?

Every generator has one thread on one CPU; nginx has the other CPU. The rounds alternate, and so does the order within a round, so that
what drifts (clock speed, neighbours) touches all alike; ratios are taken round by round. nginx counts the requests itself, and a
generator that claims another number is an error.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.engine import engine_load
from bench.machine import BenchError, Placement, run_on
from bench.nginx import Nginx
from bench.peers import BODY, OTHERS, WRK, Job, Peer
from bench.spread import Spread
from weir.model.load import ClosedLoad, Request

CONNECTIONS = (16, 64, 256, 1_024, 10_000)
MANY = 10_000
BACK_ENDS = {"weir": "auto", "weir on epoll": "epoll"}
# What is asked of weir ÷ wrk, by the number of connections.
BARS = {16: 1.05, 64: 1.10, 256: 1.13, 1_024: 1.17, 10_000: 1.3}
BAR_EPOLL = 1.03
BAR_CLOSE = 1.0
BAR_USER_CPU_US = 0.4
BAR_RSS_BYTES = 30_000_000


@dataclass(frozen=True, slots=True)
class Round:
    """What one generator did in one round."""

    throughput_rps: float
    cpu_user_us: float
    cpu_system_us: float
    peak_rss_bytes: int | None = None
    """As the engine reports it of itself; the others do not."""
    back_end: str | None = None


@dataclass(frozen=True, slots=True)
class Contest:
    """One job, done by several generators in alternating rounds."""

    job: Job
    rounds: dict[str, list[Round]] = field(default_factory=dict)

    def ratio(self, ours: str, theirs: str) -> Spread:
        """One's throughput divided by the other's, round by round."""
        pairs = zip(self.rounds[ours], self.rounds[theirs], strict=True)
        return Spread.of([one.throughput_rps / other.throughput_rps for one, other in pairs])

    def rows(self) -> list[str]:
        """The contest's lines in the table."""
        lines = []
        for name, rounds in self.rounds.items():
            back_end = next((f" ({round_.back_end})" for round_ in rounds if round_.back_end), "")
            memory = max((round_.peak_rss_bytes or 0 for round_ in rounds), default=0)
            lines.append(
                f"| {self.job.label} | {name}{back_end} | {Spread.of([round_.throughput_rps for round_ in rounds]).text()}"
                f" | {'' if name == 'weir' else self.ratio('weir', name).text(2)}"
                f" | {Spread.of([round_.cpu_user_us for round_ in rounds]).text(2)}"
                f" | {Spread.of([round_.cpu_system_us for round_ in rounds]).text(2)}"
                f" | {f'{memory / 1e6:.1f}' if memory else ''} |"
            )
        return lines


@dataclass(frozen=True, slots=True)
class Throughput:
    """All contests, and who was left out."""

    contests: list[Contest]
    left_out: list[str]

    def table(self) -> list[str]:
        """The results in Markdown."""
        return [
            "| | | requests/s | weir is times as fast | user CPU, µs/request | system CPU, µs/request | memory, MB |",
            "|---|---|---:|---:|---:|---:|---:|",
            *(row for contest in self.contests for row in contest.rows()),
            *(["", *(f"- left out: {line}" for line in self.left_out)] if self.left_out else []),
        ]

    def bars(self) -> list[tuple[str, str, bool]]:
        """What is asked of it, what was found, and whether that is enough."""
        found = []
        for contest in self.contests:
            job, wrk = contest.job, WRK.name
            if wrk not in contest.rounds:
                continue
            ratio = contest.ratio("weir", wrk)
            bar = BAR_CLOSE if job.kind == "close" else BARS.get(job.connections, 1.0)
            found.append((f"{job.label}: at least {bar:g} × wrk", ratio.text(3), ratio.median >= bar))
            if job.kind == "GET":
                on_epoll = contest.ratio("weir on epoll", wrk)
                found.append((f"{job.label}, on epoll: at least {BAR_EPOLL:g} × wrk", on_epoll.text(3), on_epoll.median >= BAR_EPOLL))
            if job == Job("GET", 64):
                cpu = Spread.of([round_.cpu_user_us for round_ in contest.rounds["weir"]])
                text = f"{job.label}: user CPU at most {BAR_USER_CPU_US:g} µs/request"
                found.append((text, cpu.text(2), cpu.median <= BAR_USER_CPU_US))
            if job.connections == MANY:
                memory = max(round_.peak_rss_bytes or 0 for round_ in contest.rounds["weir"])
                found.append(
                    (f"{job.label}: memory at most {BAR_RSS_BYTES / 1e6:.0f} MB", f"{memory / 1e6:.1f} MB", memory <= BAR_RSS_BYTES)
                )
        return found


def jobs(connections: Sequence[int]) -> list[Job]:
    """What is measured against wrk."""
    return [*(Job("GET", count) for count in connections), *(Job("POST", count) for count in connections), Job("close", 64)]


def measure_throughput(
    nginx: Nginx, cpus: Placement, rounds: int, duration_s: int, folder: Path, connections: Sequence[int] = CONNECTIONS
) -> Throughput:
    """Every job against wrk, then one against every other generator that is there."""
    if WRK.binary is None:
        raise BenchError(f"wrk is not installed (Debian: apt-get install {WRK.package})")
    contests = [_contest(job, [WRK], nginx, cpus, rounds, duration_s, folder) for job in jobs(connections)]
    there = [peer for peer in OTHERS if peer.binary is not None]
    left_out = [f"{peer.name} is not installed ({peer.package})" for peer in OTHERS if peer.binary is None]
    for job in (Job("GET", 64), Job("POST", 64), Job("close", 64)) if there else ():
        able = [peer for peer in there if peer.command(job, nginx.url, duration_s, folder) is not None]
        left_out += [f"{peer.name} cannot do {job.label}" for peer in there if peer not in able]
        contests.append(_contest(job, able, nginx, cpus, rounds, duration_s, folder))
    return Throughput(contests, left_out)


def _contest(job: Job, peers: Sequence[Peer], nginx: Nginx, cpus: Placement, rounds: int, duration_s: int, folder: Path) -> Contest:
    print(f"{job.label}: weir and {', '.join(peer.name for peer in peers)} …", file=sys.stderr)

    def weir(back_end: str) -> Round:
        before = nginx.requests()
        headers = {"GET": (), "POST": (("Content-Type", "application/json"),), "close": (("Connection", "close"),)}[job.kind]
        request = Request("POST" if job.kind == "POST" else "GET", nginx.url, headers, BODY if job.kind == "POST" else None)
        load = engine_load(cpus.load, nginx.url, ClosedLoad(job.connections), duration_s, folder, request=request, back_end=back_end)
        _check_count("weir", job, load.completed, nginx.requests() - before - 1)
        return Round(
            load.summary["throughput_rps"],
            load.process.cpu_user_s / load.completed * 1e6,
            load.process.cpu_system_s / load.completed * 1e6,
            load.summary["generator"]["peak_rss_bytes"],
            load.hello["backend"],
        )

    def other(peer: Peer) -> Round:
        arguments = peer.command(job, nginx.url, duration_s, folder)
        assert arguments is not None
        assert peer.binary is not None
        before = nginx.requests()
        process = run_on(cpus.load, [peer.binary, *arguments], folder)
        said = peer.parse(process.output)
        counted = nginx.requests() - before - 1
        if said.completed is not None:
            _check_count(peer.name, job, said.completed, counted)
        return Round(said.throughput_rps, process.cpu_user_s / counted * 1e6, process.cpu_system_s / counted * 1e6)

    generators = {name: (lambda back_end=back_end: weir(back_end)) for name, back_end in BACK_ENDS.items()}
    generators |= {peer.name: (lambda peer=peer: other(peer)) for peer in peers}
    contest = Contest(job, {name: [] for name in generators})
    names = list(generators)
    for index in range(rounds):
        # There and back, and everybody comes first in turn.
        order = names if index % 2 == 0 else names[::-1]
        first = index // 2 % len(names)
        for name in order[first:] + order[:first]:
            contest.rounds[name].append(generators[name]())
    return contest


def _check_count(name: str, job: Job, claimed: int, counted: int) -> None:
    """nginx has also answered what was in flight when the load ended; beyond that the counts must agree."""
    if not counted - 2 * job.connections <= claimed <= counted:
        raise BenchError(f"{name} claims {claimed} answers to {job.label}, nginx counted {counted} requests")
