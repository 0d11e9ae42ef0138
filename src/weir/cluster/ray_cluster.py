"""The Ray cluster that this machine has joined: the nodes, and the reservation of nodes for agents.

An agent needs a resource of its node: `weir_load`, `weir_stack` or `weir_service`, according to the agent's role. If no
node offers this resource, the agent needs a CPU. A placement group of Ray puts each agent on a separate node.
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
from weir.model.requirements import install_command
from weir.model.variables import Variable

Role = Literal["load", "stack", "service"]
EXTRA = install_command("cluster")
"""The command that installs weir with Ray."""
_PLACED_WITHIN_S = 20.0
_LISTENS_WITHIN_S = 3.0
_STDERR = 2
_NODE_LABEL = "ray.io/node-id"
"""Name of the label in which Ray stores a node's id."""
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The start of an HTTP/2 connection (RFC 9113, 3.4): the preface and empty settings."""
_QUIET = {
    # Only weir prints to the terminal.
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray would report its workers on standard output. weir detects losses itself.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    # If the cluster rejects this machine, Ray would otherwise write an error to standard error once a second.
    "RAY_BACKEND_LOG_LEVEL": "error",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster, or one of several nodes on a machine."""

    id: str
    address: str
    name: str
    """The node's address. If several nodes share the address, the name also has a part of the node's id."""
    resources: dict[str, float]

    def offers(self, role: Role) -> bool:
        return self.resources.get(get_resource_name(role), 0) > 0


def get_resource_name(role: Role) -> str:
    """Returns the name of a role's resource in Ray, such as `weir_load`."""
    return f"weir_{role}"


def find_node(cluster: "RayCluster", role: Role) -> Node | None:
    """Returns the first node that offers the role. None if this machine's node does, or if no node does."""
    offering = [node for node in cluster.nodes if node.offers(role)]
    return None if not offering or any(node.id == cluster.own_node for node in offering) else offering[0]


def ray() -> ModuleType:
    """Imports Ray. Raises UsageError if Ray is not installed."""
    if find_spec("ray") is None:
        raise UsageError("--cluster: Ray is not installed here", hint=EXTRA)
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import ray as found

    return found


@contextmanager
def join_cluster(address: str) -> Iterator["RayCluster"]:
    """Joins a cluster. At the end of the context, everything that weir started on the cluster ends. `address`:
    HOST:PORT of the cluster's head, or `auto` for the cluster of this machine's node. Raises UsageError if Ray is not
    installed, TargetError if there is no cluster or this machine has not joined it."""
    found = ray()
    try:
        _require_listener(address)
        with _contain_ray():
            found.init(address=address, log_to_driver=False, configure_logging=False, logging_level=logging.CRITICAL)
    except (OSError, RuntimeError, ValueError, found.exceptions.RayError) as error:
        expected = f"expected a Ray cluster that this machine has joined: {get_first_line(error)}"
        join = f"ray start --address {address} on this machine, or ray start --head for a first node"
        hint = f"{join}; set RAY_AUTH_MODE and RAY_USE_TLS here as on the other nodes"
        raise TargetError(f"--cluster: found {address}, {expected}", hint=hint) from None
    try:
        yield RayCluster(found)
    finally:
        found.shutdown()


def get_first_line(error: BaseException) -> str:
    """Returns the first line of an error's message. Ray's messages can be very long."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _require_listener(address: str) -> None:
    """Raises OSError if no server listens at `address`, or if only one side uses TLS. Ray would try for a minute."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        return
    with socket.create_connection((host, int(port)), _LISTENS_WITHIN_S) as connection:
        # Ray parses the variable in the same way.
        if os.environ.get(Variable.RAY_USE_TLS, "0").lower() in ("1", "true"):
            # This check does not verify the certificate. Ray verifies it.
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            try:
                context.wrap_socket(connection).close()
            except OSError:
                raise OSError("RAY_USE_TLS is set here, but the server has no TLS") from None
        else:
            connection.sendall(_HTTP2_PREFACE)
            # A server without TLS first sends an HTTP/2 frame. Its first byte is the highest byte of a small length: 0.
            if connection.recv(1) != b"\0":
                raise OSError("the server there is not Ray, or uses TLS; if the cluster uses TLS, set RAY_USE_TLS here")


