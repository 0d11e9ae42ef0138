"""Errors that weir shows to users, without a traceback. Every package raises `WeirError`, and only `cli` prints it."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of weir's commands."""

    DONE = 0
    """The command finished. An invalid verdict of `load` changes this code only with `--strict`."""
    MISSED = 1
    """`load`, `run` or `plan` missed an objective, `--abort-on` ended a load, `gate` found a regression, `audit` found
    an impossible number, `confirm` did not measure the predicted effect, or a `--fail-if` of `compare` was true."""
    USAGE = 2
    """Wrong usage, an invalid file, or a machine that lacks resources. For `doctor`: weir itself lacks a requirement.
    Also: weir cannot write a file, for example on a full disk. A run then ends and keeps its finished trials."""
    TARGET = 3
    """A stack, a service or a target failed. Examples: a build failed, a server was out of reach, a response was wrong,
    or a process ended early. For `run`: all trials of a cell failed."""
    NOT_VALID = 4
    """The measurement is not valid: a cell of a `run` has no trial that counts, `capacity` found no bound, or a `load`
    lost an agent. With `--strict`: the verdict of a `load` is not valid, or a `gate` is inconclusive."""
    DEFECT = 70
    """A defect of weir itself. `WEIR_DEBUG=1` shows the place of the defect in weir's code."""
    INTERRUPTED = 130
    """Ctrl-C, SIGTERM or a closed terminal interrupted the command. The run file keeps finished trials."""


class WeirError(Exception):
    """An error for users. `message` names the place, what weir found, and what it expected. `hint` is the next step."""

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(WeirError):
    """Raised for wrong usage, or for an invalid file."""


class InvalidValueError(ValueError):
    """Raised for an invalid value `found`. `expected` describes valid texts, and `hint` is the next command."""

    def __init__(self, found: str, expected: str, hint: str = "") -> None:
        super().__init__(f"expected {expected}")
        self.found, self.expected, self.hint = found, expected, hint

    def at(self, place: str) -> UsageError:
        """Returns a UsageError for this error. The message begins with `place`: a flag, a key or a field."""
        return UsageError(f"{place}: found {self.found!r}, expected {self.expected}", hint=self.hint)


class TargetError(WeirError):
    """Raised if a stack, a service or a target failed."""

    exit_code = ExitCode.TARGET


class GeneratorError(TargetError):
    """Raised if the generator failed. Examples: weir's engine was killed, an external tool hung or printed an
    unreadable report (the message names the file), or weir lost an agent."""


class NoAgentLeftError(WeirError):
    """Raised after the loss of all agents on other machines. Unlike the loss of one agent, this error ends a run."""

    exit_code = ExitCode.TARGET


class NotWrittenError(WeirError):
    """Raised if weir cannot write the run file or a log beside it. Finished trials stay in the run file."""
