"""Response assertions."""

import re
from collections.abc import Sequence
from typing import Final

from weir.compat.jmx.plan import Asked, Assertion
from weir.compat.jmx.tree import Element
from weir.compat.jmx.values import Complain, Values

_OF_BODY: Final = "Assertion.response_data"
_OF_STATUS: Final = "Assertion.response_code"
# Bits of Assertion.test_type.
_ASKED: Final[dict[int, Asked]] = {1: "matches", 2: "contains", 8: "equals", 16: "substring"}
_NOT: Final = 4
_OR: Final = 32
_ONLY_IN_PERL: Final = re.compile(r"(?<!\\)\(\?(?:<?[=!]|>)|(?<!\\)\\[1-9]|[*+?}]\+")


def read_assertion(element: Element, values: Values, complain: Complain) -> Assertion | None:
    """A response assertion; None where it is none that weir can hold an answer against, or where it looks at nothing."""
    node = element.node
    field, scope = node.value("Assertion.test_field", _OF_BODY), node.value("Assertion.scope", "parent")
    type_text = node.value("Assertion.test_type", "2")
    bits = int(type_text) if type_text.strip().isdecimal() else 0
    asked = _ASKED.get(bits & ~(_NOT | _OR))
    if field not in (_OF_BODY, _OF_STATUS):
        complain(f"a look at {field.removeprefix('Assertion.')}, expected the body as text or the response code")
        return None
    if asked is None:
        complain(f"Assertion.test_type: found {type_text!r}, expected contains, matches, equals or substring")
        return None
    if scope == "children":
        # Requests that weir sends have no samples below them.
        return None
    if scope == "variable":
        complain("a look at a variable, expected one at the answer")
        return None
    # JMeter misspells the name.
    texts = tuple(values.fixed(item.text, complain) for item in node.items("Asserion.test_strings"))
    if not texts:
        return None
    found = Assertion(
        name=element.name,
        of_status=field == _OF_STATUS,
        asked=asked,
        texts=texts,
        is_denied=bool(bits & _NOT),
        any_of=bool(bits & _OR) and len(texts) > 1,
        ignores_status=node.flag("Assertion.assume_success"),
    )
    if found.is_denied and found.any_of:
        complain("the negation of an alternative (Not and Or)")
        return None
    for text in texts if asked in ("contains", "matches") else ():
        if (why := _why_no_pattern(text)) is not None:
            complain(f"the regular expression {text!r}: {why}")
            return None
    return found


def _why_no_pattern(text: str) -> str | None:
    """What is against a regular expression that Perl, Python and Rust should understand alike."""
    try:
        re.compile(text)
    except re.error as error:
        return str(error)
    found = _ONLY_IN_PERL.search(text)
    return None if found is None else f"{found[0]} is not in the engine's regular expressions, which take time in proportion to the text"


def right_statuses(assertions: Sequence[Assertion]) -> tuple[int, ...] | None:
    """The statuses that are right by all assertions; None where none says anything of them: every one below 400."""
    of_status = [assertion for assertion in assertions if assertion.of_status]
    ignores = any(assertion.ignores_status for assertion in assertions)
    if not of_status and not ignores:
        return None
    possible = range(200, 600) if ignores else range(200, 400)
    return tuple(status for status in possible if all(_holds(assertion, str(status)) for assertion in of_status))


def _holds(assertion: Assertion, status: str) -> bool:
    found = [_is_found(assertion.asked, text, status) for text in assertion.texts]
    if assertion.is_denied:
        return not any(found)
    return any(found) if assertion.any_of else all(found)


def _is_found(asked: Asked, text: str, status: str) -> bool:
    match asked:
        case "substring":
            return text in status
        case "equals":
            return text == status
        case "contains":
            return re.search(text, status) is not None
        case "matches":
            return re.fullmatch(text, status) is not None
