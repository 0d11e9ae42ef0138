"""Reads a test plan."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from weir.compat.jmx.group import NOTHING_LIKE_IT, ROLES, GroupReader, is_silent
from weir.compat.jmx.plan import TestPlan, ThreadGroup, Unsupported
from weir.compat.jmx.scope import SCOPED, Complain, Scope, is_http_defaults
from weir.compat.jmx.tree import Element, arguments, read_tree
from weir.compat.jmx.values import Values
from weir.model.errors import UsageError


def read_test_plan(path: Path, properties: Mapping[str, str]) -> TestPlan:
    """The test plan in a .jmx file.

    Args:
        path: the file. Files that it names are relative to its folder.
        properties: what `__P` and `__property` give: `-Jname=value`.

    Raises:
        UsageError: the file cannot be read or is no test plan, a number in it is none, or it asks for no load at all.
    """
    root = read_tree(path)
    found: dict[tuple[int, str], Unsupported] = {}

    def tell(element: Element, why: str) -> None:
        # What several requests share is said once.
        found.setdefault((id(element), why), Unsupported(element.kind, element.path, element.node.line, why))

    try:
        groups = _groups(root, path, properties, tell)
    except UsageError as error:
        raise UsageError(error.message if error.message.startswith(str(path)) else f"{path}: {error.message}") from None
    unsupported = sorted(found.values(), key=lambda one: one.line)
    if not groups and not unsupported:
        raise UsageError(f"{path}: found no thread group with threads, loops and HTTP requests, expected at least one")
    return TestPlan(
        path=path,
        name=root.name,
        groups=tuple(groups),
        is_serial=root.node.flag("TestPlan.serialize_threadgroups"),
        unsupported=tuple(unsupported),
    )


def _groups(root: Element, path: Path, properties: Mapping[str, str], tell: Complain) -> list[ThreadGroup]:
    values = Values(properties)
    _define(root, "TestPlan.user_defined_variables", values, tell)
    for element in _all(root):
        if element.kind == "Arguments":
            _define(element, "", values, tell)
    scope = Scope(values).within(root.below)
    of_groups = [element for element in root.below if element.kind in ROLES]
    for element in root.below:
        is_known = element.kind in SCOPED | ROLES.keys() | {"CSVDataSet"} or is_http_defaults(element) or is_silent(element)
        if not is_known:
            tell(element, NOTHING_LIKE_IT)
    reader = GroupReader(path.parent, tell)
    beside = [element for element in root.below if element.kind not in ROLES]
    read = [reader.read(element, number, scope, beside, len(of_groups)) for number, element in enumerate(of_groups, 1)]
    return [group for group in read if group is not None]


def _define(element: Element, name: str, values: Values, tell: Complain) -> None:
    """Takes the variables of an element up, wherever it stands: JMeter gives them to all threads, from the start."""
    holder = element.node.property(name) if name else element.node
    for argument in arguments(holder):
        values.variables[argument.name] = values.fixed(argument.value, partial(tell, element))


def _all(element: Element) -> Iterator[Element]:
    for below in element.below:
        yield below
        yield from _all(below)
