"""Runs a Ray cluster of several nodes on this machine until standard input closes.

    python tests/support/ray_nodes.py '[{"weir_stack": 1}, {"weir_load": 4}]' [--namespaces]

The first node is the head. With --namespaces, which needs root, every other node is in a network namespace with its own
address. Its monotonic clock is CLOCK_AHEAD_S ahead of the node before. Prints a line of JSON: the address, and the
process ids of the nodes.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

STORE_BYTES = 100 * 2**20
CLOCK_AHEAD_S = 1000


def main() -> None:
    resources, in_namespaces = json.loads(sys.argv[1]), "--namespaces" in sys.argv
    with ExitStack() as stack:
        # The folder's name is short, because paths of sockets must be short. It disappears with the cluster.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True))
        # Ray writes the address of its newest cluster into this folder, which may not exist yet.
        Path(folder, "ray").mkdir()
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1", "RAY_TMPDIR": folder}
        # Imported here, because Ray reads these variables at its import, and other modules need only `below`.
        from ray.cluster_utils import Cluster

        network = stack.enter_context(Namespaces()) if in_namespaces else None
        cluster = Cluster()
        stack.callback(cluster.shutdown)
        given = {"temp_dir": folder} | ({} if network is None else {"node_ip_address": network.head})
        raylets = []
        state: Any = cluster.global_state
        for index, offered in enumerate(resources):
            if network is not None and index:
                raylets.append(network.join(cluster.address, offered))
                # Nodes start one after the other: their sockets share a folder, and two at once may choose the same
                # name.
                while sum(node["Alive"] for node in state.node_table()) <= index:
                    if not Path(f"/proc/{raylets[-1]}").exists():
                        raise RuntimeError(f"the raylet of node {index} ended")
                    time.sleep(0.05)
                continue
            node = cluster.add_node(
                wait=False,
                num_cpus=1,
                resources=offered,
                object_store_memory=STORE_BYTES,
                include_dashboard=False,
                **given,
            )
            raylets.append(node.all_processes["raylet"][0].process.pid)
        if network is None:
            cluster.wait_for_nodes()
        print(json.dumps({"address": cluster.address, "raylets": raylets}), flush=True)
        sys.stdin.read()


class Namespaces:
    """A bridge with network namespaces; the node in each has its own clock."""

    def __init__(self) -> None:
        self._mark = f"wr{os.getpid() % 100_000}"
        self._net = f"10.213.{os.getpid() % 250 + 1}"
        self._nodes: list[subprocess.Popen[bytes]] = []
        self._names: list[str] = []

    @property
    def head(self) -> str:
        return f"{self._net}.1"

    def __enter__(self) -> "Namespaces":
        ip("link", "add", self._mark, "type", "bridge")
        ip("address", "add", f"{self.head}/24", "dev", self._mark)
        ip("link", "set", self._mark, "up")
        return self

    def join(self, address: str, offered: dict[str, float]) -> int:
        """Starts a node in new namespaces; returns its raylet's process id."""
        number = len(self._names) + 2
        name, outside = f"{self._mark}-{number}", f"{self._mark}v{number}"
        ip("netns", "add", name)
        self._names.append(name)
        ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", outside, "master", self._mark, "up")
        ip("-n", name, "address", "add", f"{self._net}.{number}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "link", "set", "lo", "up")
        command = [
            "ip", "netns", "exec", name, "unshare", "--time", "--monotonic", str((number - 1) * CLOCK_AHEAD_S),
            sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--address", address,
            "--node-ip-address", f"{self._net}.{number}", "--num-cpus", "1", "--resources", json.dumps(offered),
            "--object-store-memory", str(STORE_BYTES), "--disable-usage-stats",
        ]  # fmt: skip
        node = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._nodes.append(node)
        while not (raylet := raylet_below(node.pid)):
            if node.poll() is not None:
                raise RuntimeError(f"the node in {name} ended")
            time.sleep(0.05)
        return raylet

    def __exit__(self, *_: object) -> None:
        for node in self._nodes:
            # The node takes time to end its processes, and a namespace stays as long as it has a process.
            for process in (*below(node.pid), node.pid):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            node.wait()
        for name in self._names:
            ip("netns", "del", name)
        ip("link", "del", self._mark)


def raylet_below(ancestor: int) -> int | None:
    """Returns the raylet among the descendants of a process, or None."""
    for process in below(ancestor):
        with suppress(OSError):
            if Path(f"/proc/{process}/comm").read_text().strip() == "raylet":
                return process
    return None


def below(ancestor: int) -> list[int]:
    """Returns the process ids of all descendants of a process."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found = [ancestor]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


if __name__ == "__main__":
    main()
