"""One trial: a fresh process, checked, primed, loaded, observed and stopped. Nothing of it outlives `run_trial`."""

import random
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from weir.audit.own import breaches_of_trial
from weir.generators.engine import LoadListener
from weir.generators.external import ExternalLoad
from weir.generators.running import HERE, LoadFrom
from weir.host import Host
from weir.lab.after import After, look_after
from weir.lab.compilers import compilers_first
from weir.lab.during import end_of, ended_by_itself, entered, observed, sampled, stopped_when_dead, timed
from weir.lab.generator import begin_load, kept
from weir.lab.onlooker import SKIPPED, Onlooker, TrialSkippedError
from weir.lab.part import summary_of_part
from weir.lab.services import RunningServices, Services
from weir.lab.stack import RunningStack, how_not_to_end, process_names, running_stack
from weir.lab.steady import SteadyWatch, may_be_judged, whole, window_of
from weir.lab.tapped import Tapped, tapped
from weir.lab.verdict import Facts, judge
from weir.model.claim import Claim
from weir.model.errors import GeneratorError, TargetError
from weir.model.histogram import bytes_of_text
from weir.model.load import LoadPlan, constant_from_s
from weir.model.records import FEWER_AGENTS, LOST_AGENT, Interval, LoadEnd, LoadEvent, LoadStarted, Sample
from weir.model.run import WEIR, Placement, TrialEvent, TrialResult
from weir.model.verdict import Reason, TrialVerdict
from weir.model.window import Window
from weir.objective import judge as held_against
from weir.objective import objective
from weir.observe.figures import stack_resources
from weir.observe.jvm import pause_events, pause_logs
from weir.services.nginx import left_out
from weir.services.place import ServicePlace
from weir.stacks.build import BuiltStack
from weir.stacks.external import ExternalStack
from weir.store import Recorder, RunWriter
from weir.study.load import LoadTable
from weir.study.method import Failures, Method
from weir.study.study import PlannedCell

_LONG_TRIAL_S = 60.0
STACK_ENDED = "stack ended"
"""The kind of the event that says that a stack ended under the load."""
GENERATOR_FAILED = "generator failed"
"""The kind of the reason of a trial whose load another program did not make."""
_SKIPPED = Reason(SKIPPED, "invalid", "skipped by the viewer")


@dataclass(frozen=True, slots=True)
class Bench:
    """What all trials of a run share."""

    host: Host
    services: Services
    placement: Placement
    load: LoadTable
    method: Method
    folder: Path
    """The run folder."""
    ceiling_rps: float | None = None
    objectives: tuple[str, ...] = ()
    """What every trial is held against."""
    onlooker: Onlooker = field(default_factory=Onlooker)
    load_from: LoadFrom = HERE

    @property
    def interval_s(self) -> float:
        """Short trials need points for their time series; long ones need a file of bearable size."""
        return 0.1 if self.load.duration_s <= _LONG_TRIAL_S else 1.0

    def kept(self, trial_id: int, generator: str) -> Path:
        """Where the output and the files of a generator other than weir's are kept."""
        return self.folder / "logs" / f"trial-{trial_id:04d}-{generator}"

    @property
    def failures(self) -> Failures:
        """What a failed request makes of its trial; a load that ends with the first failure asks for it."""
        return "measure" if self.load.until_first_failure else self.method.failures

    @property
    def extension_s(self) -> float:
        """How much longer a load goes on where it shows no steady state."""
        return self.load.duration_s if self.method.extension_s is None else self.method.extension_s


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard of a load."""

    end: LoadEnd
    intervals: Sequence[Interval]
    claim: Claim | None
    """Of a generator other than weir's: what it said, with how far it rounded."""
    tap: Tapped


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
    logs = {name: bench.folder / "logs" / f"trial-{trial_id:04d}-{name}.log" for name in (*names, *planned.services)}
    generator = planned.cell.generator
    of_generator = bench.kept(trial_id, generator)
    inputs = random.Random(seed)
    bench.onlooker.on_logs(logs if generator == WEIR else logs | {generator: of_generator / "output.txt"})
    started = time.monotonic()
    phases_s: dict[str, float] = {}
    skip = bench.onlooker.skip
    try:
        with (
            skip.trial(),
            entered(phases_s, "services", bench.services.running(planned, bench.placement, log_of=logs.__getitem__)) as services,
            running_stack(
                bench.host,
                built,
                planned,
                placement=bench.placement,
                logs=[logs[name] for name in names],
                inputs=inputs,
                timeout_s=bench.load.timeout_s,
                fields=services.fields,
                front=services.front,
            ) as running,
        ):
            phases_s["check"] = running.check_s
            if running.ready_s is not None:
                phases_s["ready"] = running.ready_s
            result = _measure(bench, planned, writer, trial_id, running, services, inputs, names, phases_s)
            measured = time.monotonic()
        phases_s["stop"] = time.monotonic() - measured
        behind = _left_out({name: logs[name] for name in services.fronts}, len(names), bench.failures)
        reasons = (*result.verdict.reasons, *behind, *_beyond_memory(running), *_ended_badly(running))
        result = replace(result, verdict=TrialVerdict((_SKIPPED, *reasons) if skip.asked else reasons))
    except TrialSkippedError:
        result = TrialResult(verdict=TrialVerdict((_SKIPPED,)))
    except GeneratorError as error:
        result = TrialResult(verdict=TrialVerdict((_SKIPPED if skip.asked else _generator_failed(error),)))
    except TargetError as error:
        # A generator that is told to end before it has begun says nothing, which would look like a failure.
        failed = Reason("stack failed", "invalid", error.message, next_step=error.hint or "")
        result = TrialResult(verdict=TrialVerdict((_SKIPPED if skip.asked else failed,)))
    for name, log in list(logs.items()):
        # Read once the JVMs have ended, so that nothing of it falls into the load.
        of_jvms = pause_logs(log)
        logs |= {f"{name} {found.stem.removeprefix(f'{log.stem}-')}": found for found in of_jvms}
        for event in _pauses(result, of_jvms):
            writer.add_event(trial_id, event)
    logs |= kept(generator, of_generator)
    return replace(
        result,
        artifact_bytes=None if built is None else built.artifact_bytes,
        isolation=bench.host.isolation,
        logs={name: str(log.relative_to(bench.folder)) for name, log in logs.items()},
        phases_s={**phases_s, "total": time.monotonic() - started},
    )


