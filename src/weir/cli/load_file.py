"""Keeps one load in a run file (`weir load --out`): what `weir run` writes of a trial, without a study around it.

Rows are appended while the load runs and the last transaction marks it finished, so that a killed `weir load` leaves a file that can be
read and says that it is unfinished. Secrets stay out: headers that carry them are kept by name alone.
"""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import join
from types import TracebackType
from typing import Any, Self

from weir import __version__
from weir.lab.environment import machine
from weir.model.errors import UsageError
from weir.model.histogram import bytes_of_text
from weir.model.load import ClosedLoad, LoadPlan
from weir.model.records import LoadEnd, LoadStarted, LoadSummary
from weir.model.resources import StackResources
from weir.model.run import Cell, Placement, RunInfo, TrialResult
from weir.model.verdict import TrialVerdict
from weir.store import RUN_FILE_NAME, Recorder, RunWriter

SUFFIX = ".weir"
LEFT_OUT = "(left out)"
_SECRET = re.compile(r"authorization|cookie|token|secret|password|api-?key", re.IGNORECASE)
_LONG_LOAD_S = 60.0
_LONGEST_BODY = 4096


def file_of(out: str) -> Path:
    """Where `--out` puts the file: FILE.weir itself, or `run.weir` in a folder.

    Raises:
        UsageError: there is a file already.
    """
    path = Path(out)
    if path.suffix != SUFFIX:
        if path.exists() and not path.is_dir():
            raise UsageError(
                f"--out: {path}: found a file, expected a folder or a new file with the suffix {SUFFIX}", hint=f"--out {path}{SUFFIX}"
            )
        path /= RUN_FILE_NAME
    if path.exists():
        raise UsageError(
            f"--out: {path}: found a file, expected none: a load is never written over another",
            hint=f"weir report {path}, or another --out",
        )
    return path


def with_kept_intervals(plan: LoadPlan) -> LoadPlan:
    """Short loads need points for their time series; long ones, whose length was asked for, need a file of bearable size."""
    ends_before = (
        plan.requests is not None or plan.until_first_failure or (isinstance(plan.load, ClosedLoad) and plan.load.loops is not None)
    )
    return plan if plan.duration_s <= _LONG_LOAD_S or ends_before else replace(plan, interval_s=1.0)


class KeptLoad:
    """The run file of one load. A context manager: a load that never started leaves no file, one that failed an unfinished one.

    Args:
        path: the file, from `file_of`.
        plan: the load.
        arguments: the command line after `weir`.
    """

    def __init__(self, path: Path, plan: LoadPlan, arguments: Sequence[str]) -> None:
        self.path = path
        self._made_folder = not path.parent.exists()
        target = plan.title
        asked = (
            f"{len(plan.scenario.get('steps') or plan.scenario.get('requests') or [])} requests" if plan.scenario else plan.request.method
        )
        cell = Cell(1, target, None, asked, plan.load, title=target)
        info = RunInfo(
            study="",
            title=target,
            question="",
            scale="",
            seed=plan.seed,
            blocks=1,
            indicative=True,
            baseline=None,
            study_text=json.dumps(_without_secrets(plan.to_json()), indent=2),
            command=join(["weir", *_arguments_without_secrets(arguments)]),
            weir_version=__version__,
            started_unix_ns=time.time_ns(),
            environment=machine(),
            placement=Placement(load=plan.cpus, stack=(), services=(), control=()),
        )
        self._writer = RunWriter.create(path, info, [cell])
        self._trial_id = self._writer.begin_trial(cell, block=1, position=0, attempt=1, started_unix_ns=info.started_unix_ns)
        self.recorder = Recorder(self._writer, self._trial_id)
        self._started: LoadStarted | None = None
        self._finished = False

    def start(self, started: LoadStarted) -> None:
        """The load's clock has started."""
        self._started = started
        self.recorder.take_start(started)

    def finish(self, end: LoadEnd, summary: LoadSummary, resources: StackResources | None, *, interrupted: bool) -> None:
        """Writes what the load came to and marks it finished."""
        result = TrialResult(
            verdict=TrialVerdict.told(summary.verdict.validity, summary.verdict.reasons),
            summary=summary,
            resources=resources,
            histograms={clock: bytes_of_text(text) for clock, text in end.histograms.items()},
            load_started_monotonic_ns=None if self._started is None else self._started.start_monotonic_ns,
        )
        self._writer.finish_trial(self._trial_id, result)
        self._writer.close("interrupted" if interrupted else "complete")
        self._finished = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._finished:
            return
        self._writer.close("interrupted")
        if self._started is None:
            # Nothing was measured: the same command must not be refused because of this file.
            self.path.unlink(missing_ok=True)
            if self._made_folder:
                self.path.parent.rmdir()


def _without_secrets(value: Any) -> Any:
    """A plan without the values of headers that carry secrets, and without long bodies."""
    if isinstance(value, dict):
        cleaned = {key: _without_secrets(part) for key, part in value.items()}
        for key, part in cleaned.items():
            if key == "headers":
                cleaned[key] = [[name, LEFT_OUT if _SECRET.search(name) else text] for name, text in part]
            elif key == "base64" and len(part) > _LONGEST_BODY:
                cleaned[key] = f"({len(part) * 3 // 4} bytes left out)"
        return cleaned
    return [_without_secrets(part) for part in value] if isinstance(value, list) else value


def _arguments_without_secrets(arguments: Sequence[str]) -> list[str]:
    cleaned = []
    for argument in arguments:
        name, colon, _ = argument.partition(":")
        is_header = bool(colon) and _SECRET.search(name) and "/" not in name
        cleaned.append(f"{name}: {LEFT_OUT}" if is_header else argument)
    return cleaned
