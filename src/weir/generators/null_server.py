"""Measures the highest throughput of a generator. The server is `weir-engine serve null` on loopback, which does almost
no work for a request. The server ends when its standard input closes, so the server never outlives weir."""

import queue
from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from weir.compat.flags import format_path
from weir.engine_process import Closing, EngineProcess, Record
from weir.generators.engine import EngineLoad
from weir.generators.handle import LoadHandle
from weir.model.errors import TargetError
from weir.model.load import ClosedLoad, LoadPlan

TRIES = 3
"""Number of short loads. Other processes can only lower the throughput. So the best of several short loads is closer to
the generator's limit than one long load."""
_LAST_TRY_S = 5.0


class NullServer(Closing):
    """A server that sends the same short response to every request. `cpus`: the server's CPUs; empty: any CPU.
    `address`: address of this machine to listen on; None: loopback. Raises TargetError if the server does not start."""

    def __init__(self, cpus: Sequence[int] = (), *, address: str | None = None) -> None:
        self._addresses: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        arguments = ["serve", "null", "--listen", f"{address or '127.0.0.1'}:0"]
        self._process = EngineProcess(
            arguments, on_record=self._take, on_end=lambda: self._addresses.put(None), cpus=cpus
        )
        found = self._addresses.get()
        if found is None:
            self._process.end()
            raise self._process.error()
        self.address: str = found

    def close(self) -> None:
        self._process.end()

    def _take(self, record: Record) -> None:
        if record.get("record") == "listening":
            self._addresses.put(record["address"])


def measure_on_null_server(
    plan: LoadPlan,
    *,
    duration_s: float,
    server_cpus: Sequence[int] = (),
    start: Callable[[LoadPlan], LoadHandle] = EngineLoad,
    tries: int = TRIES,
    address: str | None = None,
) -> float:
    """Returns a generator's highest throughput with the request, connections, threads and CPUs of `plan`, in requests
    per second. The load is always a closed loop over plain TCP, without pauses. The load follows no scenario, because
    the null server's response would fail a scenario's checks. `duration_s`: time of all `tries` together. `address`:
    address of the null server for a load from another machine. Raises UsageError if the generator does not support such
    a load, and TargetError if the server or the generator fails."""
    with NullServer(server_cpus, address=address) as server:
        request = replace(plan.request, target=f"http://{server.address}{_path_of(plan.request.target)}")
        on_null = LoadPlan(
            request,
            ClosedLoad(plan.load.connections),
            duration_s / tries,
            plan.timeout_s,
            plan.interval_s,
            keep_alive=plan.keep_alive,
            pipeline=plan.pipeline,
            kernel_timestamps=plan.kernel_timestamps,
            threads=plan.threads,
            cpus=plan.cpus,
            seed=plan.seed,
            part=plan.part,
            held=plan.held,
        )
        reached_rps = max(_throughput_rps(on_null, start) for _ in range(tries))
        # On a busy machine, the generator may get no CPU time during such a short load.
        reached_rps = reached_rps or _throughput_rps(replace(on_null, duration_s=_LAST_TRY_S), start)
    if not reached_rps:
        raise TargetError("weir-engine serve null: found no responses, expected at least one", hint="weir doctor")
    return reached_rps


def _throughput_rps(plan: LoadPlan, start: Callable[[LoadPlan], LoadHandle]) -> float:
    with start(plan) as load:
        return load.result().summary.throughput_rps


def _path_of(target: str) -> str:
    if target.startswith("unix:"):
        _, colon, path = target.removeprefix("unix:").partition(":")
        return path if colon else "/"
    return format_path(urlsplit(target))
