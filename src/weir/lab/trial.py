"""Runs one trial: starts, checks, warms up, loads and stops a fresh process of the stack. Module `measurement`
measures; module `trial_result` judges."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from weir.lab.context import TrialContext
from weir.lab.measurement import measure, warm_up
from weir.lab.monitoring import timed
from weir.lab.observer import SKIPPED, TrialSkippedError
from weir.lab.stack_process import RunningStack, find_exit_problems, running_stack
from weir.lab.trial_generator import list_generator_files
from weir.lab.trial_result import judge_measurement
from weir.model.errors import GeneratorError, TargetError
from weir.model.load_records import Validity
from weir.model.run_types import WEIR, TrialResult
from weir.model.verdict import Reason, TrialVerdict
from weir.observe.jvm import find_pause_logs, read_pause_events
from weir.services.nginx import find_dropped_servers
from weir.study.file import Failures

GENERATOR_FAILED = "generator failed"
"""Kind of the reason that rejects a trial if its external generator failed."""
_SKIPPED = Reason(SKIPPED, "invalid", "skipped by the viewer")


def run_trial(trial: TrialContext) -> TrialResult:
    """Runs one trial and returns the result, even if the stack fails. Writes intervals, samples and events at once. The
    caller marks the trial as finished."""
    planned, run = trial.planned, trial.run
    logs = {name: trial.log_path(name) for name in (*trial.stack_processes, *planned.services)}
    generator_log = {} if trial.generator == WEIR else {trial.generator: trial.generator_folder / "output.txt"}
    run.observer.on_logs(logs | generator_log)
    started = time.monotonic()
    try:
        with run.controls.skip.trial():
            result = _run_started(trial, logs)
    except TrialSkippedError:
        result = _reject(_SKIPPED)
    except TargetError as error:
        # If a viewer skips the trial before the generator starts, the stopped generator looks like a failure.
        result = _reject(_SKIPPED if run.controls.skip.is_requested else _failure_reason(error))
    # weir reads these logs only after the JVMs have ended. Earlier reads would disturb the load.
    jvm_logs = {
        f"{name} {found.stem.removeprefix(f'{log.stem}-')}": found
        for name, log in logs.items()
        for found in find_pause_logs(log)
    }
    load, start_ns = result.whole_load or result.summary, result.load_started_monotonic_ns
    if load is not None and start_ns is not None:
        end_ns = start_ns + int(load.duration_s * 1e9)
        for event in read_pause_events(jvm_logs.values(), start_ns=start_ns, end_ns=end_ns):
            trial.writer.add_event(trial.trial_id, event)
    logs |= jvm_logs | list_generator_files(trial.generator, trial.generator_folder)
    return replace(
        result,
        artifact_bytes=None if trial.built is None else trial.built.artifact_bytes,
        isolation=run.host.isolation,
        logs={name: str(log.relative_to(run.folder)) for name, log in logs.items()},
        phases_s={**trial.phases_s, "total": time.monotonic() - started},
    )


def _run_started(trial: TrialContext, logs: Mapping[str, Path]) -> TrialResult:
    """Starts and checks services and stack, measures and judges the load, and stops services and stack."""
    planned, run, phases_s = trial.planned, trial.run, trial.phases_s
    with ExitStack() as opened:
        with timed(phases_s, "services"):
            starting = run.services.running(planned, trial.placement, log_of=logs.__getitem__)
            services = opened.enter_context(starting)
        stack = running_stack(
            run.host,
            trial.built,
            planned,
            placement=trial.placement,
            logs=[logs[name] for name in trial.stack_processes],
            inputs=trial.inputs,
            fields=services.fields,
            front=services.front,
        )
        running = opened.enter_context(stack)
        phases_s["check"] = running.check_s
        if running.ready_s is not None:
            phases_s["ready"] = running.ready_s
        warm_up(trial, running)
        result = judge_measurement(trial, measure(trial, running, services), running, services)
        measured = time.monotonic()
    phases_s["stop"] = time.monotonic() - measured
    front_logs = {name: logs[name] for name in services.fronts}
    behind_proxy = _find_dropped_processes(front_logs, len(trial.stack_processes), trial.failures)
    reasons = (*result.verdict.reasons, *behind_proxy, *_judge_ends(running))
    return replace(result, verdict=TrialVerdict((_SKIPPED, *reasons) if run.controls.skip.is_requested else reasons))


def _reject(reason: Reason) -> TrialResult:
    return TrialResult(verdict=TrialVerdict((reason,)))


def _failure_reason(error: TargetError) -> Reason:
    if isinstance(error, GeneratorError):
        # A reason must be one line.
        text = " ".join(error.message.split())
        return Reason(GENERATOR_FAILED, "invalid", text, next_step=error.hint or "read the generator's output")
    return Reason("stack failed", "invalid", error.message, next_step=error.hint or "")


def _find_dropped_processes(logs: Mapping[str, Path], processes: int, failures: Failures) -> Iterator[Reason]:
    """Yields a reason for each proxy that sent no requests to one of the stack's processes for a while."""
    for name, log in logs.items():
        addresses = find_dropped_servers(log.read_text(errors="replace")) if log.exists() else ()
        if addresses:
            validity: Validity = "suspect" if failures == "reject" else "valid"
            fact = f"{name} sent no requests to {len(addresses)} of {processes} processes for a while"
            cause = "a process refused a connection, or closed a connection while a request arrived"
            next_step = f"read the log of {name}; set the keepalive_timeout of {name} below the server's timeout"
            yield Reason("left out", validity, fact, cause=cause, next_step=next_step)


def _judge_ends(stopped: RunningStack) -> Iterator[Reason]:
    """Yields a reason for each process that the kernel killed at its memory limit, even if the stack continued. Also
    yields notes about ignored SIGTERMs and leftover processes or files. Notes do not reject the trial."""
    for ended in stopped.ended:
        if ended.out_of_memory:
            fact = f"{ended.name} ended {ended.how}"
            yield Reason("memory limit", "invalid", fact, next_step="choose a higher limit in cpus.memory")
        for problem in find_exit_problems(ended):
            next_step = "let the server end all its processes on SIGTERM"
            yield Reason("stop", "valid", f"{ended.name}: {problem}", next_step=next_step)