@contextmanager
def _contain_ray() -> Iterator[None]:
    """Suppresses standard error while Ray joins, because Ray's C++ code prints errors that Ray also raises. Then
    restores weir's handler of SIGTERM: Ray's handler would end the process at once."""
    handler = signal.getsignal(signal.SIGTERM)
    with open(os.devnull, "wb") as nowhere:
        kept = os.dup(_STDERR)
        os.dup2(nowhere.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


class RayCluster:
    """A joined cluster. See `join_cluster`."""

    def __init__(self, found: ModuleType) -> None:
        self.ray = found
        self._stored: dict[bytes, Any] = {}

    def store(self, content: bytes) -> Any:
        """Puts bytes into Ray's object store and returns a reference. Ray sends the bytes to each node only once."""
        if content not in self._stored:
            with self._translate_errors():
                self._stored[content] = self.ray.put(content)
        return self._stored[content]

    @property
    def nodes(self) -> list[Node]:
        """The nodes that are alive, sorted by name."""
        with self._translate_errors():
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
        """HOST:PORT of the cluster's head."""
        return str(self.ray.get_runtime_context().gcs_address)

    @property
    def own_node(self) -> str:
        """The id of this machine's node."""
        return str(self.ray.get_runtime_context().get_node_id())

    @property
    def own_address(self) -> str:
        for node in self.nodes:
            if node.id == self.own_node:
                return node.address
        gone = "--cluster: found no node of this machine in the cluster, expected one"
        raise TargetError(gone, hint=f"ray start --address {self.address}")

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turns Ray's errors into a TargetError with a message of one line."""
        try:
            yield
        except self.ray.exceptions.RayError as error:
            raise TargetError(f"--cluster: Ray reports: {get_first_line(error)}", hint="ray status") from None

    @contextmanager
    def reserve_nodes(
        self, role: Role | None, count: int, *, share_nodes: bool = False
    ) -> Iterator[tuple[Any, Sequence[Node]]]:
        """Yields a placement group of Ray with `count` bundles, and the node of each bundle; finally removes the group.

        Bundles for stacks or services go to the node of `find_node`. Bundles without a role need few resources and fit
        on a busy node. With `share_nodes` a node may have several bundles. Raises UsageError if the cluster has too few
        nodes, TargetError if other jobs use the nodes or a node is lost.
        """
        from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group

        nodes = self.nodes
        what = "memory" if role is None else get_resource_name(role)
        if not any(node.resources.get(what, 0) >= 1 for node in nodes):
            what = "CPU"
        able = [node for node in nodes if node.resources.get(what, 0) >= 1]
        room = sum(int(node.resources[what]) for node in able) if share_nodes else len(able)
        if count > room:
            names = ", ".join(node.name for node in able) or "none"
            each = f"limited by the {what} of its nodes" if share_nodes else f"one agent on each node with {what}"
            start = f"ray start --address ADDRESS --resources '{{\"{what}\": 1}}' on another machine"
            raise UsageError(
                f"the cluster has room for {room} of {count} agents, {each}: {names}",
                hint=start if share_nodes else f"{start}, or --share-nodes",
            )
        # If several nodes offer the role, a resumed run must use the same node.
        only = None if role in (None, "load") else find_node(self, role)
        labels = None if only is None else [{_NODE_LABEL: only.id}] * count
        strategy = "SPREAD" if share_nodes else "STRICT_SPREAD"
        with self._translate_errors():
            group = placement_group([{what: 1.0}] * count, strategy=strategy, bundle_label_selector=labels)
        try:
            with self._translate_errors():
                if not group.wait(timeout_seconds=_PLACED_WITHIN_S):
                    who = "the cluster" if only is None else only.name
                    waited = f"{who} did not place {count} agents within {_PLACED_WITHIN_S:g} s"
                    raise TargetError(f"{waited}: another job uses the resource {what}", hint="ray status")
                where = placement_group_table(group)["bundles_to_node_id"]
            # Reads the nodes again, because a node may have joined or left.
            by_id = {node.id: node for node in self.nodes}
            found = [by_id[where[index]] for index in range(count) if where[index] in by_id]
            if len(found) < count:
                raise TargetError("a node was lost before its agent started", hint="ray status")
            yield group, found
        finally:
            with contextlib.suppress(Exception):
                remove_placement_group(group)
