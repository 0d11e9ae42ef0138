"""One trial: a fresh process, checked, primed, loaded, observed and stopped. Nothing of it outlives `run_trial`."""

import random
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir.generators.engine import EngineLoad, LoadListener
from weir.lab.host import Ended, Host
from weir.lab.stack import RunningStack, process_names, running_stack
from weir.lab.verdict import judge
from weir.model.errors import TargetError
from weir.model.histogram import bytes_of_text
from weir.model.load import LoadPlan
from weir.model.records import LoadEnd, Verdict
from weir.model.run import Placement, TrialEvent, TrialResult
from weir.objective import judge as held_against
from weir.objective import objective
from weir.observe.figures import stack_resources
from weir.observe.watch import Watch
from weir.stacks.build import BuiltStack
from weir.stacks.external import ExternalStack
from weir.stacks.manifest import Stack
from weir.store import Recorder, RunWriter
from weir.study.load import LoadTable
from weir.study.method import Method
from weir.study.study import PlannedCell

_LONG_TRIAL_S = 60.0
STACK_ENDED = "stack ended"
"""The kind of the event that says that a stack ended under the load."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What all trials of a run share."""

    host: Host
    placement: Placement
    load: LoadTable
    method: Method
    folder: Path
    """The run folder."""
    ceiling_rps: float | None = None
    objectives: tuple[str, ...] = ()
    """What every trial is held against."""

    @property
    def interval_s(self) -> float:
        """Short trials need points for their time series; long ones need a file of bearable size."""
        return 0.1 if self.load.duration_s <= _LONG_TRIAL_S else 1.0


def run_trial(bench: Bench, planned: PlannedCell, built: BuiltStack | None, writer: RunWriter, trial_id: int, *, seed: str) -> TrialResult:
    """Runs one trial and gives what it came to; a stack that fails is a result too.

    Rows are written as they come; the caller finishes the trial.

    Args:
        bench: what all trials share.
        planned: the cell.
        built: its built stack; None of an external one.
        writer: takes intervals, samples and events.
        trial_id: the trial's row.
        seed: draws the inputs of the check; the request of the load is the same in every trial.
    """
    names = process_names(planned.cell.replicas) if built is not None else []
    logs = {name: bench.folder / "logs" / f"trial-{trial_id:04d}-{name}.log" for name in names}
    relative = {name: str(log.relative_to(bench.folder)) for name, log in logs.items()}
    try:
        with running_stack(
            bench.host,
            built,
            planned,
            cpus=bench.placement.stack,
            logs=list(logs.values()),
            inputs=random.Random(seed),
            timeout_s=bench.load.timeout_s,
        ) as running:
            return _measure(bench, planned, writer, trial_id, running, relative)
    except TargetError as error:
        return TrialResult(
            verdict=Verdict(validity="invalid", reasons=[error.message]),
            isolation=bench.host.isolation,
            artifact_bytes=None if built is None else built.artifact_bytes,
            logs=relative,
        )


def _measure(
    bench: Bench, planned: PlannedCell, writer: RunWriter, trial_id: int, running: RunningStack, logs: dict[str, str]
) -> TrialResult:
    requests = [
        planned.workload.draw(base_url, random.Random(bench.method.seed), path=planned.stack.path_of(planned.workload.id))
        for base_url in running.base_urls
    ]
    targets = tuple(request.target for request in requests) if len(requests) > 1 else ()

    def plan(duration_s: float) -> LoadPlan:
        return planned.plan(requests[0], targets=targets, duration_s=duration_s, interval_s=bench.interval_s, cpus=bench.placement.load)

    if bench.method.prime_s:
        with EngineLoad(plan(bench.method.prime_s)) as priming:
            priming.result()
    time.sleep(bench.method.pause_s)
    recorder = Recorder(writer, trial_id)
    with (
        observed(bench.host, planned.stack, recorder),
        EngineLoad(plan(bench.load.duration_s), recording(recorder)) as load,
        _stopped_when_dead(bench.host, logs, load),
    ):
        end = load.result()
        dead = _ended(bench.host, logs)
    if dead is not None:
        writer.add_event(trial_id, TrialEvent(end.summary.duration_s, STACK_ENDED, dead.how))
    return _result(bench, planned, running, recorder, end, None if dead is None else dead.how, logs)


def _result(
    bench: Bench,
    planned: PlannedCell,
    running: RunningStack,
    recorder: Recorder,
    end: LoadEnd,
    stack_ended: str | None,
    logs: dict[str, str],
) -> TrialResult:
    start_ns = recorder.start_ns
    resources = stack_resources(
        recorder.samples,
        start_ns=start_ns,
        end_ns=start_ns + int(end.summary.duration_s * 1e9),
        stack_cpus=bench.placement.stack,
    )
    verdict = judge(
        end.summary,
        stack_ended=stack_ended,
        ceiling_rps=bench.ceiling_rps,
        steal_fraction=resources.steal_fraction if resources else None,
        load_shares_stack_cpu=bool(set(bench.placement.load) & set(bench.placement.stack)),
    )
    held = [held_against(objective(text), end).to_json() for text in bench.objectives]
    return TrialResult(
        verdict=verdict,
        summary=end.summary.model_copy(update={"objectives": held or None}),
        resources=resources,
        histograms={clock: bytes_of_text(text) for clock, text in end.histograms.items()},
        load_started_monotonic_ns=start_ns,
        ready_s=running.ready_s,
        artifact_bytes=running.artifact_bytes,
        isolation=bench.host.isolation,
        logs=logs,
    )


def recording(recorder: Recorder) -> LoadListener:
    """Hands what a load says to the recorder."""
    return LoadListener(on_start=recorder.take_start, on_interval=recorder.take_interval, on_event=recorder.take_event)


@contextmanager
def observed(host: Host, stack: Stack | ExternalStack, recorder: Recorder) -> Iterator[None]:
    """Samples a stack's processes, once before what goes on inside and once after it as well: its window lies between readings."""
    if isinstance(stack, ExternalStack) and stack.pids:
        with Watch(stack.pids, recorder.take_sample):
            yield
        return
    host.on_sample = recorder.take_sample
    host.observe()
    try:
        recorder.take_sample(host.sample())
        yield
        recorder.take_sample(host.sample())
    finally:
        host.unobserve()
        host.on_sample = lambda _: None


@contextmanager
def _stopped_when_dead(host: Host, names: Collection[str], load: EngineLoad) -> Iterator[None]:
    """Ends the load as soon as a process of the stack has ended: what would follow says nothing more."""
    host.on_exit = lambda _: load.stop()
    try:
        if _ended(host, names) is not None:
            load.stop()
        yield
    finally:
        host.on_exit = lambda _: None


def _ended(host: Host, names: Collection[str]) -> Ended | None:
    """How the first of these processes ended by itself; None while all run."""
    return next((ended for name in names if (ended := host.ended(name)) is not None), None)
