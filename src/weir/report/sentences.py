"""Builds the texts under the charts and under the table of trials."""

from collections.abc import Sequence
from statistics import fmean

from weir.findings.formatting import counted, listed, signed_percent, significant
from weir.findings.metrics import BY_KEY, CPU, MEMORY, P50, P99, THROUGHPUT
from weir.findings.point_types import Point
from weir.findings.types import TrialCounts
from weir.model.observer_records import THREAD_STATE_WORDS
from weir.report.number_format import display
from weir.report.series import PointSeries
from weir.report.timeseries import Line

GENERATORS_NOTE = (
    "Response times are medians over trials: reported by each generator, and measured by the kernel. "
    "CPU time per request and memory are the generator's own."
)


def throughput_sentence(point: Point) -> str:
    """Returns the text below the chart of throughput by trial: the legend, and the most variable stack."""
    trials = [(stack.name, [trial.value for trial in stack.measure(THROUGHPUT).trials]) for stack in point.stacks]
    spreads = [((max(values) - min(values)) / fmean(values), name) for name, values in trials if len(values) > 1]
    text = "Each dot is one trial on a fresh process; the bar is the 95 % interval of the mean."
    if spreads:
        widest, name = max(spreads)
        text += f" Trials of {name} differ most, by {significant(widest * 100, 2)} % of their mean."
    return text


def rate_sentence(series: PointSeries) -> str:
    """Returns the text below the chart of throughput over time: each stack's change from the first to the last quarter.
    For a single trial, returns the lowest and the highest throughput of a slice."""
    asked = " The grey line is the offered rate." if series.offered_rps else ""
    if [stack.of_trials for stack in series.stacks] == [1]:
        answered = _values(series.stacks[0].rate_rps)
        if not answered:
            return "Nothing was measured."
        return (
            f"Each slice has {significant(min(answered))} to {significant(max(answered))} responses per second.{asked}"
        )
    changes = [(stack.name, _change(stack.rate_rps)) for stack in series.stacks]
    moves = [f"{name} by {signed_percent(change)}" for name, change in changes if change is not None]
    failures = [stack.name for stack in series.stacks if any(value for value in stack.failed_rps if value)]
    fewer = next((stack for stack in series.stacks if stack.trials < stack.of_trials), None)
    some = (
        fewer
        and f"{fewer.trials} of {fewer.of_trials} trials of a stack (evenly spaced; the same in all charts over time)"
    )
    text = f"Mean over {some or 'trials'}; the band reaches from the slowest to the fastest trial."
    if moves:
        text += f" From the first to the last quarter of the window, throughput changed: {listed(moves)}."
    return text + (f" Requests of {listed(failures)} failed." if failures else "") + asked


