"""Errors that reach a user: what was found, what was expected, and what to do next.

Every room raises `WeirError`; only `cli` prints it. A traceback that reaches a user is a defect.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a weir command's exit status means."""

    DONE = 0
    MISSED = 1
    """An objective or a gate failed."""
    USAGE = 2
    """Wrong usage or an invalid file."""
    TARGET = 3
    """A stack, a service or a target failed."""
    NOT_VALID = 4
    """Measured, but not valid."""
    INTERRUPTED = 130


class WeirError(Exception):
    """A problem to tell the user in one message.

    `message` names the file, the key or the flag, what was found and what was expected; `hint` is the next command to try.
    """

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(WeirError):
    """Wrong usage, or a file that is not valid."""


class TargetError(WeirError):
    """A stack, a service or a target failed."""

    exit_code = ExitCode.TARGET


class NotWrittenError(WeirError):
    """The run file or a log beside it cannot be written, most often for want of space. What was finished before is kept."""
