"""Chooses the machines for loads, services and stacks: this machine, or nodes of a Ray cluster."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from weir.cli import options
from weir.cli.output import say
from weir.generators.engine import LOCAL
from weir.generators.handle import LoadHandle, LoadSource
from weir.model.errors import UsageError
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver

if TYPE_CHECKING:
    from weir.cluster.ray_cluster import RayCluster
    from weir.services.service_host import ServiceHost


@dataclass(frozen=True, slots=True)
class ClusterFlags:
    """The flags for a load or a run on a cluster. Each attribute has the name of its flag."""

    cluster: str | None
    agents: int | None
    agent_threads: str | None
    share_nodes: bool
    stacks_here: bool = False
    services_here: bool = False

    @property
    def given(self) -> dict[str, Any]:
        """Returns a dict from each flag on the command line to the flag's value."""
        return {f"--{name.replace('_', '-')}": value for name, value in asdict(self).items() if value}

    @property
    def words(self) -> list[str]:
        """Returns the flags and values as words of a command line."""
        pairs = self.given.items()
        return [word for flag, value in pairs for word in ([flag] if value is True else [flag, str(value)])]


@contextmanager
def load_and_services(flags: ClusterFlags) -> "Iterator[tuple[LoadSource, ServiceHost | None]]":
    """Yields the source of loads, and the machine for services (None: each service runs on the machine of its stack).

    Raises UsageError if a flag needs another flag, the cluster has too few nodes, or Ray is missing. Raises TargetError
    if there is no cluster.
    """
    if flags.cluster is None:
        if flags.given:
            problem = "found without --cluster, expected both flags"
            raise UsageError(f"{next(iter(flags.given))}: {problem}", hint="add --cluster ADDRESS")
        yield LOCAL, None
        return
    from weir.cluster.agents import start_agents
    from weir.cluster.load import SharedLoad
    from weir.cluster.ray_cluster import join_cluster
    from weir.cluster.remote_services import open_service_place

    shares = None if flags.agent_threads is None else _read_shares(flags.agent_threads, flags.agents)
    with join_cluster(flags.cluster) as cluster:
        offering = [node for node in cluster.nodes if node.offers("load")]
        count = flags.agents or (len(shares) if shares else len(offering)) or 1
        with (
            start_agents(cluster, "load", count, share_nodes=flags.share_nodes) as agents,
            nullcontext() if flags.services_here else open_service_place(cluster) as services,
        ):

            def begin(plan: LoadPlan, observer: LoadObserver | None) -> LoadHandle:
                return SharedLoad(agents, plan, observer, threads=shares)

            known = {agent.name: {**agent.facts, "clock_offset_us": agent.clock.offset_ns / 1e3} for agent in agents}
            yield LoadSource(begin, cluster.own_address, known, shares), services


@contextmanager
def join_stack_cluster(flags: ClusterFlags) -> "Iterator[RayCluster | None]":
    """Yields the cluster if one of its nodes runs the study. Yields None if this machine runs the study.

    Raises UsageError if Ray is missing, and TargetError if there is no cluster.
    """
    if flags.cluster is None or flags.stacks_here:
        yield None
        return
    from weir.cluster.ray_cluster import find_node, join_cluster

    with join_cluster(flags.cluster) as cluster:
        if (node := find_node(cluster, "stack")) is not None:
            say(f"weir: the stacks run on {node.name}")
        yield None if node is None else cluster


def _read_shares(text: str, agents: int | None) -> tuple[int, ...]:
    shares = options.read_flag("--agent-threads", options.parse_counts, text)
    if agents not in (None, len(shares)):
        expected = f"expected a number of threads for each of {agents} agents, such as 2,1,1"
        raise UsageError(f"--agent-threads: found {text!r}, {expected}")
    return shares
