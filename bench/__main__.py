"""`make bench`: measure, print, and write bench/RESULTS.md.

Nothing else may run on the machine meanwhile. All of it takes about a quarter of an hour. Parts print and write nothing:
`python -m bench --only throughput --connections 64,256 --rounds 5 --seconds 2`.
"""

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.ceiling import measure_ceiling
from bench.latency import measure_latency
from bench.machine import BenchError, OtherLoad, facts, placement, program
from bench.nginx import running_nginx
from bench.spread import confidence
from bench.throughput import CONNECTIONS, MANY, measure_throughput
from weir.places import engine_binary

# What a neighbour takes is missing from one side of a ratio or the other.
QUIET_FRACTION = 0.03
RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
PARTS = ("throughput", "latency", "ceiling")
# Of connections, beside those of a load: listeners, logs, what the interpreter has open.
SPARE_FILES = 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append", help="this part only; may be repeated")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds of every contest (5)")
    parser.add_argument("--seconds", type=int, default=2, metavar="S", help="length of a round (2)")
    parser.add_argument(
        "--connections",
        type=lambda text: [int(part) for part in text.split(",")],
        default=list(CONNECTIONS),
        metavar="N,N",
        help="of throughput",
    )
    options = parser.parse_args()
    parts = options.only or list(PARTS)
    try:
        connections = allowed(options.connections)
        text, passed, quiet = measure(parts, options.rounds, options.seconds, connections)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(text)
    if not quiet:
        print(f"warning: other processes took more than {QUIET_FRACTION:.0%} of the CPUs; end them and measure again", file=sys.stderr)
    if parts == list(PARTS) and connections == list(CONNECTIONS):
        RESULTS.write_text(text)
        print(f"written to {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}", file=sys.stderr)
    return 4 if not quiet else 0 if passed else 1


def allowed(connections: list[int]) -> list[int]:
    """Those numbers of connections for which this process and its children may have enough files; says which are left out."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = MANY + 2 * SPARE_FILES if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    for count in connections:
        if count + SPARE_FILES > files:
            print(f"left out: {count:,} connections need `ulimit -n {count + SPARE_FILES}`; it is {files}", file=sys.stderr)
    return [count for count in connections if count + SPARE_FILES <= files]


def measure(parts: list[str], rounds: int, duration_s: int, connections: list[int]) -> tuple[str, bool, bool]:
    """The benchmarks asked for as one page of Markdown, whether every bar is reached, and whether the machine was quiet."""
    cpus = placement()
    others = OtherLoad()
    bars: list[tuple[str, str, bool]] = []
    sections: list[str] = []
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name, running_nginx(cpus.server) as nginx:
        folder = Path(name)
        if "throughput" in parts:
            throughput = measure_throughput(nginx, cpus, rounds, duration_s, folder, connections)
            bars += throughput.bars()
            sections += ["## Throughput: closed loop, nginx `return 200`", "", *throughput.table(), ""]
        if "latency" in parts:
            print("weir and the floor, alternating …", file=sys.stderr)
            latency = measure_latency(nginx, cpus, rounds, duration_s, folder)
            bars += latency.bars()
            sections += ["## Response time: open loop, 10,000 requests/s, nginx `return 200`", "", *latency.table(), ""]
        if "ceiling" in parts:
            print("weir and its null server …", file=sys.stderr)
            ceiling = measure_ceiling(cpus, rounds, duration_s, folder)
            sections += ["## Ceiling: closed loop, 64 connections, the null server", "", *ceiling.table(), ""]
    busy = others.fraction()
    lines = [
        "# Results",
        "",
        "Written by `make bench`. A figure is the median of the rounds, with the lowest and the highest; "
        f"of {rounds} rounds that range holds the true median with {confidence(rounds):.1%} confidence. Ratios are taken round by round.",
        "",
        "| bar | found | reached |",
        "|---|---|---|",
        *(f"| {bar} | {found} | {'yes' if reached else 'NO'} |" for bar, found, reached in bars),
        "",
        *sections,
        "## Machine",
        "",
        *(f"- {fact}: {value}" for fact, value in facts()),
        f"- other processes took {busy:.1%} of the CPUs meanwhile{'' if busy <= QUIET_FRACTION else ': NOT QUIET, measure again'}",
        f"- server on CPU {cpus.server}, load on CPU {cpus.load}; {rounds} rounds of {duration_s} s each",
        f"- {_version([str(engine_binary()), '--version'])}, {_version([program('nginx', 'nginx-light'), '-v'])}, "
        f"{_version([program('wrk', 'wrk'), '-v'])}",
        "",
    ]
    return "\n".join(lines), all(reached for _, _, reached in bars), busy <= QUIET_FRACTION


def _version(command: list[str]) -> str:
    """The first line of what a program says of its version, which wrk and nginx do on whichever stream and with whichever exit code."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    line = (result.stdout or result.stderr).splitlines()[0]
    return re.sub(r"\s*(Copyright.*|\[\w+\].*)", "", line.removeprefix("nginx version: ")).strip()


if __name__ == "__main__":
    sys.exit(main())
