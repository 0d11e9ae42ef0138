"""Errors for users. Every room raises `WeirError`; only `cli` prints it. A traceback that reaches a user is a
defect."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit status of a weir command."""

    DONE = 0
    """The command is done. Invalid figures do not change this: `load` prints its verdict; only `--strict` does."""
    MISSED = 1
    """A condition did not hold: `load` or `run` missed an objective, `--abort-on` ended a load, `gate` found a
    regression, `audit` found an impossible number, or `prove` did not see the effect that it predicted."""
    USAGE = 2
    """Wrong usage, an invalid file, or a machine that lacks resources; for `doctor`: weir itself lacks something. Also
    if weir cannot write a file, for example on a full disk; then the run ends and keeps its finished trials."""
    TARGET = 3
    """A stack, a service or a target failed: weir could not build, start or reach it, its response was wrong, or it
    ended. For `run`: in every trial of one of its cells."""
    NOT_VALID = 4
    """The measurement is not valid: a cell of a `run` has no trial that counts, `capacity` found no bound, or a `load`
    lost an agent. With `--strict` also if the verdict of a `load` is not valid, or a `gate` is inconclusive."""
    DEFECT = 70
    """A defect of weir itself. `WEIR_DEBUG=1` shows its place."""
    INTERRUPTED = 130
    """Ctrl-C, SIGTERM or a closed terminal interrupted the command. Finished trials are kept."""


class WeirError(Exception):
    """A problem for the user. `message` names the file, key or flag, what weir found and what it expected; `hint` is
    the next command."""

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(WeirError):
    """Wrong usage, or a file that is not valid."""


class InvalidValueError(ValueError):
    """A text has no value of the expected kind. The message has `expected` after the word "expected"; `hint` is the
    next step."""

    def __init__(self, found: str, expected: str, hint: str = "") -> None:
        super().__init__(f"expected {expected}")
        self.found, self.expected, self.hint = found, expected, hint

    def at(self, place: str) -> UsageError:
        """Returns the error with the flag, key or field where the text stands."""
        return UsageError(f"{place}: found {self.found!r}, expected {self.expected}", hint=self.hint)


class TargetError(WeirError):
    """A stack, a service or a target failed."""

    exit_code = ExitCode.TARGET


class GeneratorError(TargetError):
    """The generator failed: weir's engine was killed, an external tool failed, hung, or printed an unreadable report
    (the message names its output file), or an agent on another machine is gone."""


class NoAgentLeftError(WeirError):
    """All agents on other machines are lost. Unlike the loss of a single agent, this error ends a run."""

    exit_code = ExitCode.TARGET


class NotWrittenError(WeirError):
    """The run file or a log beside it cannot be written, usually because the disk is full. Finished trials are kept."""
