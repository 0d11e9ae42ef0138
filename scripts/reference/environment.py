"""docs/reference/environment.md, from `weir.model.variables.Variable` and from what builds and stacks are given."""

from scripts.reference.tables import attribute_docs, table
from weir.model.variables import Variable
from weir.stacks.toolchain import INHERITED, INHERITED_PREFIXES

_HEAD = """\
# The environment

<!-- Made by `make reference` from `Variable` in src/weir/model/variables.py. Change the docstrings there. -->

Variables that weir reads. An empty one counts as not set.
"""
_STACKS = """\
## What builds and stacks are given

Not weir's whole environment, so that nothing in it tunes a server unseen. `PATH` is weir's own with the tools behind it that were
installed beside weir; `JAVA_HOME` is that of the JDK that was chosen. Of the rest only:
"""
_TAIL = """\
Beside that come what tells a runtime how many CPUs it has ([0005](../decisions/0005-where-things-run.md)) and what the stack's manifest
sets itself, which wins ([stack.md](stack.md)).
"""


def page() -> str:
    """The page."""
    meanings = attribute_docs(Variable)
    variables = table(["variable", "meaning"], ([f"`{one.value}`", meanings[one.name]] for one in Variable))
    names = ", ".join(f"`{name}`" for name in [*INHERITED, *(f"{prefix}*" for prefix in INHERITED_PREFIXES), "*_proxy"])
    return "\n".join([_HEAD, variables, _STACKS, f"{names}.\n", _TAIL])
