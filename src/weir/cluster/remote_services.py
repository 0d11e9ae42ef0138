"""Runs services on a separate node. On the node, an agent runs a host, which starts and samples the services. The node
needs only Ray: this machine sends the databases' programs, and the class that manages their data."""

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, cast

from weir.cluster.agent import find_free_port, take_file
from weir.cluster.agents import AgentHandle, AgentLostError, start_agents
from weir.cluster.archive import SENT_WITHIN_S, pack_folder
from weir.cluster.clock import Clock
from weir.cluster.ray_cluster import RayCluster, find_node
from weir.host import Host, HostGoneError
from weir.model.errors import GeneratorError, TargetError, WeirError
from weir.model.observer_records import Sample
from weir.services import folder as folder_module
from weir.services.folder import ServiceFolder
from weir.services.service_host import ServiceHost

_ANY_PORT = 9
_FILES_WITHIN_S = 60.0


@contextmanager
def open_service_place(cluster: RayCluster) -> Iterator[ServiceHost | None]:
    """Yields the node for services, with a running agent and host. None if no other node offers `weir_service`."""
    if find_node(cluster, "service") is None:
        yield None
        return
    with start_agents(cluster, "service", 1) as (agent,), Host(agent.start_engine) as host:
        folder = agent.apply(mkdtemp, None, "weir-")
        try:
            yield _build_service_host(cluster, agent, host, folder)
        finally:
            with suppress(WeirError):
                agent.apply(shutil.rmtree, folder, True, timeout_s=_FILES_WITHIN_S)


def _build_service_host(cluster: RayCluster, agent: AgentHandle, host: Host, folder: str) -> ServiceHost:
    @contextmanager
    def logged(log: Path) -> Iterator[Path]:
        with _convert_errors():
            # Clocks drift apart, so weir reads the clock for every trial.
            agent.read_clock()
        there = f"{folder}/{log.name}"
        try:
            yield Path(there)
        finally:
            with suppress(WeirError):
                log.write_bytes(agent.apply(take_file, there, timeout_s=SENT_WITHIN_S))

    def free_port() -> int:
        with _convert_errors():
            return int(agent.apply(find_free_port, agent.node.address))

    return ServiceHost(
        host=host,
        engine=Path(agent.engine_path),
        address=agent.node.address,
        clients=(_own_address(agent.node.address), agent.node.address),
        free_port=free_port,
        logged=logged,
        folder=lambda: cast(ServiceFolder, _RemoteFolder(cluster, agent)),
        node=agent.node.name,
        facts=agent.facts,
        reading=lambda sample: convert_sample(sample, agent.node.name, agent.clock),
    )


def _own_address(node: str) -> str:
    """Returns the address from which this machine connects to a node."""
    family = socket.AF_INET6 if ":" in node else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        # `connect` sends nothing here. The kernel only chooses the route.
        probe.connect((node, _ANY_PORT))
        return str(probe.getsockname()[0])


class _RemoteFolder:
    """A `ServiceFolder` in the agent's process on a node."""

    def __init__(self, cluster: RayCluster, agent: AgentHandle) -> None:
        cluster.ray.cloudpickle.register_pickle_by_value(folder_module)
        self._agent = agent
        with _convert_errors():
            self._number, known = agent.call("make", ServiceFolder, timeout_s=_FILES_WITHIN_S)
        self.path, self.owner = known["path"], known["owner"]

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return partial(self._ask, method)

    def programs(self, name: str, fetched_to: Path) -> Path:
        with _convert_errors():
            there: Path = self._ask("programs", name, Path(self._agent.send_archive(pack_folder(fetched_to, name))))
        return there

    def _ask(self, method: str, *arguments: object) -> Any:
        # The files of a lost node cannot be removed.
        with suppress(WeirError) if method in ("drop", "remove") else _convert_errors():
            return self._agent.call("ask", self._number, method, *arguments, timeout_s=_FILES_WITHIN_S)


def convert_sample(sample: Sample, node: str, clock: Clock) -> Sample:
    """Converts a node's sample of services to this machine's clock. Leaves out the figures of the whole node."""
    groups = [replace(group, name=f"{group.name}@{node}") for group in sample.groups]
    return Sample(t_ns=clock.ours(sample.t_ns), groups=groups, cpus=[], limits=sample.limits)


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Converts an agent's error to HostGoneError if the agent is lost, else to TargetError (no generator failed)."""
    try:
        yield
    except AgentLostError as error:
        raise HostGoneError(error.message, hint=error.hint) from None
    except GeneratorError as error:
        raise TargetError(error.message, hint=error.hint) from None
