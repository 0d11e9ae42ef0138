"""Services on a node of their own: a host there, through an agent, starts and watches them as the one here does those beside the stack.

A node needs nothing but Ray for that: the programs of databases are fetched here and travel, and so does the class that keeps their data.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from weir.cluster.clock import Clock
from weir.cluster.members import AgentLostError, Member, members
from weir.cluster.ray_cluster import RayCluster, node_of
from weir.cluster.travel import SENT_WITHIN_S
from weir.host import Host, HostGoneError
from weir.model.errors import GeneratorError, TargetError, WeirError
from weir.model.records import Sample
from weir.services import folder as folder_module
from weir.services.folder import Folder, ServiceFolder
from weir.services.place import ServicePlace

_ANY_PORT = 9
_FILES_WITHIN_S = 60.0


@contextmanager
def service_place(cluster: RayCluster) -> Iterator[ServicePlace | None]:
    """The node for services, while the context lasts; None where it is this machine's, or no node says so.

    Raises:
        TargetError: the node is taken.
        AgentLostError: it does not come up.
    """
    if node_of(cluster, "service") is None:
        yield None
        return
    with members(cluster, "service", 1) as (member,), Host(member.start_engine) as host:
        folder = member.call("new_folder")
        try:
            yield _place(cluster, member, host, folder)
        finally:
            with suppress(WeirError):
                member.call("remove", folder, timeout_s=_FILES_WITHIN_S)


def _place(cluster: RayCluster, member: Member, host: Host, folder: str) -> ServicePlace:
    @contextmanager
    def logged(log: Path) -> Iterator[Path]:
        with _of_services():
            # For every trial: the clocks of two machines drift apart.
            member.read_clock()
        there = f"{folder}/{log.name}"
        try:
            yield Path(there)
        finally:
            with suppress(WeirError):
                log.write_bytes(member.call("taken", there, timeout_s=SENT_WITHIN_S))

    def free_port() -> int:
        with _of_services():
            return int(member.call("free_port", member.node.address))

    return ServicePlace(
        host=host,
        engine=Path(member.engine_path),
        address=member.node.address,
        clients=(_own_address(member.node.address), member.node.address),
        free_port=free_port,
        logged=logged,
        folder=lambda: _FolderThere(cluster, member),
        node=member.node.name,
        facts=member.facts,
        reading=lambda sample: read_here(sample, member.node.name, member.clock),
    )


def _own_address(node: str) -> str:
    """The address with which this machine reaches a node."""
    family = socket.AF_INET6 if ":" in node else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        # Sends nothing: the kernel only chooses the way.
        probe.connect((node, _ANY_PORT))
        return str(probe.getsockname()[0])


class _FolderThere(Folder):
    """A `ServiceFolder` on a node."""

    def __init__(self, cluster: RayCluster, member: Member) -> None:
        cluster.ray.cloudpickle.register_pickle_by_value(folder_module)
        self._member = member
        with _of_services():
            self._number, known = member.call("make", ServiceFolder, timeout_s=_FILES_WITHIN_S)
        self.path, self.owner = known["path"], known["owner"]

    def programs(self, name: str, fetched_to: Path) -> Path:
        with _of_services():
            there = self._member.keep_folder(fetched_to, name)
        return Path(self._ask("programs", name, Path(there)))

    def data(self, name: str) -> Path:
        return Path(self._ask("data", name))

    def copy(self, data: Path, name: str) -> Path:
        return Path(self._ask("copy", data, name))

    def write(self, name: str, text: str) -> Path:
        return Path(self._ask("write", name, text))

    def read(self, name: str) -> str:
        return str(self._ask("read", name))

    def drop(self, name: str) -> None:
        with suppress(WeirError):
            self._ask("drop", name)

    def remove(self) -> None:
        with suppress(WeirError):
            self._ask("remove")

    def _ask(self, method: str, *arguments: object) -> Any:
        with _of_services():
            return self._member.call("ask", self._number, method, *arguments, timeout_s=_FILES_WITHIN_S)


def read_here(sample: Sample, node: str, clock: Clock) -> Sample:
    """A node's reading of its services by this machine's clock, without what it says of the node."""
    groups = [group.model_copy(update={"name": f"{group.name}@{node}"}) for group in sample.groups]
    return Sample(t_ns=clock.ours(sample.t_ns), groups=groups, cpus=[], limits=sample.limits)


@contextmanager
def _of_services() -> Iterator[None]:
    """Unlike an agent for loads the one for services has no other to go on with, and what it cannot do is no generator's failure."""
    try:
        yield
    except AgentLostError as error:
        raise HostGoneError(error.message, hint=error.hint) from None
    except GeneratorError as error:
        raise TargetError(error.message, hint=error.hint) from None
