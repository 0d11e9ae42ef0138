"""One trial: a fresh process, checked, primed, loaded, observed and stopped. Nothing of it outlives `run_trial`."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir.generators.engine import EngineLoad, LoadListener
from weir.lab.host import Host
from weir.lab.stack import APP, RunningStack, running_stack
from weir.lab.verdict import judge
from weir.model.errors import TargetError
from weir.model.histogram import bytes_of_text
from weir.model.load import LoadPlan
from weir.model.records import LoadEnd, Verdict
from weir.model.run import Placement, TrialEvent, TrialResult
from weir.observe.figures import stack_resources
from weir.stacks.build import BuiltStack
from weir.store import Recorder, RunWriter
from weir.study.file import LoadTable
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

    @property
    def interval_s(self) -> float:
        """Short trials need points for their time series; long ones need a file of bearable size."""
        return 0.1 if self.load.duration_s <= _LONG_TRIAL_S else 1.0


def run_trial(bench: Bench, planned: PlannedCell, built: BuiltStack, writer: RunWriter, trial_id: int, *, seed: str) -> TrialResult:
    """Runs one trial and gives what it came to; a stack that fails is a result too.

    Rows are written as they come; the caller finishes the trial.

    Args:
        bench: what all trials share.
        planned: the cell.
        built: its built stack.
        writer: takes intervals, samples and events.
        trial_id: the trial's row.
        seed: draws the inputs of the check; the request of the load is the same in every trial.
    """
    log = bench.folder / "logs" / f"trial-{trial_id:04d}-{APP}.log"
    logs = {APP: str(log.relative_to(bench.folder))}
    try:
        with running_stack(
            bench.host,
            built,
            planned,
            cpus=bench.placement.stack,
            log=log,
            inputs=random.Random(seed),
            timeout_s=bench.load.timeout_s,
        ) as running:
            return _measure(bench, planned, built, writer, trial_id, running, logs)
    except TargetError as error:
        return TrialResult(
            verdict=Verdict(validity="invalid", reasons=[error.message]),
            isolation=bench.host.isolation,
            artifact_bytes=built.artifact_bytes,
            logs=logs,
        )


def _measure(
    bench: Bench, planned: PlannedCell, built: BuiltStack, writer: RunWriter, trial_id: int, running: RunningStack, logs: dict[str, str]
) -> TrialResult:
    request = planned.workload.draw(
        running.base_url, random.Random(bench.method.seed), path=built.stack.manifest.serves[planned.workload.id].path
    )

    def plan(duration_s: float) -> LoadPlan:
        return LoadPlan(
            request=request,
            load=planned.cell.load,
            duration_s=duration_s,
            timeout_s=bench.load.timeout_s,
            interval_s=bench.interval_s,
            expected_status=(planned.workload.answer.status,),
            threads=len(bench.placement.load),
            cpus=bench.placement.load,
        )

    if bench.method.prime_s:
        with EngineLoad(plan(bench.method.prime_s)) as priming:
            priming.result()
    time.sleep(bench.method.pause_s)
    recorder = Recorder(writer, trial_id)
    bench.host.on_sample = recorder.take_sample
    bench.host.observe()
    try:
        # One reading before the load starts and one after it has ended, so that its window lies between readings.
        recorder.take_sample(bench.host.sample())
        with EngineLoad(plan(bench.load.duration_s), recording(recorder)) as load, _stopped_when_dead(bench.host, load):
            end = load.result()
        dead = bench.host.ended(APP)
        if dead is not None:
            writer.add_event(trial_id, TrialEvent(end.summary.duration_s, STACK_ENDED, dead.how))
        recorder.take_sample(bench.host.sample())
    finally:
        bench.host.unobserve()
        bench.host.on_sample = lambda _: None
    return _result(bench, built, running, recorder, end, None if dead is None else dead.how, logs)


def _result(
    bench: Bench,
    built: BuiltStack,
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
    return TrialResult(
        verdict=verdict,
        summary=end.summary,
        resources=resources,
        histograms={clock: bytes_of_text(text) for clock, text in end.histograms.items()},
        load_started_monotonic_ns=start_ns,
        ready_s=running.ready_s,
        artifact_bytes=built.artifact_bytes,
        isolation=bench.host.isolation,
        logs=logs,
    )


def recording(recorder: Recorder) -> LoadListener:
    """Hands what a load says to the recorder."""
    return LoadListener(on_start=recorder.take_start, on_interval=recorder.take_interval, on_event=recorder.take_event)


@contextmanager
def _stopped_when_dead(host: Host, load: EngineLoad) -> Iterator[None]:
    """Ends the load as soon as the stack has ended: what would follow says nothing more."""
    host.on_exit = lambda _: load.stop()
    try:
        if host.ended(APP) is not None:
            load.stop()
        yield
    finally:
        host.on_exit = lambda _: None