def percentiles_sentence(series: PointSeries) -> str:
    """Returns the text below the chart of percentiles over time: each stack's p99 in a typical and the worst slice."""
    worst = []
    for stack in series.stacks:
        known = _known(stack.p99_ms, series.coarse_time_s)
        if known:
            value, at = max(known)
            middle = significant(sorted(value for value, _ in known)[len(known) // 2])
            peak = f"{significant(value)} ms (at {significant(at, 2)} s)"
            worst.append(f"{stack.name} {middle} ms, at worst {peak}")
    if not worst:
        return "Too few requests in each slice of time for percentiles."
    scale = " All stacks share one logarithmic scale." if len(series.stacks) > 1 else ""
    return f"Typical p99 of a slice: {'; '.join(worst)}.{scale}"


def cpu_sentence(series: PointSeries) -> str:
    """Returns the text below the chart of CPU over time: each tier's average number of CPUs."""
    parts = []
    for stack in series.stacks:
        tiers: dict[str, dict[str, float]] = {}
        for line in stack.tiers:
            tier, kind = line.label.rsplit(" ", 1)
            tiers.setdefault(tier, {})[kind] = _mean(line.values)
        for tier, kinds in tiers.items():
            total = sum(kinds.values())
            if total > 0:
                kernel = f"{kinds.get('system', 0.0) / total * 100:.0f} % of this time in the kernel"
                parts.append(f"{stack.name}'s {tier} tier used {significant(total, 2)} CPUs, {kernel}")
    return f"On average {'; '.join(parts)}." if parts else "No samples of the processes."


def machine_sentence(series: PointSeries) -> str:
    """Returns the text below the chart of the machine's CPUs: mean utilisation, and the hypervisor's share (steal)."""
    parts = []
    for stack in series.stacks:
        lines = [line for line in stack.machine_percent if line.label != "steal"]
        steal = [_mean(line.values) for line in stack.machine_percent if line.label == "steal"]
        busy = [f"{line.label} {_mean(line.values):.0f} %" for line in lines]
        if busy:
            parts.append(f"under {stack.name}: {', '.join(busy)}" + (f", steal {steal[0]:.1f} %" if steal else ""))
    text = "; ".join(parts)
    return f"Busy on average {text}." if parts else "No samples of the machine's CPUs."


def waiting_sentence(series: PointSeries) -> str:
    """Returns the text below the chart of requests in flight: the highest number of each stack."""
    highest = [
        f"{stack.name} {max(known):,.0f}{' queued' if line.label == 'queued' else ''}"
        for stack in series.stacks
        for line in stack.waiting
        if (known := _values(line.values))
    ]
    over = ", the mean over trials" if any(stack.of_trials > 1 for stack in series.stacks) else ""
    most = f" At most: {listed(highest)}." if highest else ""
    return f"Each value is the highest number in a slice, read at the ends of intervals{over}.{most}"


def errors_sentence(point: Point, series: PointSeries) -> str:
    """Returns the text below the chart of failed requests: each stack's share, and the highest rate in a slice."""
    shares = [
        f"{stack.name} {significant(stack.failed_share * 100, 2)} %"
        for stack in point.stacks
        if stack.arm == "main" and stack.failed_share
    ]
    text = f"Share of the intended requests that failed: {listed(shares)}."
    most = [
        (value, at, f"{line.label} under {stack.name}" if len(series.stacks) > 1 else line.label)
        for stack in series.stacks
        for line in stack.errors_rps
        for value, at in _known(line.values, series.time_s)
    ]
    if not most:
        return text
    value, at, kind = max(most)
    return f"{text} Highest rate in a slice: {significant(value)} per second of {kind} (at {significant(at, 2)} s)."


def memory_sentence(series: PointSeries) -> str:
    """Returns the text below the chart of memory: each tier's memory at the end, and a clearly different start."""
    parts = []
    for stack in series.stacks:
        for line in stack.memory_mb:
            known = _values(line.values)
            if known:
                moved = known[-1] - known[0]
                change = f" ({significant(known[0])} at the start)" if abs(moved) > 0.02 * known[0] else ""
                parts.append(f"{stack.name}'s {line.label} tier {significant(known[-1])} MB{change}")
    tail = " Resident memory counts shared pages once per process. The tables show the proportional set size."
    return (f"At the end {listed(parts)}." if parts else "No samples of memory.") + tail


def traffic_sentence(series: PointSeries) -> str:
    """Returns the text below the chart of disk and network: for each stack, the line with the highest mean."""
    traffic = {stack.name: [(_mean(line.values), line.label) for line in stack.traffic_mb_s] for stack in series.stacks}
    most = [(name, *max(means)) for name, means in traffic.items() if means]
    parts = [f"{name} {significant(mean, 2)} MB/s ({label})" for name, mean, label in most]
    return f"Highest mean: {listed(parts)}. The loopback device carries all traffic between the machine's processes."


def threads_sentence(series: PointSeries) -> str:
    """Returns the text below the chart of thread states: each stack's number of threads, and their usual state."""
    parts = []
    for stack in series.stacks:
        means = [(_mean(line.values), line.label) for line in stack.threads]
        total = sum(mean for mean, _ in means)
        if total > 0:
            most, state = max(means)
            threads = f"{most / total * 100:.0f} % of {stack.name}'s {significant(total)} threads"
            parts.append(f"{threads} are {THREAD_STATE_WORDS[state]}")
    text = "; ".join(parts)
    scale = " Each chart has its own scale." if len(series.stacks) > 1 else ""
    return f"On average {text}.{scale}" if parts else "No samples of threads."


def distribution_sentence(point: Point) -> str:
    """Returns the text below the chart of the latency distribution: where the lines end, and each stack's p99 ÷ p50."""
    parts = []
    for stack in point.stacks:
        p50, p99 = stack.measure(P50), stack.measure(P99)
        if stack.arm == "main" and p50.value and p99.value:
            parts.append(f"{stack.name} {significant(p99.value / p50.value, 2)}×")
    merged = any(len(stack.evidence.used) > 1 for stack in point.stacks)
    merging = "A line merges all trials of a stack. " if merged else ""
    text = f"{merging}A line ends where fewer than 100 requests are slower."
    return text + (f" The 99th percentile ÷ the median: {listed(parts)}." if parts else "")


def resources_sentence(point: Point) -> str:
    """Returns the text below the table of resources: the stacks with the lowest and highest CPU time and memory."""
    text = []
    for metric in (CPU, MEMORY):
        shown = display(metric)
        main = [(stack.measure(metric).value, stack.name) for stack in point.stacks if stack.arm == "main"]
        known = sorted((value, name) for value, name in main if value is not None)
        if len(known) > 1:
            (least, best), (most, worst) = known[0], known[-1]
            low, high = (f"{shown.text(value)} {shown.unit}" for value in (least, most))
            text.append(f"Least {BY_KEY[metric].title}: {best}, {low}; most: {worst}, {high}.")
    text.append("CPU is user and system time of the whole process tree ÷ completed requests;")
    return " ".join([*text, "memory is the proportional set size under load."])


def trials_sentence(trials: TrialCounts) -> str:
    """Returns the text below the table of trials: the numbers of used, repeated and extended trials."""
    text = f"Averages use {trials.used} of {counted(trials.finished, 'trial')}. The table explains the unused trials."
    if trials.retried:
        text += f" Repeats of rejected trials: {trials.retried:,}."
    if trials.extended:
        text += f" Used trials with an extended load, to find a steady state: {trials.extended:,}."
    if trials.no_steady_state:
        text += f" Used trials without a steady state: {trials.no_steady_state:,}."
    return text


def _known(values: Sequence[float | None], times_s: Sequence[float]) -> list[tuple[float, float]]:
    return [(value, at) for value, at in zip(values, times_s, strict=True) if value is not None]


def _values(line: Sequence[float | None]) -> list[float]:
    return [value for value in line if value is not None]


def _change(line: Line) -> float | None:
    known = _values(line)
    quarter = len(known) // 4
    if quarter == 0:
        return None
    first, last = fmean(known[:quarter]), fmean(known[-quarter:])
    return last / first - 1 if first > 0 else None


def _mean(line: Sequence[float | None]) -> float:
    return fmean(_values(line) or [0.0])
