"""What each chart of one load shows, in a computed sentence under it: those of `sentences`, where nothing is compared."""

from collections.abc import Sequence

from weir.findings.words import counted, listed, significant
from weir.model.records import THREAD_STATE_WORDS, LoadSummary
from weir.report.load_series import LoadSeries
from weir.report.sentences import mean_of_line
from weir.report.series import StackSeries


def rate_sentence(series: LoadSeries) -> str:
    """Under throughput over time."""
    answered = [value for value in series.answered.rate_rps if value is not None]
    if not answered:
        return "Nothing was measured."
    text = f"Between {significant(min(answered))} and {significant(max(answered))} answers per second in a slice."
    return text + (" The grey line is the rate that was asked for." if len(series.over_time.stacks) > 1 else "")


def percentiles_sentence(series: LoadSeries) -> str:
    """Under percentiles over time: how far the worst slice lies from the typical one."""
    known = _known(series.answered.p99_ms, series.over_time.coarse_time_s)
    if not known:
        return "Too few requests in each slice of time for percentiles."
    worst, at = max(known)
    middle = sorted(value for value, _ in known)[len(known) // 2]
    return f"Typical p99 of a slice: {significant(middle)} ms, at worst {significant(worst)} ms (at {significant(at, 2)} s)."


def errors_sentence(series: LoadSeries, summary: LoadSummary) -> str:
    """Under the failed requests: how many of each kind, and when there were most."""
    requests = summary.requests
    kinds = [f"{kind} {count:,}" for kind, count in summary.errors.model_dump().items() if count]
    share = f" ({significant(requests.failed / requests.intended * 100, 2)} %)" if requests.intended else ""
    text = f"{requests.failed:,} of {counted(requests.intended, 'request')} failed{share}{': ' if kinds else ''}{listed(kinds)}."
    most = [(value, at, line.label) for line in series.answered.errors_rps for value, at in _known(line.values, series.over_time.time_s)]
    if not most:
        return text
    value, at, kind = max(most)
    return f"{text} The most in a slice: {significant(value)} per second of {kind} (at {significant(at, 2)} s)."


def waiting_sentence(series: LoadSeries) -> str:
    """Under the requests under way: the most at once."""
    highest = [
        f"{line.label} {max(value for value in line.values if value is not None):,.0f}"
        for line in series.answered.waiting
        if any(line.values)
    ]
    return f"At the end of each interval, the highest of a slice; at most: {listed(highest)}." if highest else "No request waited."


def distribution_sentence(summary: LoadSummary) -> str:
    """Under the latency distribution: how far its end lies from its middle."""
    drawn = "Drawn as far as at least 100 samples lie beyond."
    times = summary.response_time_us
    if not times.p50 or not times.p99:
        return drawn
    return f"The 99th percentile of the response time is {significant(times.p99 / times.p50, 2)}× its median. {drawn}"


def cpu_sentence(stack: StackSeries) -> str:
    """Under the server's CPU over time: what it used on average."""
    tiers: dict[str, dict[str, float]] = {}
    for line in stack.tiers:
        tier, kind = line.label.rsplit(" ", 1)
        tiers.setdefault(tier, {})[kind] = mean_of_line(line.values)
    parts = []
    for tier, kinds in tiers.items():
        total = sum(kinds.values())
        share = f", {kinds.get('system', 0.0) / total * 100:.0f} % of it in the kernel" if total > 0 else ""
        parts.append(f"{_owner(tier, len(tiers))} used {significant(total, 2)} CPUs{share}")
    return f"On average {'; '.join(parts)}."


def machine_sentence(stack: StackSeries) -> str:
    """Under the machine's CPUs: how busy, and how much was stolen."""
    busy = [f"{line.label} {mean_of_line(line.values):.0f} %" for line in stack.machine_percent if line.label != "steal"]
    stolen = [f"The hypervisor took {mean_of_line(line.values):.1f} %." for line in stack.machine_percent if line.label == "steal"]
    return " ".join([f"Busy on average: {listed(busy)}.", *stolen])


def memory_sentence(stack: StackSeries) -> str:
    """Under memory over time: where it ended, and how it moved."""
    parts = []
    for line in stack.memory_mb:
        known = [value for value in line.values if value is not None]
        if known:
            moved = abs(known[-1] - known[0]) > 0.02 * known[0]
            change = f", after {significant(known[0])} at the start" if moved else ""
            parts.append(f"{_owner(line.label, len(stack.memory_mb))} held {significant(known[-1])} MB{change}")
    tail = "Resident memory counts shared pages for each process that has them."
    return f"At the end {'; '.join(parts)}. {tail}" if parts else tail


def traffic_sentence(stack: StackSeries) -> str:
    """Under disk and network: the most on average."""
    most, label = max((mean_of_line(line.values), line.label) for line in stack.traffic_mb_s)
    text = f"The most on average: {significant(most, 2)} MB/s ({label})."
    if any(line.label == "loopback" for line in stack.traffic_mb_s):
        text += " The loopback device carries all that the machine's processes tell one another."
    return text


def threads_sentence(stack: StackSeries) -> str:
    """Under the states of threads: how many there are and what most of them do."""
    means = [(mean_of_line(line.values), line.label) for line in stack.threads]
    total = sum(mean for mean, _ in means)
    if total <= 0:
        return "No samples of threads."
    most, state = max(means)
    return f"On average the server had {significant(total)} threads, {most / total * 100:.0f} % of them {THREAD_STATE_WORDS[state]}."


def _known(values: Sequence[float | None], times_s: Sequence[float]) -> list[tuple[float, float]]:
    return [(value, at) for value, at in zip(values, times_s, strict=True) if value is not None]


def _owner(tier: str, of_tiers: int) -> str:
    """Whose a figure is: the server's, or one of several tiers'."""
    return f"the {tier} tier" if of_tiers > 1 else "the server"