def _generator_failed(error: GeneratorError) -> Reason:
    # A reason is one line.
    return Reason(GENERATOR_FAILED, "invalid", " ".join(error.message.split()), next_step=error.hint or "read what it has printed")


def _left_out(logs: Mapping[str, Path], processes: int, failures: Failures) -> Iterator[Reason]:
    """Processes that a proxy in front of them sent nothing for a while: the figures are then those of fewer."""
    for name, log in logs.items():
        addresses = left_out(log.read_text(errors="replace")) if log.exists() else ()
        if addresses:
            yield Reason(
                "left out",
                "suspect" if failures == "reject" else "valid",
                f"{name} left {len(addresses)} of {processes} processes out for a while",
                cause="a request to it failed there and was sent to the next: a connection was closed as it arrived, or could not be made",
                next_step=f"read the log of {name}; its keepalive_timeout has to be shorter than the stack's",
            )


def _beyond_memory(stopped: RunningStack) -> Iterator[Reason]:
    """A process that the kernel killed at its limit of memory, also where the stack went on without it."""
    for ended in stopped.ended:
        if ended.out_of_memory:
            fact = f"{ended.name} ended {ended.how}"
            yield Reason("memory limit", "invalid", fact, next_step="a higher limit in [cpus] memory")


def _ended_badly(stopped: RunningStack) -> Iterator[Reason]:
    """A process that had to be killed or left something: nobody's figures are wrong by it, whoever runs the stack wants to know."""
    for ended in stopped.ended:
        for problem in how_not_to_end(ended):
            yield Reason(
                "stop", "valid", f"{ended.name}: {problem}", next_step="have it end everything that it started when it gets SIGTERM"
            )


def _pauses(result: TrialResult, logs: Sequence[Path]) -> list[TrialEvent]:
    """The pauses of JVMs during a trial's load."""
    load = result.whole_load or result.summary
    if load is None or result.load_started_monotonic_ns is None:
        return []
    start_ns = result.load_started_monotonic_ns
    return pause_events(logs, start_ns=start_ns, end_ns=start_ns + int(load.duration_s * 1e9))


