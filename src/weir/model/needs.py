"""What a stack or a service needs of this machine and does not find there."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unmet:
    """A need that nothing here meets."""

    need: str
    """A tool by its command's name, `mvn`, with the oldest version that will do, `java>=17`; or a service."""
    why: str = "not found on the PATH"

    def __str__(self) -> str:
        """As messages say it."""
        return f"{self.need}, {self.why}"
