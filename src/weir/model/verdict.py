"""The verdict on a trial, and its reasons. `lab.trial_verdict` has the rules."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from weir.model.load_records import Validity

RANK: dict[Validity, int] = {"valid": 0, "suspect": 1, "invalid": 2}


def worst(found: Iterable[Validity]) -> Validity:
    """Returns the worst of several validities. Returns `valid` if `found` is empty."""
    return max(found, key=RANK.__getitem__, default="valid")


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason of a verdict: an observed fact, a threshold, a probable cause and a next step."""

    kind: str
    """Kind of the reason, without figures. Reports group reasons by kind."""
    validity: Validity
    """Upper limit of the trial's validity. `valid`: the reason is only a note."""
    fact: str
    threshold: str = ""
    cause: str = ""
    next_step: str = ""

    @property
    def text(self) -> str:
        text = f"{self.fact} ({self.threshold})" if self.threshold else self.fact
        text += f": {self.cause}" if self.cause else ""
        return text + (f"; next: {self.next_step}" if self.next_step else "")


@dataclass(frozen=True, slots=True)
class TrialVerdict:
    """The reasons for the validity of a trial."""

    reasons: tuple[Reason, ...] = ()

    @classmethod
    def from_texts(cls, validity: Validity, texts: Iterable[str]) -> Self:
        """Returns a verdict with the reasons of another program, such as the generator."""
        return cls(tuple(Reason("told", validity, text) for text in texts))

    @property
    def validity(self) -> Validity:
        return worst(reason.validity for reason in self.reasons)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(reason.text for reason in self.reasons)