def _measure(
    bench: Bench,
    planned: PlannedCell,
    writer: RunWriter,
    trial_id: int,
    running: RunningStack,
    services: RunningServices,
    inputs: random.Random,
    names: Sequence[str],
    phases_s: dict[str, float],
) -> TrialResult:
    requests = [planned.request(base_url) for base_url in running.base_urls]
    targets = tuple(request.target for request in requests) if len(requests) > 1 else ()

    def plan(duration_s: float) -> LoadPlan:
        return planned.plan(requests[0], targets=targets, duration_s=duration_s, interval_s=bench.interval_s, cpus=bench.placement.load)

    skip = bench.onlooker.skip
    with timed(phases_s, "prime"):
        skip.check()
        if bench.method.prime_s:
            # What the stack still worked on when the load begins would count as the load's: as rows, as work, as waiting.
            with (
                compilers_first(running.pids if names else ()),
                bench.load_from.begin(plan(bench.method.prime_s).answered_to_the_end(), None) as priming,
                skip.ends(priming),
            ):
                verdict = priming.result().summary.verdict
            if LOST_AGENT in verdict.kinds:
                # Neither is the stack primed, nor are those that are left the load that the others of its block had.
                raise GeneratorError(verdict.reasons[verdict.kinds.index(LOST_AGENT)])
    with timed(phases_s, "pause"):
        skip.wait(bench.method.pause_s)
        skip.check()
    recorder = Recorder(writer, trial_id)
    asked_s, extension_s = bench.load.duration_s, bench.extension_s
    generator = planned.cell.generator
    looks = generator == WEIR and may_be_judged(planned.cell.load, asked_s, bench.interval_s) and not bench.load.ends_by_itself
    extends = looks and extension_s > 0
    lasts_s = asked_s + extension_s if extends else asked_s
    level_s = constant_from_s(planned.cell.load) or 0.0
    watch = SteadyWatch(asked_s if extends else None, lambda: load.stop(), level_s)

    def begin(started: LoadStarted) -> None:
        recorder.take_start(started)
        bench.onlooker.load.on_start(started)

    def take(interval: Interval) -> None:
        recorder.take_interval(interval)
        watch.take(interval)
        bench.onlooker.load.on_interval(interval)

    def happened(event: LoadEvent) -> None:
        recorder.take_event(event)
        bench.onlooker.load.on_event(event)

    def take_sample(sample: Sample) -> None:
        recorder.take_sample(sample)
        bench.onlooker.on_sample(sample)

    listener = LoadListener(on_start=begin, on_interval=take, on_event=happened)
    # In a study of failures a stack that ends under the load is one of them: the load goes on.
    goes_on = bench.failures == "measure"
    hosts = [bench.host] if services.place is None else [bench.host, services.place.host]
    before = services.read(planned.workload)
    with (
        timed(phases_s, "observe"),
        nullcontext() if services.place is None else _sampled_elsewhere(services.place, recorder),
        observed(bench.host, planned.stack, take_sample),
        tapped(running.base_urls, planned.cell.load.connections, asked=bench.method.tap) as tap,
        timed(phases_s, "load"),
        begin_load(generator, plan(lasts_s), listener, folder=bench.kept(trial_id, generator), load_from=bench.load_from) as load,
        skip.ends(load),
        nullcontext() if goes_on else stopped_when_dead(hosts, [*names, *services.names], load),
    ):
        end = end_of(load, hosts, [*names, *services.names])
    skip.check()
    # After the last reading: the host has by then told of every process that ended before it.
    dead, lost = ended_by_itself(hosts, names), ended_by_itself(hosts, services.names)
    gone = planned.stack.gone() if isinstance(planned.stack, ExternalStack) else []
    stack_ended = dead.how if dead is not None else f"(process {', '.join(map(str, gone))} is gone)" if gone else None
    phases_s["observe"] -= phases_s["load"]
    if stack_ended is not None:
        writer.add_event(trial_id, TrialEvent(end.summary.duration_s, STACK_ENDED, stack_ended))
        window = whole(end.summary.duration_s, "the stack ended during the load")
    elif generator != WEIR:
        window = whole(end.summary.duration_s, "a generator other than weir's tells no intervals")
    elif not looks:
        window = whole(end.summary.duration_s, "the load changes or ends by itself, or is too short to judge")
    else:
        window = window_of(watch.intervals, asked_s=asked_s, level_from_s=level_s)
    after = After()
    # What a lost agent asked is in the services' figures and not in the load's.
    if stack_ended is None and lost is None and LOST_AGENT not in end.summary.verdict.kinds:
        with timed(phases_s, "after"):
            after = look_after(planned, running, services, before, end.summary, inputs, timeout_s=bench.load.timeout_s)
    ended_by_weir = watch.has_ended_load or stack_ended is not None or lost is not None
    cut_short_s = end.summary.duration_s if end.stopped in ("signal", "input") and not ended_by_weir else None
    service_ended = None if lost is None else f"{lost.name} ended {lost.how}"
    heard = Heard(end, watch.intervals, load.claim if isinstance(load, ExternalLoad) else None, tap)
    return _result(bench, planned, running, services, recorder, heard, window, stack_ended, service_ended, cut_short_s, after)


