"""Formats numbers and names for sentences, with units and with the digits that the interval supports."""

import math
import re
from collections.abc import Iterable, Sequence

from weir.model.run_types import Cell
from weir.stats import Estimate

_MOST_RANGES = 10


def ratio_text(value: float, low: float | None, high: float | None) -> tuple[str, str]:
    """Formats a ratio and its interval. Example: '4.1' and '3.6–4.7'. The second text is empty without an interval. The
    interval's half-width sets the number of decimals: at least two for a ratio below 2 or an interval that
    ends near 1, one for a ratio below 10."""
    digits = 2 if value < 2 else 1 if value < 10 else 0
    if low is None or high is None:
        return f"{value:,.{digits}f}", ""
    if high > low:
        digits = max(digits, min(3, -math.floor(math.log10((high - low) / 2))))
    # 2.3 (1.0–5.4) would not say whether the interval contains 1.
    if digits < 2 and 1 in (round(low, digits), round(high, digits)):
        digits = 2
    return f"{value:,.{digits}f}", f"{low:,.{digits}f}–{high:,.{digits}f}"


def significant(value: float, digits: int = 3) -> str:
    """Formats a number with `digits` significant digits and thousands separators, never with an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def amount(value: float) -> str:
    """Formats an amount of load or a setting: whole numbers exactly, other numbers with three significant digits."""
    return f"{value:,.0f}" if value == round(value) else significant(value)


def milliseconds(value_us: float | None) -> str:
    """Formats microseconds as milliseconds with at most three decimals; None becomes a dash."""
    if value_us is None:
        return "–"
    value = value_us / 1e3
    return f"{value:,.{3 - sum(value >= least for least in (1, 10, 100))}f}"


def signed_percent(share: float) -> str:
    """Formats a share as a percentage with a sign. Example: '+39 %' for 0.39. 0 % has no sign."""
    whole = round(abs(share) * 100)
    return f"{('−' if share < 0 else '+') if whole else ''}{whole} %"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Formats a number with its noun. Example: '3 trials'. `plural` is the noun's irregular plural."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def basis_text(blocks: int, indicative: bool) -> str:
    """Formats the number of blocks behind a figure. Example: '3 blocks: indicative'."""
    return counted(blocks, "block") + (": indicative" if indicative else "")


def estimate_text(estimate: Estimate, digits: int = 3) -> str:
    """Formats an estimate with its interval, if the estimate has an interval. Example: '4.13 (3.62–4.71)'."""
    value = significant(estimate.value, digits)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({significant(estimate.low, digits)}–{significant(estimate.high, digits)})"


def listed(parts: Sequence[str]) -> str:
    """Joins texts with commas and 'and'. Examples: 'a', 'a and b', 'a, b and c'."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def trial_numbers(ids: Iterable[int]) -> str:
    """Formats trial ids as at most ten ranges. Example: '1–5, 9, 12–14'. With more ranges, adds ' and 1,180 more'."""
    ranges: list[list[int]] = []
    for number in sorted(set(ids)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    text = ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in ranges[:_MOST_RANGES])
    more = sum(last - first + 1 for first, last in ranges[_MOST_RANGES:])
    return text + (f" and {more:,} more" if more else "")


def sentence_names(cells: Sequence[Cell]) -> dict[int, str]:
    """Returns a dict from cell id to a short name. Example: 'Flask' for the title 'Flask on gunicorn'. The stack's
    label replaces an empty name, or a name that several stacks or variants share."""
    owners: dict[str, set[tuple[str, str | None]]] = {}
    for cell in cells:
        owners.setdefault(_shorten(cell.title), set()).add((cell.stack, cell.variant))
    names = {}
    for cell in cells:
        short = _shorten(cell.title)
        is_unique = short and len(owners[short]) == 1
        names[cell.id] = short + " (A/A)" * (cell.arm == "aa") if is_unique else cell.stack_label
    return names


def _shorten(title: str) -> str:
    return re.split(r",|\(| on | under | behind | with ", title)[0].strip()
