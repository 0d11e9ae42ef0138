"""What each chart shows, in a computed sentence under it."""

from collections.abc import Sequence

from weir.findings import BY_KEY, Point, TrialCounts
from weir.findings.metrics import CPU, MEMORY, P50, P99, THROUGHPUT
from weir.findings.words import counted, listed, signed_percent, significant
from weir.model.records import THREAD_STATE_WORDS
from weir.report.lines import Line
from weir.report.numbers import display
from weir.report.series import PointSeries


def throughput_sentence(point: Point) -> str:
    """Under the dots of throughput."""
    spreads = []
    for stack in point.stacks:
        values = [trial.value for trial in stack.measure(THROUGHPUT).trials]
        if len(values) > 1:
            mean = sum(values) / len(values)
            spreads.append(((max(values) - min(values)) / mean, stack.name))
    text = "Each dot is one trial on a fresh process; the bar is the 95 % interval of the mean."
    if spreads:
        widest, name = max(spreads)
        text += f" Trials of {name} differ most, by {significant(widest * 100, 2)} % of their mean."
    return text


def rate_sentence(series: PointSeries) -> str:
    """Under throughput over time: how each stack moved between the first and the last quarter."""
    moves = []
    for stack in series.stacks:
        change = _change(stack.rate_rps)
        if change is not None:
            moves.append(f"{stack.name} by {signed_percent(change)}")
    failures = [stack.name for stack in series.stacks if any(value for value in stack.failed_rps if value)]
    fewer = next((stack for stack in series.stacks if stack.trials < stack.of_trials), None)
    over = "Mean over trials"
    if fewer is not None:
        over = f"Mean over {fewer.trials} of {fewer.of_trials} trials of a stack, first to last, as in all charts over time"
    text = f"{over}; the band reaches from the slowest to the fastest trial."
    if moves:
        text += f" From the first to the last quarter of the window throughput moved: {listed(moves)}."
    return text + (f" Requests of {listed(failures)} failed." if failures else "")


