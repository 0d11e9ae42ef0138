"""The load of another tool in weir's terms, with a list of what weir cannot express."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from weir.load_spec import LoadSpec
from weir.model.errors import UsageError
from weir.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that weir cannot express natively."""

    where: str
    """The file and its line, or the flag: `locustfile.py:12`."""
    what: str
    """What stands there, and what weir has instead."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A load that another tool would make."""

    spec: LoadSpec
    """The load, without its scenario."""
    scenario: Scenario | None = None
    """What users do instead of the load's one request."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The content of the scenario's files of rows, by name."""
    notes: Sequence[str] = ()
    """Differences from the tool, a sentence each, without a full stop."""
    gaps: Sequence[Gap] = ()
    """What is left out of the load."""


class ArgumentParser(argparse.ArgumentParser):
    """Raises UsageError for a wrong command line of `tool`, with the command line `example` as a hint."""

    def __init__(self, tool: str, example: str) -> None:
        super().__init__(tool, add_help=False, allow_abbrev=False)
        self._example = example

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", hint=self._example)
