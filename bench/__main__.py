"""`make bench`: measures weir and other generators, checks weir's bars, and writes bench/results and bench/RESULTS.md.

Let nothing else run on the machine meanwhile. `python -m bench --only tls` measures one part again. A run with other
rounds, seconds or connections than the defaults is a test run: it prints its results and writes nothing, unless --keep
is given.
"""

import argparse
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.ceiling import measure_ceiling
from bench.cluster import measure_cluster
from bench.front_ends import measure_front_ends
from bench.latency import RATES_RPS, measure_latency
from bench.live import measure_live
from bench.machine import BenchError, OtherLoad, Taken, facts, placement, program
from bench.memory import SHORT_S, measure_memory
from bench.nginx import running_nginx
from bench.paced import PACED_PEERS
from bench.peers import GCANNON, OTHERS, WRK, Peer
from bench.report import measure_report
from bench.result import QUIET_FRACTION, Found, PartResult, Provenance, page, read_results
from bench.rounds import FAILURES
from bench.setting import Setting
from bench.templates import measure_templates
from bench.throughput import (
    CONNECTIONS,
    MANY,
    length_at,
    measure_close,
    measure_peers,
    measure_throughput,
    measure_tls,
)
from weir.model.errors import UsageError
from weir.paths import find_engine_binary

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"
PAGE = FOLDER / "RESULTS.md"
# Kept results have at least this number of rounds.
LEAST_ROUNDS = 5
# Files beside a load's connections: listeners, logs, and the interpreter's own files.
SPARE_FILES = 500
# Seconds that a load takes in addition to its duration: usually, with 10,000 connections, and with a generator whose
# runtime starts slowly.
LOAD_S, LOAD_OF_MANY_S, LOAD_OF_PEER_S = 0.25, 1.5, 1.0


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the benchmark that can be measured alone."""

    measure: Callable[[Setting], Found]
    rounds: int
    seconds: int
    """On a noisy machine many short rounds are better than few long ones. Percentiles need some seconds."""
    expected_s: Callable[[int, int, tuple[int, ...]], float]
    """Expected seconds, computed from rounds, seconds and connections."""
    peers: tuple[Peer, ...] = ()
    tls: bool = False
    by_default: bool = True
    needs_quiet: bool = True
    """Whether other processes' use of the CPUs changes the result of this part."""


def _throughput_s(rounds: int, seconds: int, connections: tuple[int, ...]) -> float:
    total_s = 0.0
    generators = 5 + (GCANNON.binary is not None)
    for count in connections:
        rounds_here, seconds_here = length_at(count, rounds, seconds)
        # Each generator does GET and POST.
        total_s += rounds_here * 2 * generators * (seconds_here + (LOAD_OF_MANY_S if count >= MANY else LOAD_S))
    return total_s


def _loads_s(loads: int, peers: int = 0) -> Callable[[int, int, tuple[int, ...]], float]:
    return lambda rounds, seconds, _: rounds * (loads * (seconds + LOAD_S) + peers * (seconds + LOAD_OF_PEER_S))


def _latency_s(rounds: int, seconds: int, connections: tuple[int, ...]) -> float:
    there = [peer for peer in PACED_PEERS if peer.binary is not None]
    peers_s = sum(seconds + LOAD_OF_PEER_S + peer.calibration_s for peer in there)
    return 10 + len(RATES_RPS) * rounds * (2 * (seconds + LOAD_S) + peers_s)


PARTS = {
    "throughput": Part(measure_throughput, 15, 1, _throughput_s, (WRK,)),
    "close": Part(measure_close, 9, 1, _loads_s(4), (WRK, OTHERS[0])),
    "tls": Part(measure_tls, 7, 2, _loads_s(3), (WRK,), tls=True),
    "templates": Part(measure_templates, 9, 1, _loads_s(4)),
    "latency": Part(measure_latency, 5, 3, _latency_s, tuple(peer for peer in OTHERS if peer.name in ("oha", "k6"))),
    "peers": Part(measure_peers, 5, 1, _loads_s(6, 2 * len(OTHERS) + 2), (WRK, *OTHERS)),
    "ceiling": Part(measure_ceiling, 5, 1, _loads_s(1)),
    "live": Part(measure_live, 21, 3, _loads_s(4), by_default=False),
    "front-ends": Part(measure_front_ends, 9, 3, _loads_s(2), by_default=False),
    "cluster": Part(measure_cluster, 31, 3, _loads_s(3, 3), by_default=False),
    "report": Part(measure_report, 5, 1, lambda rounds, _seconds, _connections: 150 + rounds * 10, by_default=False),
    "memory": Part(
        measure_memory, 1, 600, lambda rounds, seconds, _: SHORT_S + seconds + 1, by_default=False, needs_quiet=False
    ),
}