def percentiles_sentence(series: PointSeries) -> str:
    """Under percentiles over time: how far the worst slice lies from the typical one."""
    worst = []
    for stack in series.stacks:
        known = [(value, at) for value, at in zip(stack.p99_ms, series.coarse_time_s, strict=True) if value is not None]
        if known:
            value, at = max(known)
            middle = sorted(value for value, _ in known)[len(known) // 2]
            worst.append(f"{stack.name} {significant(middle)} ms, at worst {significant(value)} ms (at {significant(at, 2)} s)")
    if not worst:
        return "Too few requests in each slice of time for percentiles."
    return f"Typical p99 of a slice: {'; '.join(worst)}. All stacks share one logarithmic scale."


def cpu_sentence(series: PointSeries) -> str:
    """Under CPU over time: what each tier used on average."""
    parts = []
    for stack in series.stacks:
        tiers: dict[str, dict[str, float]] = {}
        for line in stack.tiers:
            tier, kind = line.label.rsplit(" ", 1)
            tiers.setdefault(tier, {})[kind] = mean_of_line(line.values)
        for tier, kinds in tiers.items():
            total = sum(kinds.values())
            if total > 0:
                share = kinds.get("system", 0.0) / total * 100
                parts.append(f"{stack.name}'s {tier} tier used {significant(total, 2)} CPUs, {share:.0f} % of it in the kernel")
    text = "; ".join(parts)
    return f"{text}." if parts else "No samples of the processes."


def machine_sentence(series: PointSeries) -> str:
    """Under the machine's CPUs: how busy, and how much was stolen."""
    parts = []
    for stack in series.stacks:
        lines = [line for line in stack.machine_percent if line.label != "steal"]
        steal = [mean_of_line(line.values) for line in stack.machine_percent if line.label == "steal"]
        busy = [f"{line.label} {mean_of_line(line.values):.0f} %" for line in lines]
        if busy:
            parts.append(f"under {stack.name}: {', '.join(busy)}" + (f", steal {steal[0]:.1f} %" if steal else ""))
    text = "; ".join(parts)
    return f"Busy on average {text}." if parts else "No samples of the machine's CPUs."


def waiting_sentence(series: PointSeries) -> str:
    """Under the requests under way: the most at once."""
    highest = [
        f"{stack.name} {max(known):,.0f}{' queued' if line.label == 'queued' else ''}"
        for stack in series.stacks
        for line in stack.waiting
        if (known := [value for value in line.values if value is not None])
    ]
    return "At the end of each interval, the highest of a slice, the mean over trials." + (
        f" At most: {listed(highest)}." if highest else ""
    )


def errors_sentence(point: Point) -> str:
    """Under the failed requests: which share of each stack's."""
    shares = [
        f"{stack.name} {significant(stack.failed_share * 100, 2)} %" for stack in point.stacks if stack.arm == "main" and stack.failed_share
    ]
    return f"Of the requests that were intended, failed: {listed(shares)}."


def memory_sentence(series: PointSeries) -> str:
    """Under memory over time: where each tier ended, and how it moved."""
    parts = []
    for stack in series.stacks:
        for line in stack.memory_mb:
            known = [value for value in line.values if value is not None]
            if known:
                moved = known[-1] - known[0]
                change = f" after {significant(known[0])}" if abs(moved) > 0.02 * known[0] else ""
                parts.append(f"{stack.name}'s {line.label} tier {significant(known[-1])} MB{change}")
    tail = " Resident memory counts shared pages for each process that has them; the figure of the comparison is the proportional set size."
    return (f"At the end {listed(parts)}." if parts else "No samples of memory.") + tail


def traffic_sentence(series: PointSeries) -> str:
    """Under disk and network: the most of each stack on average."""
    parts = []
    for stack in series.stacks:
        means = [(mean_of_line(line.values), line.label) for line in stack.traffic_mb_s]
        if means:
            most, label = max(means)
            parts.append(f"{stack.name} {significant(most, 2)} MB/s ({label})")
    return f"The most on average: {listed(parts)}. The loopback device carries all that the machine's processes tell one another."


def threads_sentence(series: PointSeries) -> str:
    """Under the states of threads: how many there are and what most of them do."""
    parts = []
    for stack in series.stacks:
        means = [(mean_of_line(line.values), line.label) for line in stack.threads]
        total = sum(mean for mean, _ in means)
        if total > 0:
            most, state = max(means)
            parts.append(f"of {stack.name}'s {significant(total)} threads {most / total:.0%} are {THREAD_STATE_WORDS[state]}")
    text = "; ".join(parts)
    return f"On average {text}. Each chart has its own scale." if parts else "No samples of threads."


def distribution_sentence(point: Point) -> str:
    """Under the latency distribution."""
    parts = []
    for stack in point.stacks:
        p50, p99 = stack.measure(P50), stack.measure(P99)
        if stack.arm == "main" and p50.value and p99.value:
            parts.append(f"{stack.name} {significant(p99.value / p50.value, 2)}×")
    text = "All trials of a stack merged, drawn as far as at least 100 samples lie beyond."
    return text + (f" The 99th percentile is this many times the median: {listed(parts)}." if parts else "")


def resources_sentence(point: Point) -> str:
    """Under the resources: the cheapest in CPU and in memory."""
    text = []
    for metric in (CPU, MEMORY):
        shown = display(metric)
        known = sorted(
            (measure.value, stack.name)
            for stack in point.stacks
            if stack.arm == "main" and (measure := stack.measure(metric)).value is not None
        )
        if len(known) > 1:
            (least, best), (most, worst) = known[0], known[-1]
            assert least is not None
            assert most is not None
            text.append(
                f"Least {BY_KEY[metric].title}: {best}, {shown.text(least)} {shown.unit}; most: {worst}, {shown.text(most)} {shown.unit}."
            )
    text.append(
        "CPU is user and system time of the whole process tree ÷ completed requests; memory is the proportional set size under load."
    )
    return " ".join(text)


def trials_sentence(trials: TrialCounts) -> str:
    """Under the list of trials: how many count, and what became of the others."""
    text = f"{trials.used} of {counted(trials.finished, 'trial')} enter the averages; the others are kept here with their reasons."
    if trials.retried:
        text += f" {counted(trials.retried, 'trial')} repeat one that was rejected."
    if trials.extended:
        text += f" The load of {counted(trials.extended, 'trial')} went on for longer in search of a steady state."
    if trials.no_steady_state:
        text += f" {counted(trials.no_steady_state, 'trial')} of those that count found none."
    return text


def _change(line: Line) -> float | None:
    known = [value for value in line if value is not None]
    quarter = len(known) // 4
    if quarter == 0:
        return None
    first, last = sum(known[:quarter]) / quarter, sum(known[-quarter:]) / quarter
    return last / first - 1 if first > 0 else None


def mean_of_line(line: Sequence[float | None]) -> float:
    """Of the slices that have a value; 0 where none has."""
    known = [value for value in line if value is not None]
    return sum(known) / len(known) if known else 0.0
