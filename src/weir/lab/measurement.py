"""Warms up a started stack and measures the stack under load, while the host samples the stack's processes."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from weir.generators.external_load import ExternalLoad
from weir.generators.handle import StopSwitch
from weir.host import Ended, Host
from weir.lab.context import TrialContext
from weir.lab.jit_priority import prioritize_jit_threads
from weir.lab.monitoring import (
    find_exit,
    sample_host,
    sample_stack,
    stop_load_on_exit,
    timed,
    wait_for_end,
    wait_for_exit,
)
from weir.lab.post_checks import PostLoadCheck, check_after_load
from weir.lab.stack_process import RunningStack
from weir.lab.steady_window import SteadyWatch, can_be_steady, find_window, use_whole_load
from weir.lab.trial_generator import begin_load
from weir.lab.trial_services import RunningServices
from weir.model.errors import GeneratorError
from weir.model.load import LoadPlan, constant_from_s
from weir.model.load_observer import LoadObservers
from weir.model.load_records import LOST_AGENT, Interval, LoadEnd
from weir.model.reported_result import ReportedResult
from weir.model.run_types import WEIR, MeasurementWindow, TrialEvent
from weir.observe.packet_capture import TrialCapture, capture_packets
from weir.stacks.unmanaged import ExternalStack
from weir.store import Recorder

STACK_ENDED = "stack ended"
"""Kind of the event that records the end of the stack, during the load or right after it."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Results of one measured load: the load's records, and the readings from the server."""

    end: LoadEnd
    intervals: Sequence[Interval]
    window: MeasurementWindow
    """The part of the load that counts."""
    recorder: Recorder
    """Recorder with the start time of the load and the samples of the server."""
    reported_result: ReportedResult | None
    """Figures and rounding in an external generator's report; None for weir's engine."""
    tap: TrialCapture
    after: PostLoadCheck
    stack_ended: str | None
    """How and when the stack ended, during the load or right after it; None if the stack still runs."""
    service_ended: str | None
    """How and when a service of the stack ended; None if all services still run."""
    cut_short_s: float | None
    """Duration of a load that a process other than weir ended; None otherwise."""


def warm_up(trial: TrialContext, running: RunningStack) -> None:
    """Loads the stack for `method.warmup_s` without a measurement, then waits for `method.pause_s`. Raises
    TrialSkippedError if a viewer skips the trial, GeneratorError if an agent was lost."""
    skip, method = trial.run.controls.skip, trial.method
    with timed(trial.phases_s, "warmup"):
        skip.check()
        if method.warmup_s:
            # Open requests of the warm-up would change the rows, work and queues of the measured load.
            plan = _plan(trial, running, method.warmup_s).answered_to_the_end()
            with (
                prioritize_jit_threads(running.pids if trial.built is not None else ()),
                trial.run.load_source.start(plan, None) as load,
                skip.stops(load),
            ):
                verdict = load.result().summary.verdict
            if LOST_AGENT in verdict.kinds:
                # The stack is not warm, and the remaining agents would make another load than in other trials.
                raise GeneratorError(verdict.reasons[verdict.kinds.index(LOST_AGENT)])
    with timed(trial.phases_s, "pause"):
        skip.wait(method.pause_s)
        skip.check()