def _sampled_elsewhere(place: ServicePlace, recorder: Recorder) -> AbstractContextManager[None]:
    """Samples services on a machine of their own."""
    return sampled(place.host, lambda sample: recorder.take_sample_elsewhere(place.reading(sample)))


def _result(
    bench: Bench,
    planned: PlannedCell,
    running: RunningStack,
    services: RunningServices,
    recorder: Recorder,
    heard: Heard,
    window: Window,
    stack_ended: str | None,
    service_ended: str | None,
    cut_short_s: float | None,
    after: After,
) -> TrialResult:
    end, tap = heard.end, heard.tap
    # It was measured with all agents.
    ceiling_rps = None if FEWER_AGENTS in end.summary.verdict.kinds else bench.ceiling_rps
    load = end.summary.model_copy(update={"generator": end.summary.generator.model_copy(update={"ceiling_rps": ceiling_rps})})
    end = end.model_copy(update={"summary": load})
    histograms = {clock: bytes_of_text(text) for clock, text in end.histograms.items()}
    summary = load
    if not window.is_whole:
        summary, response_times = summary_of_part(load, [one for one in heard.intervals if one.start_s >= window.start_s])
        histograms = {f"whole_load_{clock}": data for clock, data in histograms.items()} | {"response_time_ns": response_times}
    start_ns = recorder.start_ns
    resources = stack_resources(
        recorder.samples,
        start_ns=start_ns + int(window.start_s * 1e9),
        end_ns=start_ns + int(load.duration_s * 1e9),
        stack_cpus=bench.placement.stack,
        services=services.names,
        elsewhere=recorder.samples_elsewhere,
    )
    # What weir did not start has CPUs that nobody knows, unless its processes were named.
    cpus = len({*bench.placement.stack, *bench.placement.services}) or None
    networks = [] if resources is None else resources.networks
    broken = breaches_of_trial(load, planned.cell.load, resources, cpus=cpus, used_s=summary.duration_s, said=heard.claim)
    verdict = judge(
        Facts(
            stack=planned.stack.label,
            failures=bench.failures,
            invariant=bench.method.invariant,
            intended=load.requests.intended,
            completed=load.requests.completed,
            failed=load.requests.failed,
            errors=load.errors.model_dump(),
            stack_ended=stack_ended,
            service_ended=service_ended,
            cut_short_s=cut_short_s,
            wrong_after=after.wrong,
            discrepancies=after.discrepancies,
            unexpected_work=after.unexpected_work,
            throughput_rps=summary.throughput_rps,
            ceiling_rps=ceiling_rps,
            busy_fraction=load.generator.busy_fraction,
            # Where each request makes its connection, that is in its lag.
            lag_p99_us=load.schedule_lag_us.p99 if bench.load.keep_alive else None,
            response_p50_us=load.response_time_us.p50,
            steal_fraction=resources.steal_fraction if resources else None,
            load_shares_stack_cpu=bool(set(bench.placement.load) & set(bench.placement.stack)),
            steady=window.steady,
            not_steady_because=window.why,
            extended=window.extended,
            retransmits=sum(network.tcp_retransmits for network in networks),
            listen_overflows=sum(network.listen_overflows for network in networks),
            listen_drops=sum(network.listen_drops for network in networks),
            broken_laws=[(f"{law.found} ({law.law})", law.cause) for law in broken if law.kind == "impossible"],
            generator=list(zip(load.verdict.kinds, load.verdict.reasons, strict=True)),
            other_generator="" if planned.cell.generator == WEIR else planned.cell.generator,
            generator_cpu_fraction=load.generator.cpu_fraction,
            connections=planned.cell.load.connections,
            requests_in_kernel=tap.all_requests,
            not_tapped=tap.why_not,
        )
    )
    counted = end
    if not window.is_whole:
        text = b64encode(histograms["response_time_ns"]).decode("ascii")
        counted = end.model_copy(update={"summary": summary, "histograms": {**end.histograms, "response_time_ns": text}})
    held = [held_against(objective(text), counted).to_json() for text in bench.objectives]
    return TrialResult(
        verdict=verdict,
        summary=summary.model_copy(update={"objectives": held or None}),
        window=window,
        whole_load=None if window.is_whole else load,
        resources=resources,
        histograms=histograms,
        load_started_monotonic_ns=start_ns,
        ready_s=running.ready_s,
        runtime=running.runtime,
        work=after.work,
        discrepancies=after.discrepancies,
        claim=heard.claim,
        tap=tap.result,
    )
