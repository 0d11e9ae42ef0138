"""docs/reference/exit-codes.md, from `weir.model.errors.ExitCode`."""

from scripts.reference.tables import attribute_docs, table
from weir.model.errors import ExitCode

_HEAD = """\
# Exit codes

<!-- Made by `make reference` from `ExitCode` in src/weir/model/errors.py. Change the docstrings there. -->

What every `weir` command ends with. Data goes to standard output, everything else to standard error: a problem is a line that begins with
`weir:`, names what was found and what was expected, and is followed by what to try.
"""


def page() -> str:
    """The page."""
    meanings = attribute_docs(ExitCode)
    return "\n".join([_HEAD, table(["code", "meaning"], ([str(code.value), meanings[code.name]] for code in ExitCode))])
