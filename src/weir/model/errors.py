"""Errors that reach a user: what was found, what was expected, and what to do next.

Every room raises `WeirError`; only `cli` prints it. A traceback that reaches a user is a defect.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a weir command's exit status means."""

    DONE = 0
    """Done. Figures that are not valid change nothing in it: `load` prints its verdict and exits with 0 unless `--strict` asks for more."""
    MISSED = 1
    """What was asked for did not hold: `load` or `run` missed an objective, `--abort-on` ended a load, `gate` found something worse,
    `audit` something impossible, or what `prove` predicted did not come."""
    USAGE = 2
    """Wrong usage, an invalid file, or a machine that does not suffice; of `doctor`: something that weir itself needs is missing. A file
    that cannot be written, as on a full disk, ends a run with it too; what was finished before is kept."""
    TARGET = 3
    """A stack, a service or a target failed: it could not be built, started or reached, answered wrong, or ended. Of `run`: every trial of
    one of its cells."""
    NOT_VALID = 4
    """Measured, but not valid: a cell of a `run` has no trial that counts, `capacity` found no bound, or a `load` has lost an agent. With
    `--strict` also a `load` whose verdict is not valid, and a `gate` that is undecided."""
    DEFECT = 70
    """A defect of weir's own. `WEIR_DEBUG=1` shows where."""
    INTERRUPTED = 130
    """Interrupted: by Ctrl-C, SIGTERM or a closed terminal. What was finished is kept."""


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


class GeneratorError(TargetError):
    """What was to make the load failed: weir's own engine was killed, another program ended badly, hung, or printed what cannot be read
    (the message names the file that its output is in), or an agent on another machine is gone."""


class NoAgentLeftError(WeirError):
    """All agents on other machines are gone. Unlike the loss of one this ends a run."""

    exit_code = ExitCode.TARGET


class NotWrittenError(WeirError):
    """The run file or a log beside it cannot be written, most often for want of space. What was finished before is kept."""
