"""The A/A test: each block runs one stack twice. The differences between the two copies show the run's noise."""

from collections.abc import Sequence

from weir import stats
from weir.findings.compare import compare
from weir.findings.evidence import pair_by_block
from weir.findings.formatting import counted, listed
from weir.findings.metrics import BY_KEY, P50, THROUGHPUT
from weir.findings.points import PointCells
from weir.findings.types import IdenticalCopies


def compare_copies(points: Sequence[PointCells], names: dict[int, str], *, indicative: bool) -> IdenticalCopies | None:
    """Compares each stack with its A/A copy. Returns None if no block has usable trials of both copies.

    Two copies count as different if the 95 % interval of their ratio excludes 1. Holm's correction does not apply,
    because the A/A test shows how often a single interval is wrong.
    """
    # The keys are cell ids. A cell without a coordinate belongs to several points, but forms only one pair.
    by_ids = {
        (copy.cell.id, original.cell.id): (copy, original)
        for point in points
        for copy in point.members
        if copy.cell.arm == "aa"
        for original in point.members
        if original.cell.arm == "main"
        and (original.cell.stack, original.cell.variant) == (copy.cell.stack, copy.cell.variant)
    }
    copies = list(by_ids.values())
    compared = compare(copies, names, indicative=indicative)
    comparisons = tuple(found for of_pair in compared for found in of_pair if found.low is not None)
    # If the load limits the throughput, both copies have the same throughput.
    is_limited = all(point.load.limits_throughput for point in points)
    for metric in (BY_KEY[P50], BY_KEY[THROUGHPUT]) if is_limited else (BY_KEY[THROUGHPUT],):
        differences = [log for pair in copies for log in pair_by_block(*pair, metric).log_ratios.values()]
        if differences:
            break
    else:
        return None
    spread = stats.rms_log_ratio(differences)
    assert spread.low is not None
    assert spread.high is not None
    doubled = listed(list(dict.fromkeys(names[original.cell.id] for _, original in copies)))
    different = [found for found in comparisons if found.excludes_one]
    sentence = (
        f"Two copies of {doubled} differed by {spread.value * 100:.1f} % in {metric.title} within a block "
        f"(95 % interval {spread.low * 100:.1f}–{spread.high * 100:.1f} %, {counted(spread.count, 'pair')})."
    )
    if comparisons:
        said = listed(list(dict.fromkeys(BY_KEY[found.metric].title for found in different)))
        verb = "was" if len(different) == 1 else "were"
        sentence += f" {len(different)} of {counted(len(comparisons), 'A/A comparison')} {verb} called different"
        sentence += f" ({said})." if different else "."
    return IdenticalCopies(
        len(comparisons), len(different), spread.value, spread.low, spread.high, comparisons, sentence
    )
