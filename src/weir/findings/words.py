"""Numbers and names as sentences print them: as many digits as the interval supports, units beside the number."""

import math
from collections.abc import Sequence

from weir.model.run import Cell


def ratio_digits(value: float, low: float | None, high: float | None) -> int:
    """Decimals for a ratio: those of the interval's half-width, at least one below 10 and two below 2."""
    fewest = 2 if value < 2 else 1 if value < 10 else 0
    if low is None or high is None or high <= low:
        return fewest
    half_width = (high - low) / 2
    return max(fewest, min(3, -math.floor(math.log10(half_width))))


def ratio_text(value: float, low: float | None, high: float | None) -> tuple[str, str]:
    """The ratio and its interval, '4.1' and '3.6–4.7'; the interval is empty where there is none."""
    digits = ratio_digits(value, low, high)
    if low is None or high is None:
        return f"{value:,.{digits}f}", ""
    return f"{value:,.{digits}f}", f"{low:,.{digits}f}–{high:,.{digits}f}"


def significant(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits, never in exponent form, thousands separated."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def amount(value: float) -> str:
    """A number of users or arrivals, or a setting: whole ones as they are, others with three digits."""
    return f"{value:,.0f}" if value == round(value) else significant(value)


def signed_percent(share: float) -> str:
    """0.39 as '+39 %', with a true minus sign; what rounds to nothing has no sign."""
    whole = round(abs(share) * 100)
    return f"{('−' if share < 0 else '+') if whole else ''}{whole} %"


def counted(count: int, noun: str, plural: str = "") -> str:
    """'1 trial', '3 trials'; `plural` where an s is not enough."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def listed(parts: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def sentence_names(cells: Sequence[Cell]) -> dict[int, str]:
    """A short name for each cell, by id: what stands before 'on', 'under' or a comma in its title ('Flask on gunicorn' → 'Flask').

    Where two different stacks or variants would get the same name, or the title is empty, it is the stack's label.
    """
    owners: dict[str, set[tuple[str, str | None]]] = {}
    for cell in cells:
        owners.setdefault(_short(cell.title), set()).add((cell.stack, cell.variant))
    names = {}
    for cell in cells:
        short = _short(cell.title)
        if short and len(owners[short]) == 1:
            names[cell.id] = f"{short} (A/A)" if cell.arm == "aa" else short
        else:
            names[cell.id] = cell.stack_label
    return names


def _short(title: str) -> str:
    for separator in (",", "(", " on ", " under ", " behind ", " with "):
        title = title.split(separator)[0]
    return title.strip()
