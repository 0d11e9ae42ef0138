"""Requirements that this machine does not meet: programs of stacks and services, and optional dependencies of weir."""

from dataclasses import dataclass
from typing import Literal

from weir.model.errors import UsageError

Extra = Literal["cluster", "databases", "frames", "locust"]
"""Name of a set of optional dependencies of weir's Python package (an extra)."""


@dataclass(frozen=True, slots=True)
class UnmetRequirement:
    """A requirement that this machine does not meet."""

    need: str
    """A service, or the command of a tool with its minimum version. Examples: `mvn`, `java>=17`."""
    why: str = "not found on the PATH"

    def __str__(self) -> str:
        return f"{self.need}, {self.why}"


def install_command(extra: Extra) -> str:
    """Returns the command that installs weir with an extra."""
    return f"pip install 'weirbench[{extra}]'"


def missing_extra(error: ImportError, extra: Extra, use: str) -> UsageError:
    """Returns the error for a failed import: `extra` is not installed, but the feature `use` needs `extra`."""
    return UsageError(f"{use}: {error.name} is not installed here", hint=install_command(extra))