def main() -> int:
    options = _options()
    names = options.only or [name for name, part in PARTS.items() if part.by_default]
    # SIGTERM, like Ctrl-C, ends the processes that this command started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        connections = allowed(options.connections)
        plans = {name: (options.rounds or PARTS[name].rounds, options.seconds or PARTS[name].seconds) for name in names}
        expected_s = sum(PARTS[name].expected_s(*plans[name], connections) for name in names)
        print(
            f"{', '.join(names)}: about {max(1, round(expected_s / 60))} min; let nothing else run meanwhile",
            file=sys.stderr,
        )
        kept = options.keep or (options.rounds, options.seconds, connections) == (None, None, CONNECTIONS)
        if options.keep and any(
            rounds < LEAST_ROUNDS and PARTS[name].by_default for name, (rounds, _) in plans.items()
        ):
            raise BenchError(f"--keep: results have {LEAST_ROUNDS} rounds at least")
        results, failed = [], False
        for name in names:
            try:
                results.append(measure(name, *plans[name], connections))
            except FAILURES as error:
                failed = True
                print(f"error: {name} could not be measured: {error}", file=sys.stderr)
                continue
            if kept:
                results[-1].write(RESULTS)
                PAGE.write_text(page(read_results(RESULTS, list(PARTS))))
    except (BenchError, UsageError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(page(results))
    print(
        f"{'written to' if kept else 'a test run: not written to'} {PAGE.name} and {RESULTS.name} in {FOLDER.name}",
        file=sys.stderr,
    )
    return exit_code(results, failed)


def exit_code(results: list[PartResult], failed: bool) -> int:
    """Returns 3 if a part could not be measured, 4 if the machine was not quiet, 1 if weir missed a bar, else 0."""
    noisy = [result.part for result in results if not result.provenance.quiet]
    if noisy:
        print(
            f"warning: other processes took more than {QUIET_FRACTION:.0%} of the CPUs during {', '.join(noisy)}: measure again",
            file=sys.stderr,
        )
    if failed:
        return 3
    if noisy:
        return 4
    return 1 if any(bar.reached is False for result in results for bar in result.found.bars) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = "; ".join(f"{name}: {part.rounds} × {part.seconds} s" for name, part in PARTS.items())
    parser.add_argument(
        "--only",
        choices=PARTS,
        action="append",
        metavar="PART",
        help=f"measure only this part; may be repeated ({', '.join(PARTS)})",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help=f"number of rounds of each contest ({parts})")
    parser.add_argument("--seconds", type=int, metavar="S", help="seconds per round")
    parser.add_argument(
        "--keep", action="store_true", help="write the results although rounds or seconds differ from the defaults"
    )
    parser.add_argument(
        "--connections",
        type=lambda text: tuple(int(part) for part in text.split(",")),
        default=CONNECTIONS,
        metavar="N,N",
        help="numbers of connections of the part `throughput`",
    )
    return parser.parse_args()


def allowed(connections: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the numbers of connections for which this process may open enough files; prints the others."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = MANY + 2 * SPARE_FILES if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    for count in connections:
        if count + SPARE_FILES > files:
            print(
                f"left out: {count:,} connections need `ulimit -n {count + SPARE_FILES}`; it is {files}",
                file=sys.stderr,
            )
    return tuple(count for count in connections if count + SPARE_FILES <= files)


def measure(name: str, rounds: int, seconds: int, connections: tuple[int, ...]) -> PartResult:
    """Measures one part with an nginx of its own."""
    part = PARTS[name]
    cpus = placement()
    others = OtherLoad()
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as folder,
        running_nginx(cpus.server, tls=part.tls) as nginx,
    ):
        setting = Setting(nginx, cpus, rounds, seconds, Path(folder), connections)
        found = part.measure(setting)
    return PartResult(
        name,
        found,
        Provenance(
            rounds,
            seconds,
            facts(),
            f"server on CPU {cpus.server}, load on CPU {cpus.load}",
            # CPU time of other processes in the rounds that count, or in the whole part if it has no rounds.
            sum(setting.taken or [others.taken()], Taken()).fraction if part.needs_quiet else None,
            _versions(part),
        ),
    )


def _versions(part: Part) -> list[str]:
    """Returns the versions of weir (with its commit in a checkout), of nginx and of the other generators."""
    versions = [_version([str(find_engine_binary()), "--version"]) + _commit()]
    versions.append(_version([program("nginx", "Debian: nginx-light"), "-v"]))
    for peer in part.peers:
        if peer.binary is not None and peer.version:
            version = _version([peer.binary, *peer.version])
            versions.append(version if version.startswith(peer.name) else f"{peer.name}: {version}")
    return versions


def _commit() -> str:
    """Returns the checkout's commit and whether any file except the results differs from the commit."""
    git = ["git", "-C", str(FOLDER.parent)]
    commit = _output([*git, "rev-parse", "--short", "HEAD"]).strip()
    if not re.fullmatch(r"[0-9a-f]+", commit):
        return ""
    results = [f":(exclude){path.relative_to(FOLDER.parent)}" for path in (RESULTS, PAGE)]
    changed = _output([*git, "status", "--porcelain", "--", ".", *results]).strip()
    return f" at {commit}{', changed' if changed else ''}"


def _version(command: list[str]) -> str:
    """Returns the first line that a program prints about its version, from either stream and with any exit code."""
    line = next(iter(_output(command).splitlines()), f"{Path(command[0]).name}, version unknown")
    return re.sub(r"^(nginx version: |This is )|\s*(Copyright|\[\w+\]|<\$|\(go|from /).*", "", line).strip()


def _output(command: list[str]) -> str:
    try:
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout or result.stderr


if __name__ == "__main__":
    sys.exit(main())
