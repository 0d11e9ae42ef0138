"""`--cluster`: loads from agents on the nodes of a Ray cluster, or from this machine where none is named, and runs beside their stacks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weir.cli.output import say
from weir.generators.engine import LoadListener
from weir.generators.running import HERE, LoadFrom, RunningLoad
from weir.model.errors import UsageError
from weir.model.load import LoadPlan

if TYPE_CHECKING:
    from weir.cli.driven import RunThere
    from weir.services.place import ServicePlace
    from weir.study.study import Study

CLUSTER_OPTION = typer.Option(
    "--cluster", metavar="ADDRESS", help="From agents on a Ray cluster: HOST:PORT of its head, or auto. See docs/guides/cluster.md."
)
AGENTS_OPTION = typer.Option("--agents", min=1, help="With --cluster: agents, one on a node each. Default: one on each node for loads.")
SHARES_OPTION = typer.Option(
    "--shares", help="With --cluster: load threads of each agent, as 2,1,1, and with that its share. Default: as many for each."
)
STACKS_HERE_OPTION = typer.Option("--stacks-here", help="With --cluster: stacks are on this machine, whichever node offers weir_stack.")
SERVICES_HERE_OPTION = typer.Option(
    "--services-here", help="With --cluster: services are beside their stacks, whichever node offers weir_service."
)
SHARE_NODES_OPTION = typer.Option("--share-nodes", help="With --cluster: several agents may be on one node.")


RunElsewhere = Callable[["Study | None", Sequence[str], Path, "RunThere"], int]
"""Runs a study, or goes on with the run where that is None, with some options of `weir run`. What was made is at the
run file's path then. Gives the exit code."""


@dataclass(frozen=True, slots=True)
class ClusterFlags:
    """What was asked of a cluster."""

    address: str | None
    agents: int | None
    shares: str | None
    share_nodes: bool
    stacks_here: bool = False
    services_here: bool = False

    @property
    def words(self) -> list[str]:
        """The flags as they are given."""
        return [
            *([] if self.address is None else ["--cluster", self.address]),
            *([] if self.agents is None else ["--agents", str(self.agents)]),
            *([] if self.shares is None else ["--shares", self.shares]),
            *(["--share-nodes"] if self.share_nodes else []),
            *(["--stacks-here"] if self.stacks_here else []),
            *(["--services-here"] if self.services_here else []),
        ]


@contextmanager
def load_from(flags: ClusterFlags) -> Iterator[LoadFrom]:
    """Where loads come from: this machine's engine, or agents on a cluster, which are there for as long as the context lasts.

    Raises:
        UsageError: a flag needs another one, the cluster has no room, or Ray is not installed.
        TargetError: there is no cluster.
    """
    # A load without a study has no services.
    with load_and_services(replace(flags, services_here=flags.address is not None)) as (loads, _):
        yield loads


@contextmanager
def load_and_services(flags: ClusterFlags) -> "Iterator[tuple[LoadFrom, ServicePlace | None]]":
    """The same, and the machine for services; None: they are beside their stacks."""
    if flags.address is None:
        for name, given in (
            ("--agents", flags.agents), ("--shares", flags.shares), ("--share-nodes", flags.share_nodes),
            ("--stacks-here", flags.stacks_here), ("--services-here", flags.services_here),
        ):  # fmt: skip
            if given:
                raise UsageError(f"{name}: found without --cluster, expected both", hint="add --cluster ADDRESS")
        yield HERE, None
        return
    from weir.cluster.load import SharedLoad
    from weir.cluster.members import members
    from weir.cluster.ray_cluster import joined
    from weir.cluster.services import service_place

    shares = None if flags.shares is None else _shares(flags.shares, flags.agents)
    with joined(flags.address) as cluster:
        offering = [node for node in cluster.nodes if node.offers("load")]
        count = flags.agents or (len(shares) if shares else len(offering)) or 1
        with (
            members(cluster, "load", count, share_nodes=flags.share_nodes) as agents,
            nullcontext() if flags.services_here else service_place(cluster) as services,
        ):
            address = cluster.own_address

            def begin(plan: LoadPlan, listener: LoadListener | None) -> RunningLoad:
                return SharedLoad(agents, plan, listener, threads=shares)

            known = {agent.name: {**agent.facts, "clock_offset_us": agent.clock.offset_ns / 1e3} for agent in agents}
            yield LoadFrom(begin, address, known, shares), services


@contextmanager
def run_elsewhere(flags: ClusterFlags) -> Iterator[RunElsewhere | None]:
    """What runs a study on the cluster's node for stacks; None where that is this machine.

    Raises:
        UsageError: Ray is not installed here.
        TargetError: there is no cluster.
    """
    if flags.address is None or flags.stacks_here:
        yield None
        return
    from weir.cluster.ray_cluster import joined, node_of
    from weir.cluster.run import resume_there, run_there
    from weir.study.travelling import travelling

    with joined(flags.address) as cluster:
        node = node_of(cluster, "stack")
        if node is None:
            yield None
            return
        say(f"weir: the stacks are on {node.name}")

        def run(study: "Study | None", words: Sequence[str], path: Path, there: "RunThere") -> int:
            of_loads = replace(flags, address=None).words
            if study is None:
                return resume_there(cluster, path, words, flags=of_loads, on_line=there.hear, on_begin=there.begin)
            goes = travelling(study)
            return run_there(
                cluster,
                goes.study,
                words,
                path.parent,
                files=goes.files,
                built=goes.built,
                flags=of_loads,
                on_line=there.hear,
                on_begin=there.begin,
            )

        yield run


def _shares(text: str, agents: int | None) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts) or agents not in (None, len(parts)):
        expected = "whole numbers from 1, as 2,1,1" if agents is None else f"a number of threads for each of {agents} agents, as 2,1,1"
        raise UsageError(f"--shares: found {text!r}, expected {expected}")
    return tuple(int(part) for part in parts)
