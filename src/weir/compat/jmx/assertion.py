"""Reads the response assertions of a test plan."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from weir.compat.jmx.scope import Scope
from weir.compat.jmx.test_plan import Assertion, Comparison
from weir.compat.jmx.tree import Element

_BODY: Final = "Assertion.response_data"
_STATUS: Final = "Assertion.response_code"
# Bits of Assertion.test_type.
_COMPARISONS: Final[dict[int, Comparison]] = {1: "matches", 2: "contains", 8: "equals", 16: "substring"}
_NOT: Final = 4
_OR: Final = 32
_COMMON: Final = re.compile(
    r"""(?: \^ | \| | \((?:\?:)? | \$(?=\||\)|\Z)
        | (?: [^\\\[\](){}*+?|^$] | \\[dDwWsSnrt] | \\[^A-Za-z0-9]
            | \[\^?-?(?: (?:[^\\\[\]&~-]|\\[dDwWsSnrt]|\\[^A-Za-z0-9]) (?:-[A-Za-z0-9])? )+-?\] | \) )
          (?: (?:[*+?]|\{[0-9]+(?:,[0-9]*)?\}) \?? )?
    )*""",
    re.VERBOSE,
)
"""Matches regular expressions that have the same meaning for JMeter and for the engine."""
_HOLDS: Final[dict[Comparison, Callable[[str, str], object]]] = {
    "substring": lambda text, status: text in status,
    "equals": lambda text, status: text == status,
    "contains": re.search,
    "matches": re.fullmatch,
}


def read_assertion(element: Element, scope: Scope) -> Assertion | None:
    """Returns a response assertion; None if the assertion checks nothing, or if weir does not support it."""
    field, applies_to = element.value("Assertion.test_field", _BODY), element.value("Assertion.scope", "parent")
    type_text = element.value("Assertion.test_type", "2")
    bits = int(type_text) if type_text.strip().isdecimal() else 0
    comparison = _COMPARISONS.get(bits & ~(_NOT | _OR))
    # JMeter misspells the name.
    texts = tuple(scope.resolve_fixed(element, item.text) for item in element.items("Asserion.test_strings"))
    if applies_to == "children" or not texts:
        # JMeter's sub-samples do not exist in weir.
        return None
    is_negated, any_is_enough = bool(bits & _NOT), bool(bits & _OR) and len(texts) > 1
    problem = ""
    if field not in (_BODY, _STATUS):
        problem = f"found {field.removeprefix('Assertion.')}, expected the body as text or the response code"
    elif comparison is None:
        problem = f"Assertion.test_type: found {type_text!r}, expected contains, matches, equals or substring"
    elif applies_to == "variable":
        problem = "found an assertion on a variable, expected an assertion on the response"
    elif is_negated and any_is_enough:
        problem = "found Not and Or together, expected only one of the two"
    elif comparison in ("contains", "matches"):
        problem = next(filter(None, (_check_pattern(text) for text in texts if "${" not in text)), "")
    if problem or comparison is None:
        scope.report(element, problem)
        return None
    ignores_status = element.flag("Assertion.assume_success")
    return Assertion(field == _STATUS, comparison, texts, is_negated, any_is_enough, ignores_status)


def _check_pattern(text: str) -> str:
    """Returns the problem with a regular expression; '' if it has the same meaning for JMeter and for the engine."""
    if not _COMMON.fullmatch(text):
        return f"the regular expression {text!r} may have another meaning in the engine than in JMeter"
    try:
        re.compile(text)
    except re.error as error:
        return f"the regular expression {text!r}: {error}"
    return ""


def list_right_statuses(assertions: Sequence[Assertion]) -> tuple[int, ...] | None:
    """Returns the statuses that all assertions accept; None (all below 400) if no assertion checks the status."""
    about_status = [assertion for assertion in assertions if assertion.is_for_status]
    ignores = any(assertion.ignores_status for assertion in assertions)
    if not about_status and not ignores:
        return None
    possible = range(200, 600) if ignores else range(200, 400)
    return tuple(status for status in possible if all(_holds(assertion, str(status)) for assertion in about_status))


def _holds(assertion: Assertion, status: str) -> bool:
    found = [bool(_HOLDS[assertion.comparison](text, status)) for text in assertion.texts]
    if assertion.is_negated:
        return not any(found)
    return any(found) if assertion.any_is_enough else all(found)
