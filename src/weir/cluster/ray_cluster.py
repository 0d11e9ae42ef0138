"""A Ray cluster that this machine has joined: its nodes, and agents on them.

Ray schedules: a role takes a resource that nodes offer (`weir_load`, `weir_stack`, `weir_service`; where no node offers it, a CPU), and the
bundles of a placement group keep agents on nodes of their own.
"""

import contextlib
import logging
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal

from weir.model.errors import TargetError, UsageError
from weir.model.variables import Variable

Role = Literal["load", "stack", "service"]
EXTRA = "pip install 'weirbench[cluster]'"
"""What installs weir with Ray."""
_PLACED_WITHIN_S = 20.0
_LISTENS_WITHIN_S = 3.0
_STDERR = 2
_NODE_LABEL = "ray.io/node-id"
"""What Ray labels every node with."""
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""What a client begins with (RFC 9113, 3.4): the preface, and settings without any."""
_QUIET = {
    # What is printed belongs to weir.
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray says on standard output what became of its workers; weir notices by itself.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    # And on standard error, once a second, that it is not let in.
    "RAY_BACKEND_LOG_LEVEL": "error",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster, or what was started as one."""

    id: str
    address: str
    name: str
    """Its address, with a part of its id where several nodes have that."""
    resources: dict[str, float]

    def offers(self, role: Role) -> bool:
        """Whether it was started for this role."""
        return self.resources.get(resource(role), 0) > 0


def resource(role: Role) -> str:
    """What a node offers that takes a role: `ray start --resources '{"weir_load": 1}'`."""
    return f"weir_{role}"


def node_of(cluster: "RayCluster", role: Role) -> Node | None:
    """The one node for stacks or for services, where that is not this machine's; None where it is, or no node says so."""
    offering = [node for node in cluster.nodes if node.offers(role)]
    return None if not offering or any(node.id == cluster.own_node for node in offering) else offering[0]


def ray() -> ModuleType:
    """Ray.

    Raises:
        UsageError: the extra is not installed.
    """
    if find_spec("ray") is None:
        raise UsageError("--cluster: Ray is not installed here", hint=EXTRA)
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import ray as found

    return found


@contextmanager
def joined(address: str) -> Iterator["RayCluster"]:
    """The cluster at an address, for as long as the context lasts; what was started on it ends with that.

    Args:
        address: HOST:PORT of its head, or `auto`: that of the node that runs on this machine.

    Raises:
        UsageError: Ray is not installed.
        TargetError: there is no cluster, or this machine has not joined it.
    """
    found = ray()
    try:
        _require_listener(address)
        with _own_handler(), _silent():
            found.init(address=address, log_to_driver=False, configure_logging=False, logging_level=logging.CRITICAL)
    except (OSError, RuntimeError, ValueError, found.exceptions.RayError) as error:
        raise TargetError(
            f"--cluster: found {address}, expected a Ray cluster that this machine has joined: {first_line(error)}",
            hint=f"ray start --address {address} on this machine, or ray start --head for a first node; where its nodes have RAY_AUTH_MODE "
            "or RAY_USE_TLS, the same here",
        ) from None
    try:
        yield RayCluster(found)
    finally:
        found.shutdown()


def first_line(error: BaseException) -> str:
    """What an error of Ray's says; pages follow."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _require_listener(address: str) -> None:
    """Ray itself tries for a minute where nobody listens, and where one side has TLS and the other has none."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        return
    with socket.create_connection((host, int(port)), _LISTENS_WITHIN_S) as connection:
        # As Ray reads it.
        if os.environ.get(Variable.RAY_USE_TLS, "0").lower() in ("1", "true"):
            # Whom to trust is Ray's to say.
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            try:
                context.wrap_socket(connection).close()
            except OSError:
                raise OSError("RAY_USE_TLS is set here, and what answers there has no TLS") from None
        else:
            connection.sendall(_HTTP2_PREFACE)
            # The highest byte of the length of its settings.
            if connection.recv(1) != b"\0":
                raise OSError("what answers there is no Ray without TLS, and RAY_USE_TLS is not set here")


@contextmanager
def _own_handler() -> Iterator[None]:
    """Leaves what weir does at SIGTERM as it is: Ray would end the process on the spot."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _silent() -> Iterator[None]:
    """Keeps what Ray says past Python while it joins off standard error, where what is said is weir's: its errors are raised as well."""
    with open(os.devnull, "wb") as nowhere:
        kept = os.dup(_STDERR)
        os.dup2(nowhere.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)


