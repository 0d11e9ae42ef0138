"""Defines the result of a conversion, and a parser for command lines of the converted tools."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from weir.load_spec import LoadSpec
from weir.model.errors import UsageError
from weir.scenario import Scenario


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


class ArgumentParser(argparse.ArgumentParser):
    """A parser for command lines of `tool`. An invalid command line raises UsageError with `example` as the hint."""

    def __init__(self, tool: str, example: str) -> None:
        super().__init__(tool, add_help=False, allow_abbrev=False)
        self._example = example

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", hint=self._example)
