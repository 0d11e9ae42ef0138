"""How far a trial can be trusted: reasons, and the verdict that they add up to. What leads to which is in `lab.verdict`."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

from weir.model.records import Validity

RANK: dict[Validity, int] = {"valid": 0, "suspect": 1, "invalid": 2}


def worst(found: Iterable[Validity]) -> Validity:
    """The worst of some; `valid` of none."""
    return max(found, key=RANK.__getitem__, default="valid")


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that was found: a fact, where it starts to matter, why it probably is so, and what to do next."""

    kind: str
    """What sort of thing it is, the same word whatever the figures are: reasons of a kind are told together."""
    validity: Validity
    """What it makes of the trial; `valid` is a note."""
    fact: str
    threshold: str = ""
    cause: str = ""
    next_step: str = ""

    @property
    def text(self) -> str:
        """All of it, in a line."""
        text = f"{self.fact} ({self.threshold})" if self.threshold else self.fact
        text += f": {self.cause}" if self.cause else ""
        return text + (f"; next: {self.next_step}" if self.next_step else "")


@dataclass(frozen=True, slots=True)
class TrialVerdict:
    """The judgement on a trial."""

    reasons: tuple[Reason, ...] = ()

    @classmethod
    def told(cls, validity: Validity, texts: Iterable[str]) -> Self:
        """A verdict in somebody else's words, such as the generator's on a load."""
        return cls(tuple(Reason("told", validity, text) for text in texts))

    @property
    def validity(self) -> Validity:
        """The worst of its reasons."""
        return worst(reason.validity for reason in self.reasons)

    @property
    def texts(self) -> tuple[str, ...]:
        """Its reasons, a line each."""
        return tuple(reason.text for reason in self.reasons)

    def to_json(self) -> list[dict[str, Any]]:
        """Its reasons as JSON values."""
        return [asdict(reason) for reason in self.reasons]

    @classmethod
    def from_json(cls, reasons: Iterable[dict[str, Any]]) -> Self:
        """The inverse of `to_json`."""
        return cls(tuple(Reason(**reason) for reason in reasons))
