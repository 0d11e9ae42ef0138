"""Errors that weir shows to users. Every package raises `WeirError`, and only `cli` prints it. No traceback reaches
users."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit status of a weir command."""

    DONE = 0
    """The command finished. An invalid verdict of `load` changes this code only with `--strict`."""
    MISSED = 1
    """A condition did not hold: `load` or `run` missed an objective, `--abort-on` ended a load, `gate` found a
    regression, `audit` found an impossible number, or `prove` did not measure the predicted effect."""
    USAGE = 2
    """Wrong usage, an invalid file, or a machine that lacks resources. For `doctor`: weir itself lacks a requirement.
    Also: weir cannot write a file, for example on a full disk. The run then ends and keeps its finished trials."""
    TARGET = 3
    """A stack, a service or a target failed: weir could not build, start or reach it, its response was wrong, or it
    ended. For `run`: all trials of a cell failed."""
    NOT_VALID = 4
    """The measurement is not valid: a cell of a `run` has no trial that counts, `capacity` found no bound, or a `load`
    lost an agent. With `--strict`: the verdict of a `load` is not valid, or a `gate` is inconclusive."""
    DEFECT = 70
    """A defect of weir itself. `WEIR_DEBUG=1` shows its place."""
    INTERRUPTED = 130
    """Ctrl-C, SIGTERM or a closed terminal interrupted the command. weir keeps finished trials."""


class WeirError(Exception):
    """An error with a message for users. `message` names the file, key or flag, what weir found, and what weir
    expected. `hint` is the next command."""

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(WeirError):
    """Wrong usage, or a file that is not valid."""


class InvalidValueError(ValueError):
    """An error for a text without the expected form. The message is "expected" and `expected`. `hint` is a next
    step."""

    def __init__(self, found: str, expected: str, hint: str = "") -> None:
        super().__init__(f"expected {expected}")
        self.found, self.expected, self.hint = found, expected, hint

    def at(self, place: str) -> UsageError:
        """Returns a UsageError whose message begins with `place`, the flag, key or field of the text."""
        return UsageError(f"{place}: found {self.found!r}, expected {self.expected}", hint=self.hint)


class TargetError(WeirError):
    """A stack, a service or a target failed."""

    exit_code = ExitCode.TARGET


class GeneratorError(TargetError):
    """A failure of the generator. Examples: weir's engine was killed, an external tool hung or printed an unreadable
    report (the message names its output file), or an agent on another machine was lost."""


class NoAgentLeftError(WeirError):
    """The loss of all agents on other machines. Unlike the loss of a single agent, this error ends a run."""

    exit_code = ExitCode.TARGET


class NotWrittenError(WeirError):
    """An error for a run file, or a log next to it, that weir cannot write. Finished trials stay in the run file."""
