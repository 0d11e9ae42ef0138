"""Generates docs/reference/exit-codes.md from `weir.model.errors.ExitCode`."""

from scripts.reference.tables import attribute_docs, table
from weir.model.errors import ExitCode

_HEAD = """\
# Exit codes

<!-- Made by `make reference` from `ExitCode` in src/weir/model/errors.py. Change the docstrings there. -->

Every `weir` command ends with one of these codes. Data goes to standard output, everything else to standard error. A message about a
problem begins with `weir:`. It names the found value, the expected value, and the next command.
"""


def page() -> str:
    meanings = attribute_docs(ExitCode)
    return "\n".join([_HEAD, table(["code", "meaning"], ([str(code.value), meanings[code.name]] for code in ExitCode))])