def measure(trial: TrialContext, running: RunningStack, services: RunningServices) -> Measurement:
    """Runs the measured load, samples the stack's processes, and checks the stack afterwards. Raises TrialSkippedError
    if a viewer skips the trial. If the generator failed, raises TargetError if the stack or a service has ended, and
    GeneratorError otherwise."""
    run, planned, phases_s = trial.run, trial.planned, trial.phases_s
    names = [*trial.stack_processes, *services.names]
    recorder, stop = Recorder(trial.writer, trial.trial_id), StopSwitch()
    watch = _watch_for_steady_state(trial, stop)
    plan = _plan(trial, running, planned.duration_s + (planned.extension_s if watch.may_end_load else 0.0))
    observer = LoadObservers(recorder, watch, run.observer)
    hosts, place = [run.host], services.place
    elsewhere: AbstractContextManager[None] = nullcontext()
    if place is not None:
        hosts.append(place.host)
        elsewhere = sample_host(place.host, lambda sample: recorder.on_remote_sample(place.reading(sample)))
    before = services.read(planned.workload)
    with (
        timed(phases_s, "observe"),
        elsewhere,
        sample_stack(run.host, planned.stack, observer.on_sample),
        capture_packets(running.base_urls, planned.cell.load.connections, enabled=trial.method.tap) as tap,
        timed(phases_s, "load"),
        begin_load(trial.generator, plan, observer, folder=trial.generator_folder, load_source=run.load_source) as load,
        stop.connected(load),
        run.controls.skip.stops(load),
        # In a study of failures, the end of the stack is a result, so the load continues.
        nullcontext() if trial.failures == "measure" else stop_load_on_exit(hosts, names, load),
    ):
        end = wait_for_end(load, hosts, names)
    run.controls.skip.check()
    phases_s["observe"] -= phases_s["load"]
    # The host reports the end of a process before its next sample.
    find_ends = partial(_find_ends, trial, hosts, services.names)
    ends, when, after = find_ends(), "during the load", PostLoadCheck()
    # The services counted a lost agent's requests, but the load's figures do not include them.
    if ends is None and LOST_AGENT not in end.summary.verdict.kinds:
        with timed(phases_s, "after"):
            after = check_after_load(trial, running, services, before, end.summary)
            if after.is_unanswered:
                ends, when = wait_for_exit(find_ends), "right after the load"
    stack_ended, service = ends or (None, None)
    has_ended = ends is not None
    if stack_ended is not None:
        trial.writer.add_event(trial.trial_id, TrialEvent(end.summary.duration_s, STACK_ENDED, stack_ended))
    is_cut_short = end.stopped in ("signal", "input") and not (watch.ended_with is not None or has_ended)
    return Measurement(
        end=end,
        intervals=watch.intervals,
        window=_window(trial, watch, end, has_ended=stack_ended is not None),
        recorder=recorder,
        reported_result=load.reported_result if isinstance(load, ExternalLoad) else None,
        tap=tap,
        after=PostLoadCheck() if has_ended else after,
        stack_ended=None if stack_ended is None else f"{stack_ended} {when}",
        service_ended=None if service is None else f"{service.name} ended {service.how} {when}",
        cut_short_s=end.summary.duration_s if is_cut_short else None,
    )


def _plan(trial: TrialContext, running: RunningStack, duration_s: float) -> LoadPlan:
    requests = [trial.planned.request(base_url) for base_url in running.base_urls]
    targets = tuple(request.target for request in requests) if len(requests) > 1 else ()
    return trial.planned.plan(
        requests[0], targets=targets, duration_s=duration_s, interval_s=trial.interval_s, cpus=trial.placement.load
    )


def _watch_for_steady_state(trial: TrialContext, stop: StopSwitch) -> SteadyWatch:
    """Returns an observer that stores a load's intervals, and that ends a steady load before the extension."""
    planned, load = trial.planned, trial.planned.cell.load
    is_constant = can_be_steady(load, planned.duration_s, trial.interval_s) and not planned.load.ends_by_itself
    can_judge = trial.generator == WEIR and is_constant
    may_end_load, level_s = can_judge and planned.extension_s > 0, constant_from_s(load) or 0.0
    return SteadyWatch(planned.duration_s, stop.stop, level_s, can_judge=can_judge, may_end_load=may_end_load)


def _window(trial: TrialContext, watch: SteadyWatch, end: LoadEnd, *, has_ended: bool) -> MeasurementWindow:
    if has_ended:
        why = "the server ended"
    elif trial.planned.script:
        why = "another tool's script determines the load"
    elif trial.generator != WEIR:
        why = "a generator other than weir's reports no intervals"
    elif not watch.can_judge:
        why = "the load changes or ends by itself, or is too short to judge"
    elif watch.ended_with is not None:
        # A new judgement would include intervals after the decision, and could call the load unsteady.
        return replace(watch.ended_with, end_s=watch.intervals[-1].end_s)
    else:
        return find_window(watch.intervals, asked_s=watch.asked_s, level_from_s=watch.level_from_s)
    return use_whole_load(end.summary.duration_s, why)


def _find_ends(
    trial: TrialContext, hosts: Collection[Host], services: Collection[str]
) -> tuple[str | None, Ended | None] | None:
    """Returns how the stack ended, and the end of a service; None while both run."""
    stack = find_exit([trial.run.host], trial.stack_processes)
    service, how = find_exit(hosts, services), None if stack is None else stack.how
    if stack is None and isinstance(trial.planned.stack, ExternalStack):
        gone = trial.planned.stack.find_ended_pids()
        how = f"(process {', '.join(map(str, gone))} is gone)" if gone else None
    return None if how is None and service is None else (how, service)
