"""The regression gate: tests whether a run is worse than an earlier run by more than a threshold.

The runs share no blocks, so weir cannot pair their trials. If the runs are from different days, the intervals do not
cover the difference between the days. A metric is worse if a test at 5 % shows a change beyond the threshold, after
Holm's correction. A metric is no worse if a test shows a smaller change. Otherwise the metric is undecided.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from weir import stats
from weir.findings.compare import ALPHA, CLAIM_BLOCKS
from weir.findings.evidence import CellTrials, group_by_cell
from weir.findings.formatting import counted, significant
from weir.findings.metrics import BY_KEY, CPU, P99, THROUGHPUT, Metric
from weir.model.errors import UsageError
from weir.model.run_types import GENERATOR, WEIR, Cell, compare_environments
from weir.store import RunReader

METRICS = (THROUGHPUT, P99, CPU)
"""The metrics that the gate checks by default."""
Verdict = Literal["worse", "no worse", "undecided", "cannot say"]


@dataclass(frozen=True, slots=True)
class CheckedMetric:
    """One metric of one cell in both runs."""

    label: str
    where: str
    metric: str
    title: str
    unit: str
    base: float | None
    """The geometric mean over the trials of the earlier run, in the metric's unit."""
    head: float | None
    change: stats.Change | None
    """The ratio `head` ÷ `base` with its interval."""
    base_trials: int
    head_trials: int
    verdict: Verdict
    why: str = ""
    """Reason why the metric has no verdict; empty with a verdict."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The comparison of a run with an earlier run."""

    base: str
    head: str
    threshold: float
    checked: tuple[CheckedMetric, ...]
    only_in_one: tuple[str, ...]
    """A text for each cell that only one run contains."""
    differences: tuple[str, ...]
    """Differences between the machines or generators."""
    indicative: bool
    """Whether a cell has fewer trials in one of the runs than a claim needs."""
    sentence: str

    @property
    def worse(self) -> tuple[CheckedMetric, ...]:
        return tuple(one for one in self.checked if one.verdict == "worse")

    @property
    def unsettled(self) -> tuple[CheckedMetric, ...]:
        """Metrics without a clear verdict: `undecided` or `cannot say`."""
        return tuple(one for one in self.checked if one.verdict in ("undecided", "cannot say"))


def compare_runs(
    base: RunReader, head: RunReader, metrics: Sequence[str], threshold: float, *, any_environment: bool
) -> Gate:
    """Tests whether `head` is worse than `base` on `metrics` (keys). `threshold`: the largest acceptable relative
    change. Raises UsageError if a file is not a run of a study, the machines differ, or no cell is in both runs."""
    for reader in (base, head):
        if reader.info.is_load:
            raise UsageError(f"{reader.path}: found a single load, expected a run of a study", hint="weir run STUDY")
    differ = compare_environments(base.info, head.info)
    if differ and not any_environment:
        raise UsageError(
            f"{base.path} and {head.path}: found different conditions: {'; '.join(differ)}; expected the same conditions",
            hint="measure both runs on one machine, or add --any-environment to compare these runs",
        )
    olds, news = _cells_of(base), _cells_of(head)
    shared = [key for key in news if key in olds]
    if not shared:
        problem = "found no stack with the same load in both runs, expected at least one"
        raise UsageError(f"{base.path} and {head.path}: {problem}")
    checked = [_checked(olds[key], news[key], BY_KEY[metric]) for key in shared for metric in metrics]
    judged = _add_verdicts(checked, threshold)
    only = [
        f"{key[0]} on {', '.join(key[1:])}: only in {reader.path}"
        for reader, mine, other in ((base, olds, news), (head, news, olds))
        for key in mine
        if key not in other
    ]
    indicative = any(min(one.base_trials, one.head_trials) < CLAIM_BLOCKS for one in judged)
    found = Gate(str(base.path), str(head.path), threshold, tuple(judged), tuple(only), tuple(differ), indicative, "")
    return replace(found, sentence=_sentence(found))


def format_markdown(found: Gate) -> str:
    """Formats the gate's result as Markdown, for a comment on a pull request."""
    marks = {"worse": "**worse**", "no worse": "no worse", "undecided": "undecided"}
    lines = [f"**{found.sentence}**", ""]
    lines += ["| stack | where | metric | base | head | change (95 % interval) | |", "|---|---|---|---:|---:|---:|---|"]
    for one in found.checked:
        sides = ["–" if value is None else f"{significant(value, 4)} {one.unit}" for value in (one.base, one.head)]
        mark = marks.get(one.verdict, f"cannot say: {one.why}")
        lines.append(f"| {' | '.join([one.label, one.where, one.title, *sides, _change(one), mark])} |")
    lines += ["", *(f"- Differs: {text}" for text in found.differences), *(f"- {text}" for text in found.only_in_one)]
    trials = sorted({one.base_trials for one in found.checked}), sorted({one.head_trials for one in found.checked})
    counts = [f"{low}" if low == high else f"{low} to {high}" for low, high in ((side[0], side[-1]) for side in trials)]
    few = f" (indicative: a claim needs {CLAIM_BLOCKS})" if found.indicative else ""
    lines.append(
        f"- Trials of each cell: {counts[0]} and {counts[1]}{few}. “Worse” and “no worse” refer to a change of more"
        f" than {found.threshold:.0%}, at 95 %, corrected for {counted(len(found.checked), 'comparison')} (Holm)."
    )
    return "\n".join(lines)


