"""What a generator reaches on a server that does nothing: the most that a throughput measured with it can be.

The server is `weir-engine serve null` on loopback. It ends with its standard input, so that nothing is left behind however weir ends.
"""

import queue
from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from weir.engine_process import EngineProcess, Record
from weir.generators.engine import EngineLoad
from weir.generators.running import RunningLoad
from weir.model.errors import TargetError
from weir.model.load import ClosedLoad, LoadPlan

TRIES = 3
"""Whatever else the machine does only lowers what is reached: the best of several short loads is nearer to the ceiling than a long one."""


class NullServer:
    """A server that answers every request with the same few bytes. A context manager.

    Args:
        cpus: CPUs that it is bound to; empty: unbound.
        address: on which of this machine's addresses it listens; None: loopback.

    Raises:
        TargetError: it did not start.
    """

    def __init__(self, cpus: Sequence[int] = (), *, address: str | None = None) -> None:
        self._said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        arguments = ["serve", "null", "--listen", f"{address or '127.0.0.1'}:0"]
        self._process = EngineProcess(arguments, on_record=self._take, on_end=lambda: self._said.put(None), cpus=cpus)
        said = self._said.get()
        if said is None:
            self._process.end()
            raise self._process.error()
        self.address: str = said
        """IP and port."""

    def close(self) -> None:
        """Ends it."""
        self._process.end()

    def __enter__(self) -> "NullServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, record: Record) -> None:
        if record.get("record") == "listening":
            self._said.put(record["address"])


def measure_ceiling(
    plan: LoadPlan,
    *,
    duration_s: float,
    server_cpus: Sequence[int] = (),
    begin: Callable[[LoadPlan], RunningLoad] = EngineLoad,
    tries: int = TRIES,
    address: str | None = None,
) -> float:
    """What a generator reaches with the request, the connections, the threads and the CPUs of `plan`, in requests per second.

    Its users ask again as soon as they are answered, whatever the load of `plan` is: a ceiling is of what could be asked. Over plain TCP,
    and without a scenario, whose checks a server that does nothing cannot pass.

    Args:
        plan: the load whose ceiling it is; where it goes does not matter.
        duration_s: how long to measure altogether.
        server_cpus: CPUs of the server that does nothing; empty: any.
        begin: starts a load of the generator.
        tries: how many loads that is.
        address: where the server that does nothing listens, if the load comes from elsewhere.

    Raises:
        UsageError: the generator cannot make such a load.
        TargetError: the server or the generator failed.
    """
    with NullServer(server_cpus, address=address) as server:
        request = replace(plan.request, target=f"http://{server.address}{_path_of(plan.request.target)}")
        on_null = replace(
            plan,
            request=request,
            load=ClosedLoad(plan.load.connections),
            duration_s=duration_s / tries,
            address=None,
            targets=(),
            tls=None,
            local_addresses=(),
            expected_status=None,
            scenario=None,
            requests=None,
            until_first_failure=False,
            request_log=None,
        )
        reached_rps = max(_throughput_rps(on_null, begin) for _ in range(tries))
    if not reached_rps:
        raise TargetError("weir-engine serve null: found no answer, expected some", hint="weir doctor")
    return reached_rps


def _throughput_rps(plan: LoadPlan, begin: Callable[[LoadPlan], RunningLoad]) -> float:
    with begin(plan) as load:
        return load.result().summary.throughput_rps


def _path_of(target: str) -> str:
    if target.startswith("unix:"):
        _, colon, path = target.removeprefix("unix:").partition(":")
        return path if colon else "/"
    parts = urlsplit(target)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
