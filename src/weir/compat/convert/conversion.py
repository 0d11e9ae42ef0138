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
    """The place of the part: a file with a line, such as `locustfile.py:12`, or only a file."""
    what: str
    """The problem, such as `found …, expected …`."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """Another tool's load, converted to a weir load."""

    spec: LoadSpec
    """The load, without its scenario."""
    scenario: Scenario | None = None
    """The requests of each user. None: users repeat the single request of `spec`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The content of the scenario's CSV files, by file name."""
    notes: Sequence[str] = ()
    """A sentence, without a full stop, for each difference between the tool's load and weir's load."""
    gaps: Sequence[Gap] = ()
    """The parts of the tool's load that `spec` and `scenario` lack."""


class ArgumentParser(argparse.ArgumentParser):
    """A parser for command lines of `tool`. An invalid command line raises UsageError with `example` as the hint."""

    def __init__(self, tool: str, example: str) -> None:
        super().__init__(tool, add_help=False, allow_abbrev=False)
        self._example = example

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", hint=self._example)
