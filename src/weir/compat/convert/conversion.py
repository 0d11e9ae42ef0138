"""Another tool's load as a weir load, with a list of the parts that weir cannot express."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from weir.load_spec import LoadSpec
from weir.model.errors import UsageError
from weir.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of another tool's load that weir cannot express."""

    where: str
    """The file and its line, or the flag: `locustfile.py:12`."""
    what: str
    """The part that weir found, and the part that weir expects."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """Another tool's load, converted to a weir load."""

    spec: LoadSpec
    """The load, without its scenario."""
    scenario: Scenario | None = None
    """The requests of each user, in place of the load's single request."""
    files: Mapping[str, str] = field(default_factory=dict)
    """By file name: the content of the scenario's CSV files."""
    notes: Sequence[str] = ()
    """Sentences on differences from the tool, without full stops."""
    gaps: Sequence[Gap] = ()
    """The parts of the tool's load that this load lacks."""


class ArgumentParser(argparse.ArgumentParser):
    """A parser that raises UsageError for an invalid command line of `tool`, with `example` as the hint."""

    def __init__(self, tool: str, example: str) -> None:
        super().__init__(tool, add_help=False, allow_abbrev=False)
        self._example = example

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", hint=self._example)