class RayCluster:
    """See `joined`."""

    def __init__(self, found: ModuleType) -> None:
        self.ray = found
        self._stored: dict[bytes, Any] = {}

    def stored(self, content: bytes) -> Any:
        """What stands for some bytes in Ray's object store, which sends them to a node once."""
        if content not in self._stored:
            with self._told():
                self._stored[content] = self.ray.put(content)
        return self._stored[content]

    @property
    def nodes(self) -> list[Node]:
        """Those that are alive, by name."""
        with self._told():
            alive = [one for one in self.ray.nodes() if one["Alive"]]
        addresses = [one["NodeManagerAddress"] for one in alive]
        found = []
        for one in alive:
            address, identity = one["NodeManagerAddress"], one["NodeID"]
            name = address if addresses.count(address) == 1 else f"{address}/{identity[:6]}"
            found.append(Node(identity, address, name, dict(one["Resources"])))
        return sorted(found, key=lambda node: node.name)

    @property
    def address(self) -> str:
        """Where its head is, HOST:PORT."""
        found: str = self.ray.get_runtime_context().gcs_address
        return found

    @property
    def own_node(self) -> str:
        """The id of the node on this machine."""
        identity: str = self.ray.get_runtime_context().get_node_id()
        return identity

    @property
    def own_address(self) -> str:
        """The address of the node on this machine."""
        for node in self.nodes:
            if node.id == self.own_node:
                return node.address
        raise TargetError(
            "--cluster: the node on this machine is gone, expected it in the cluster", hint=f"ray start --address {self.address}"
        )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What Ray cannot do is told in a line."""
        try:
            yield
        except self.ray.exceptions.RayError as error:
            raise TargetError(f"--cluster: Ray says: {first_line(error)}", hint="ray status") from None

    @contextmanager
    def placed(self, role: Role | None, count: int, *, share_nodes: bool = False) -> Iterator[tuple[Any, Sequence[Node]]]:
        """A placement group with as many bundles of a role, and the node of each bundle; it is removed in the end.

        Args:
            role: what the bundles are for; those for stacks or services are on the node that `node_of` names. None: they take next to
                nothing of a node, and find room on a busy one.
            count: how many.
            share_nodes: whether several may be on one node.

        Raises:
            UsageError: the cluster has not as many nodes for it.
            TargetError: they are taken, or gone.
        """
        from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group

        nodes = self.nodes
        what, amount = ("memory", 1.0) if role is None else (resource(role), 1.0)
        if not any(node.resources.get(what, 0) >= amount for node in nodes):
            what = "CPU"
        able = [node for node in nodes if node.resources.get(what, 0) >= amount]
        room = sum(int(node.resources[what]) for node in able) if share_nodes else len(able)
        if count > room:
            names = ", ".join(node.name for node in able) or "none"
            each = f"by the {what} of its nodes" if share_nodes else f"one on each node with {what}"
            start = f"ray start --address ADDRESS --resources '{{\"{what}\": 1}}' on another machine"
            raise UsageError(
                f"the cluster has room for {room} of {count} agents, {each}: {names}",
                hint=start if share_nodes else f"{start}, or --share-nodes",
            )
        # Several may offer it: it is the one that was named, now and when a run is resumed.
        only = None if role in (None, "load") else node_of(self, role)
        labels = None if only is None else [{_NODE_LABEL: only.id}] * count
        with self._told():
            group = placement_group(
                [{what: amount}] * count, strategy="SPREAD" if share_nodes else "STRICT_SPREAD", bundle_label_selector=labels
            )
        try:
            with self._told():
                if not group.wait(timeout_seconds=_PLACED_WITHIN_S):
                    who = "the cluster" if only is None else only.name
                    raise TargetError(
                        f"{who} gave no place to {count} agents within {_PLACED_WITHIN_S:g} s: something else has its {what}",
                        hint="ray status",
                    )
                where = placement_group_table(group)["bundles_to_node_id"]
            # Those of now: one may have joined, or gone, meanwhile.
            by_id = {node.id: node for node in self.nodes}
            if any(where[index] not in by_id for index in range(count)):
                raise TargetError("a node was lost before its agent began", hint="ray status")
            yield group, [by_id[where[index]] for index in range(count)]
        finally:
            with contextlib.suppress(Exception):
                remove_placement_group(group)
