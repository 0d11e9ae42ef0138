"""A load that another program makes: run on its CPUs, watched, ended in time, and read.

It runs below a host of its own, in namespaces where this machine allows that, so that neither its end nor that of weir leaves anything
behind, and so that its CPU time and memory are known.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from weir.generators.engine import LoadListener
from weir.generators.said import Usage, load_end
from weir.generators.tool import Tool
from weir.host import Ended, Host
from weir.model.claim import Claim
from weir.model.errors import GeneratorError, NotWrittenError, TargetError, UsageError
from weir.model.load import LoadPlan
from weir.model.records import LoadEnd, LoadStarted

OUTPUT = "output.txt"
"""What a tool prints, in its folder."""
_NAME = "generator"
_END_GRACE_S = 15.0
"""How long a tool may take to print its report when its load is over."""
_LOOK_S = 0.05
"""How often it is looked whether its load has begun and whether its time is over."""
_SHOWN_LINES = 3


class ExternalLoad:
    """A load by another program, which has been started. A `RunningLoad`.

    Args:
        tool: the program.
        plan: the load; it is bound to `plan.cpus`.
        listener: only `on_start` is called, on the watcher's thread: when the load begins, as well as that can be seen.
        folder: where its output, `output.txt`, and all of its files are kept. It is made if it is not there.

    Raises:
        UsageError: it cannot make this load, or is not there.
        GeneratorError: it cannot be started.
        NotWrittenError: there is no space for its files.
    """

    claim: Claim
    """What it said, with how far each figure was rounded. There once `result` has returned."""

    def __init__(self, tool: Tool, plan: LoadPlan, listener: LoadListener | None = None, *, folder: Path) -> None:
        self._tool, self._plan, self._listener = tool, plan, listener or LoadListener()
        self._log = folder.resolve() / OUTPUT
        program = tool.found()
        reason = tool.cannot(plan)
        if reason is not None:
            raise UsageError(f"generator = {tool.name!r}: {reason}")
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            self._log.write_bytes(b"")
            arguments = tool.arguments(plan, self._log.parent)
        except OSError as error:
            raise NotWrittenError(f"{error.filename}: {error.strerror}", hint="check the space left on the disk") from None
        self._version = tool.version()
        self._end: LoadEnd | None = None
        self._failure: Exception | None = None
        self._stopped = False
        self._deadline_s = time.monotonic() + tool.start_up_s + plan.duration_s + plan.timeout_s + _END_GRACE_S
        self._finished = threading.Event()
        self._host = Host()
        try:
            self._started_ns = time.monotonic_ns()
            command = [str(program), *arguments]
            environment = {**tool.environment(plan), "HOME": str(self._log.parent)}
            started = self._host.start(_NAME, command, tier=_NAME, cwd=self._log.parent, env=environment, log=self._log, cpus=plan.cpus)
        except TargetError as error:
            self._host.close()
            raise GeneratorError(f"{tool.name}: {program}: {error.message}", hint=error.hint) from None
        self.pid = started.pid
        """The generator's process id."""
        self._watcher = threading.Thread(target=self._watch, name=tool.name, daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """Ends the load early; `result` then gives what the tool says of it so far."""
        if self._finished.is_set() or self._stopped:
            return
        self._stopped = True
        self._deadline_s = time.monotonic() + _END_GRACE_S
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, self._tool.stop_signal)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of the load; False when that took longer than `timeout_s`."""
        return self._finished.wait(timeout_s)

    def result(self) -> LoadEnd:
        """Waits for the end of the load and gives what the tool says it came to; what it does not say is None, empty or 0.

        Raises:
            GeneratorError: it ended badly, hung, or printed what cannot be read.
        """
        self._finished.wait()
        if self._failure is not None:
            raise self._failure
        assert self._end is not None
        return self._end

    def close(self) -> None:
        """Ends the program if it is still there, with everything below it."""
        self._host.close()
        self._watcher.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _watch(self) -> None:
        try:
            begun_ns, spent_s = self._await_beginning()
            ended = self._await_end()
            usage = Usage(
                load_s=(time.monotonic_ns() - begun_ns) / 1e9,
                load_cpu_s=ended.cpu_user_s + ended.cpu_system_s - spent_s,
                peak_rss_bytes=ended.peak_rss_bytes,
            )
            self._end = self._read(usage)
        except Exception as error:
            self._failure = error
        finally:
            self._finished.set()

    def _await_beginning(self) -> tuple[int, float]:
        """When the load began, and the CPU time that was spent before. Of a tool that ends before anybody saw that, its own beginning."""
        begun_ns, spent_s, begins = self._started_ns, 0.0, self._tool.begins.encode()
        for _ in self._while_it_runs() if begins else ():
            if begins in self._log.read_bytes():
                begun_ns = time.monotonic_ns()
                spent_s = _cpu_s(self.pid)
                break
        self._listener.on_start(
            LoadStarted(
                version=self._version,
                pid=self.pid,
                backend=self._tool.name,
                wait="",
                threads=self._tool.threads(self._plan),
                cpus=list(self._plan.cpus),
                connected=0,
                start_monotonic_ns=begun_ns,
                start_unix_ns=time.time_ns() - (time.monotonic_ns() - begun_ns),
            )
        )
        return begun_ns, spent_s

    def _await_end(self) -> Ended:
        """How it ended by itself or after `stop`.

        Raises:
            GeneratorError: it did not, and was killed; or it ended badly.
        """
        for _ in self._while_it_runs():
            pass
        ended = self._host.ended(_NAME)
        if ended is None:
            self._host.stop(_NAME, grace_s=0.0)
            why = "it did not end when it was told to" if self._stopped else f"it hangs after a load of {self._plan.duration_s:g} s"
            raise self._error(f"{why}, and was killed")
        if not self._stopped and ended.exit_code != 0:
            raise self._error(f"it ended {ended.how}")
        return ended

    def _while_it_runs(self) -> Iterator[None]:
        """Again and again, until it has ended or its time is over."""
        while time.monotonic() < self._deadline_s and self._host.wait_ended(_NAME, _LOOK_S) is None:
            yield

    def _read(self, usage: Usage) -> LoadEnd:
        try:
            self.claim = self._tool.read(self._log.read_text(errors="replace"), self._log.parent)
        except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:
            stopped = "it was told to stop, and " if self._stopped else ""
            why = f"{error} is missing" if isinstance(error, KeyError) else f"{error}"
            raise self._error(f"{stopped}what it said cannot be read: {why}") from None
        return load_end(
            self._plan,
            self.claim,
            usage,
            version=self._version,
            clock=self._tool.clock,
            threads=self._tool.threads(self._plan),
            cpus=len(self._plan.cpus) or os.cpu_count() or 1,
            stopped="signal" if self._stopped else "duration" if self._plan.requests is None else "complete",
        )

    def _error(self, what: str) -> GeneratorError:
        printed = self._log.read_text(errors="replace").strip().splitlines()[-_SHOWN_LINES:]
        return GeneratorError("\n  ".join([f"{self._tool.name}: {what}; its output: {self._log}", *printed]))


def _cpu_s(process_group: int) -> float:
    """The CPU time of a process group so far, with the children that it has waited for. The host would say it later on a busy machine."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # A process may end meanwhile.
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == process_group:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
