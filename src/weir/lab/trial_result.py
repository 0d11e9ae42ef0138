"""Turns a measurement into a trial's result: the figures of the counted part of the load, and the verdict."""

from base64 import b64encode
from dataclasses import replace

from weir.audit.laws import find_violations
from weir.audit.trial_results import build_reported_results
from weir.lab.context import TrialContext
from weir.lab.measurement import Measurement
from weir.lab.stack_process import RunningStack
from weir.lab.trial_services import RunningServices
from weir.lab.trial_verdict import Facts, judge
from weir.lab.window_summary import summarize_window
from weir.model.hdr import bytes_of_text
from weir.model.load_records import FEWER_AGENTS, LoadSummary
from weir.model.resources import StackResources
from weir.model.run_types import WEIR, TrialResult
from weir.model.verdict import TrialVerdict
from weir.objective import judge as judge_objective
from weir.objective import parse_objective
from weir.observe.resource_usage import compute_stack_resources
from weir.stacks.unmanaged import ExternalStack


def judge_measurement(
    trial: TrialContext, measured: Measurement, running: RunningStack, services: RunningServices
) -> TrialResult:
    """Returns the trial's result. The caller adds reasons from the end of the stack later."""
    # weir measured the limit with all agents. The limit does not apply to fewer agents.
    has_limit = FEWER_AGENTS not in measured.end.summary.verdict.kinds
    limit_rps = trial.generator_limit_rps if has_limit else None
    generator = replace(measured.end.summary.generator, max_rate_rps=limit_rps)
    load = replace(measured.end.summary, generator=generator)
    window, summary, texts = measured.window, load, measured.end.histograms
    histograms = {clock: bytes_of_text(text) for clock, text in texts.items()}
    if not window.is_whole:
        in_window = [one for one in measured.intervals if one.start_s >= window.start_s]
        summary, response_times = summarize_window(load, in_window)
        histograms = {f"whole_load_{clock}": data for clock, data in histograms.items()}
        histograms["response_time_ns"] = response_times
        texts = {**texts, "response_time_ns": b64encode(response_times).decode("ascii")}
    counted = replace(measured.end, summary=summary, histograms=texts)
    start_ns = measured.recorder.start_ns
    resources = compute_stack_resources(
        measured.recorder.samples,
        start_ns=start_ns + int(window.start_s * 1e9),
        end_ns=start_ns + int(load.duration_s * 1e9),
        stack_cpus=trial.placement.stack,
        services=services.names,
        elsewhere=measured.recorder.samples_elsewhere,
    )
    objectives = [judge_objective(parse_objective(text), counted).to_json() for text in trial.run.study.objectives]
    return TrialResult(
        verdict=_verdict(trial, measured, load, summary, resources),
        summary=replace(summary, objectives=objectives or None),
        window=window,
        whole_load=None if window.is_whole else load,
        resources=resources,
        histograms=histograms,
        load_started_monotonic_ns=start_ns,
        ready_s=running.ready_s,
        runtime=running.runtime,
        work=measured.after.work,
        discrepancies=measured.after.discrepancies,
        reported_result=measured.reported_result,
        tap=measured.tap.result,
    )


def _verdict(
    trial: TrialContext, measured: Measurement, load: LoadSummary, used: LoadSummary, resources: StackResources | None
) -> TrialVerdict:
    planned, placement = trial.planned, trial.placement
    # The CPUs of an external server are known only if the study names its processes.
    cpus, used_s = len({*placement.stack, *placement.services}) or None, used.duration_s
    results = build_reported_results(
        load,
        planned.cell.load,
        resources,
        cpus=cpus,
        used_s=used_s,
        reported=measured.reported_result,
        pipeline=planned.load.pipeline,
    )
    facts = Facts(
        stack="" if isinstance(planned.stack, ExternalStack) or planned.stack.in_place else planned.stack.label,
        load=load,
        window=measured.window,
        throughput_rps=used.throughput_rps,
        connections=planned.cell.load.connections,
        failures=trial.failures,
        invariant=trial.method.invariant,
        stack_ended=measured.stack_ended,
        service_ended=measured.service_ended,
        after=measured.after,
        cut_short_s=measured.cut_short_s,
        script_ended_s=load.duration_s if planned.script and measured.end.stopped == "complete" else None,
        # Without keep-alive, the lag includes the connect time.
        lag_p99_us=load.schedule_lag_us.p99 if planned.load.keep_alive else None,
        resources=resources,
        processes_unknown=isinstance(planned.stack, ExternalStack) and not planned.stack.pids,
        load_shares_stack_cpu=bool(set(placement.load) & set(placement.stack)),
        violations=find_violations(*results),
        other_generator="" if trial.generator == WEIR else trial.generator,
        requests_in_kernel=measured.tap.all_requests,
        not_tapped=measured.tap.why_not,
    )
    return judge(facts)
