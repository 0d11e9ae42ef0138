"""Why a run has as many blocks as it has."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

Rule = Literal["blocks", "width", "most_blocks", "budget", "first_answer"]


@dataclass(frozen=True, slots=True)
class Stop:
    """What ended a run: all its blocks were done, its intervals were narrow enough, its time was spent, or its first answer was enough."""

    rule: Rule
    """What was asked for and met: a number of blocks, a width, the most blocks, a budget, or the first answer."""
    blocks: int
    """How many blocks were run."""
    text: str
    """In a sentence."""
    added: int = 0
    """How many of them somebody asked for who looked on, on top of what the study asks for."""

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls(**value)
