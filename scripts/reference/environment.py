"""Generates docs/reference/environment.md from `Variable` and from the variables that builds and stacks get."""

from scripts.reference.tables import attribute_docs, table
from weir.model.variables import Variable
from weir.stacks.toolchain import INHERITED, INHERITED_PREFIXES

_HEAD = """\
# The environment

<!-- Made by `make reference` from `Variable` in src/weir/model/variables.py. Change the docstrings there. -->

Variables that weir reads. An empty variable counts as not set.
"""
_STACKS = """\
## Variables of builds and stacks

Builds and stacks get only a part of weir's environment, so that no other variable tunes a server unseen. `PATH` is weir's `PATH`,
followed by the tools that were installed beside weir. `JAVA_HOME` is the chosen JDK. They also get:
"""
_TAIL = """\
weir also sets variables that tell a runtime its number of CPUs ([0005](../decisions/0005-where-things-run.md)). Last come the
variables of the stack's manifest ([stack.md](stack.md)), which override all others.
"""


def page() -> str:
    meanings = attribute_docs(Variable)
    variables = table(["variable", "meaning"], ([f"`{one.value}`", meanings[one.name]] for one in Variable))
    names = ", ".join(f"`{name}`" for name in [*INHERITED, *(f"{prefix}*" for prefix in INHERITED_PREFIXES), "*_proxy"])
    return "\n".join([_HEAD, variables, _STACKS, f"{names}.\n", _TAIL])
