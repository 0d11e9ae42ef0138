"""The reasons that prevent weir's engine from sending exactly JMeter's requests for a test plan."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from weir.model.errors import UsageError
from weir.model.sanitize import sanitize

_MOST_KINDS = 3
"""Maximum number of kinds of complaints in the one-line summary."""


class Complaint(NamedTuple):
    """A part of a test plan that the engine cannot run exactly."""

    what: str
    """The subject of the complaint: the kind of an element, or a variable, function, property or file."""
    why: str
    line: int
    name: str
    """The element's name in the test plan."""


class NotExactError(UsageError):
    """Raised for a test plan that weir's engine cannot run exactly as JMeter does."""

    def __init__(self, path: Path, complaints: Sequence[Complaint], sampler_count: int) -> None:
        self.complaints = sorted(complaints, key=lambda one: one.line)
        self.sampler_count = sampler_count
        """Number of enabled HTTP samplers in the plan."""
        found = "\n".join(f"  {line}" for line in _list_kinds(self.complaints))
        problem = f"{path}: weir's engine cannot run this plan exactly ({sampler_count} HTTP samplers):"
        super().__init__(f"{problem}\n{found}", hint="run the plan with JMeter: weir jmeter, without --engine")

    @property
    def summary(self) -> str:
        """One line with the most frequent complaints: `RegexExtractor 151, __time 20 and 4 more`."""
        counts = Counter(sanitize(one.what) for one in self.complaints).most_common()
        shown = ", ".join(f"{what} {count}" for what, count in counts[:_MOST_KINDS])
        return shown + (f" and {len(counts) - _MOST_KINDS} more" if len(counts) > _MOST_KINDS else "")


def _list_kinds(complaints: Sequence[Complaint]) -> list[str]:
    """Returns a line for each kind of complaint, the most frequent first. `complaints` are in the plan's order."""
    first: dict[tuple[str, str], Complaint] = {}
    for one in complaints:
        first.setdefault((one.what, one.why), one)
    counts = Counter((one.what, one.why) for one in complaints)
    kinds = sorted(first, key=lambda kind: (-counts[kind], first[kind].line))
    return [
        sanitize(f"{kind[0]} {counts[kind]}, first at line {first[kind].line} ({first[kind].name!r}): {kind[1]}")
        for kind in kinds
    ]