def _cells_of(reader: RunReader) -> dict[tuple[str, ...], CellTrials]:
    return {_key(of.cell): of for of in group_by_cell(reader.cells(), reader.trials()) if of.cell.arm == "main"}


def _key(cell: Cell) -> tuple[str, ...]:
    # The key always includes the generator, so that studies with one and with several generators match.
    coordinates = {**cell.coordinates, GENERATOR: cell.generator}
    texts = [f"{name} {value}" for name, value in sorted(coordinates.items()) if (name, value) != (GENERATOR, WEIR)]
    return (cell.stack_label, cell.workload, cell.load.label, *texts)


def _checked(old: CellTrials, new: CellTrials, metric: Metric) -> CheckedMetric:
    before, after = (_values(cell, metric) for cell in (old, new))
    key = _key(new.cell)
    found = stats.compare_independent(before, after) if before and after else None
    why = ""
    if found is None:
        why = f"no usable trial of {'head' if before else 'base'} has this metric"
    elif found.error is None:
        why = "one run has a single trial" if min(len(before), len(after)) < 2 else "the trials have no spread"
    middle = [None if not side else stats.compare_independent([1.0], side).value for side in (before, after)]
    return CheckedMetric(
        label=key[0],
        where=", ".join(key[1:]),
        metric=metric.key,
        title=metric.title,
        unit=metric.unit,
        base=middle[0],
        head=middle[1],
        change=found,
        base_trials=len(before),
        head_trials=len(after),
        verdict="cannot say" if why else "undecided",
        why=why,
    )


def _values(cell: CellTrials, metric: Metric) -> list[float]:
    return [value for trial in cell.used if (value := metric.of(trial)) is not None and value > 0]


def _add_verdicts(checked: Sequence[CheckedMetric], threshold: float) -> list[CheckedMetric]:
    """Returns the metrics with verdicts. Holm's correction covers all metrics of all cells together."""
    tested = {number: p for number, one in enumerate(checked) if (p := _p_values(one, threshold)) is not None}
    verdicts: dict[int, Verdict] = {}
    adjusted = stats.holm([p_worse for p_worse, _ in tested.values()])
    for (number, (_, p_no_worse)), p_worse in zip(tested.items(), adjusted, strict=True):
        verdicts[number] = "worse" if p_worse < ALPHA else "no worse" if p_no_worse < ALPHA else "undecided"
    return [replace(one, verdict=verdicts.get(number, one.verdict)) for number, one in enumerate(checked)]


def _p_values(one: CheckedMetric, threshold: float) -> tuple[float, float] | None:
    """Returns the p-values of "worse by more than the threshold" and of "no worse". None without an interval."""
    if one.change is None:
        return None
    if BY_KEY[one.metric].higher_is_better:
        worse, no_worse = one.change.p_below(1 - threshold), one.change.p_above(1 - threshold)
    else:
        worse, no_worse = one.change.p_above(1 + threshold), one.change.p_below(1 + threshold)
    return None if worse is None or no_worse is None else (worse, no_worse)


def _sentence(found: Gate) -> str:
    if found.worse:
        parts = [f"{one.title} of {one.label} ({one.where}) {_change(one)}" for one in found.worse]
        return f"Worse by more than {found.threshold:.0%}: {'; '.join(parts)}."
    if not found.unsettled:
        return f"No worse: no metric is worse by {found.threshold:.0%} or more."
    cannot, all_checked = [one for one in found.unsettled if one.verdict == "cannot say"], len(found.checked)
    if len(cannot) == all_checked:
        return f"No verdict, because {cannot[0].why}."
    parts = [f"No metric is clearly worse by more than {found.threshold:.0%}"]
    if undecided := len(found.unsettled) - len(cannot):
        parts.append(f"{counted(undecided, 'comparison')} of {all_checked} are undecided: more blocks would decide")
    if cannot:
        parts.append(f"{len(cannot)} of {all_checked} have no verdict, because {cannot[0].why}")
    return "; ".join(parts) + "."


def _change(one: CheckedMetric) -> str:
    if one.change is None:
        return "–"
    value, low, high = one.change.value, one.change.low, one.change.high
    interval = "" if low is None or high is None else f" ({_percent(low)} to {_percent(high)})"
    return _percent(value) + interval


def _percent(ratio: float) -> str:
    return f"{'−' if ratio < 1 else '+'}{abs(ratio - 1) * 100:.1f} %"
