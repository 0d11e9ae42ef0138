"""Writes one load to a run file (`weir load --out`), as a run of one trial.

weir writes records during the load, and marks the load as finished at the end. So a killed `weir load` leaves a
readable file with an unfinished load. The file contains no secrets: weir replaces secret values by `LEFT_OUT`.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from shlex import join
from typing import Any

from weir import __version__
from weir.lab.machine_facts import describe_machine
from weir.load_spec import SETTINGS
from weir.model.errors import UsageError
from weir.model.hdr import bytes_of_text
from weir.model.load import Load, LoadPlan
from weir.model.load_records import LoadEnd, LoadSummary
from weir.model.resources import StackResources
from weir.model.run_types import Cell, Placement, RunInfo, TrialResult
from weir.model.verdict import TrialVerdict
from weir.store import RUN_FILE_NAME, Recorder, RunWriter

SUFFIX = ".weir"
LEFT_OUT = "(left out)"
_SECRET = re.compile(r"authorization|cookie|token|secret|password|api-?key", re.IGNORECASE)
_SECRET_FLAGS = {flag for one in SETTINGS.values() if one.is_secret for flag in one.flags.split("/")}
_USERINFO = re.compile(r"//[^/?#]*@")
_LONG_LOAD_S = 60.0
_LONGEST_BODY = 4096


def choose_file(out: str) -> Path:
    """Returns the run file of `--out`: FILE.weir, or `run.weir` in a folder. Raises UsageError if the file exists."""
    path = Path(out)
    if path.suffix != SUFFIX:
        if path.exists() and not path.is_dir():
            problem = f"found a file, expected a folder or a new file with the suffix {SUFFIX}"
            raise UsageError(f"--out: {path}: {problem}", hint=f"--out {path}{SUFFIX}")
        path /= RUN_FILE_NAME
    if path.exists():
        problem = "found a file, expected none: weir never overwrites a load"
        raise UsageError(f"--out: {path}: {problem}", hint=f"weir report {path}, or choose another --out")
    return path


def choose_interval(plan: LoadPlan) -> LoadPlan:
    """Returns the plan. A long load gets longer intervals, because many intervals would make a large run file."""
    return plan if plan.duration_s <= _LONG_LOAD_S or plan.ends_by_itself else replace(plan, interval_s=1.0)


class LoadRecording(AbstractContextManager["LoadRecording"]):
    """A context manager that writes the run file of one load. `arguments`: the words after `weir` on the command line.
    If the load never starts, no file remains. If the load fails, a file with an unfinished load remains."""

    def __init__(self, path: Path, plan: LoadPlan, arguments: Sequence[str]) -> None:
        self.path = path
        self._made_folder = not path.parent.exists()
        target, workload = plan.title, plan.request.method
        if plan.scenario:
            workload = f"{len(plan.scenario.get('steps') or plan.scenario.get('requests') or [])} requests"
        cell = self._cell = Cell(1, target, None, workload, plan.load, title=target)
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
            environment=describe_machine(),
            placement=Placement(load=plan.cpus, stack=(), services=(), control=()),
        )
        self._writer = RunWriter.create(path, info, [cell])
        begun_ns = info.started_unix_ns
        self._trial_id = self._writer.begin_trial(cell, block=1, position=0, attempt=1, started_unix_ns=begun_ns)
        self.recorder = Recorder(self._writer, self._trial_id)
        """The observer that writes the load's records to the file."""
        self._finished = False

    def finish(
        self,
        end: LoadEnd,
        summary: LoadSummary,
        resources: StackResources | None,
        *,
        interrupted: bool,
        load: Load | None = None,
    ) -> None:
        """Writes the result, and marks the load as finished. `load` replaces the plan's load."""
        result = TrialResult(
            verdict=TrialVerdict.from_texts(summary.verdict.validity, summary.verdict.reasons),
            summary=summary,
            resources=resources,
            histograms={clock: bytes_of_text(text) for clock, text in end.histograms.items()},
            load_started_monotonic_ns=self.recorder.start_ns if self.recorder.has_started else None,
        )
        if load is not None:
            self._writer.change_load(replace(self._cell, load=load))
        self._writer.finish_trial(self._trial_id, result)
        self._writer.close("interrupted" if interrupted else "complete")
        self._finished = True

    def __exit__(self, *_: object) -> None:
        if self._finished:
            return
        self._writer.close("interrupted")
        if not self.recorder.has_started:
            # A file without a measurement would prevent a second run of the same command.
            self.path.unlink(missing_ok=True)
            if self._made_folder:
                self.path.parent.rmdir()


def _without_secrets(value: Any) -> Any:
    """Returns a plan without long bodies, and without the values of secret headers."""
    if isinstance(value, list):
        return [_without_secrets(part) for part in value]
    if not isinstance(value, dict):
        return value
    cleaned = {key: _without_secrets(part) for key, part in value.items()}
    if headers := cleaned.get("headers"):
        cleaned["headers"] = [[name, LEFT_OUT if _SECRET.search(name) else text] for name, text in headers]
    if len(body := cleaned.get("base64", "")) > _LONGEST_BODY:
        cleaned["base64"] = f"({len(body) * 3 // 4} bytes left out)"
    return cleaned


def _arguments_without_secrets(arguments: Sequence[str]) -> Iterator[str]:
    for before, argument in zip(["", *arguments], arguments, strict=False):
        name, colon, _ = argument.partition(":")
        flag, equals, _ = argument.partition("=")
        if before in _SECRET_FLAGS:
            yield LEFT_OUT
        elif flag in _SECRET_FLAGS and equals:
            yield f"{flag}={LEFT_OUT}"
        elif colon and _SECRET.search(name) and "/" not in name:
            yield f"{name}: {LEFT_OUT}"
        else:
            yield _USERINFO.sub(f"//{LEFT_OUT}@", argument)
