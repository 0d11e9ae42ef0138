"""JavaScript's operators, on plain values and on symbols. Pure."""

import math
from collections.abc import Callable
from dataclasses import replace

from tree_sitter import Node

from weir.compat.k6.source import UnsaidError, excerpt
from weir.compat.k6.values import (
    Condition,
    Drawn,
    JsonAt,
    Part,
    Text,
    Undefined,
    Uniform,
    Value,
    is_plain,
    joined,
)

STATUSES = frozenset(range(100, 600))
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "===": lambda a, b: a == b, "==": lambda a, b: a == b, "!==": lambda a, b: a != b, "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else math.nan, "%": lambda a, b: math.fmod(a, b) if b else math.nan,
}  # fmt: skip


def truthy(value: Value, node: Node) -> bool:
    """Whether a condition holds.

    Raises:
        UnsaidError: that is known only when it runs.
    """
    if isinstance(value, Undefined) or value is None:
        return False
    if isinstance(value, list | dict):
        return True
    if is_plain(value):
        return bool(value) and value == value
    raise UnsaidError(node, f"found a condition on what only a user knows, {excerpt(node)!r}: all users take the same steps")


def binary(operator: str, left: Value, right: Value, node: Node) -> Value:
    """What an operator other than `&&`, `||` and `??` makes of two values.

    Raises:
        UnsaidError: nothing that a scenario could say.
    """
    if operator == "+" and (isinstance(left, str | Text) or isinstance(right, str | Text)):
        return joined((left, right))
    if _is_number(left) and _is_number(right):
        if operator in _ARITHMETIC:
            return _tidy(_ARITHMETIC[operator](left, right))
        if operator in _COMPARISONS:
            return _COMPARISONS[operator](left, right)
    if operator in _ARITHMETIC:
        return _drawn_arithmetic(operator, left, right, node)
    if operator not in _COMPARISONS:
        raise UnsaidError(node, f"found {excerpt(node)!r}, whose operator {operator} is not read")
    if isinstance(left, Part | JsonAt):
        return _held(operator, left, right, node)
    if isinstance(right, Part | JsonAt):
        return _held(_FLIPPED.get(operator, operator), right, left, node)
    if operator in ("===", "==", "!==", "!=") and _is_known(left) and _is_known(right):
        is_loose = len(operator) == 2
        nothing = isinstance(left, Undefined | None) and isinstance(right, Undefined | None)
        is_same = (nothing and (is_loose or type(left) is type(right))) or (not nothing and type(left) is type(right) and left == right)
        return is_same == operator.startswith("=")
    raise UnsaidError(node, f"found {excerpt(node)!r}, a comparison that a step cannot check")


def both(left: Condition, right: Condition, node: Node) -> Condition:
    """`&&` of two conditions.

    Raises:
        UnsaidError: a step has no check for both.
    """
    if left.step is not right.step:
        raise UnsaidError(node, f"found {excerpt(node)!r}, about the answers of two requests: a step checks its own")
    found = left
    if right.statuses is not None:
        found = replace(found, statuses=right.statuses if left.statuses is None else left.statuses & right.statuses)
    for name in ("body_contains", "body_equals", "max_body_bytes"):
        mine, other = getattr(left, name), getattr(right, name)
        if mine is not None and other is not None and mine != other:
            raise UnsaidError(node, f"found a second text or length in {excerpt(node)!r}: a step has one check.{name}")
        if other is not None:
            found = replace(found, **{name: other})
    return replace(found, json={**left.json, **right.json})


def either(left: Condition, right: Condition, node: Node) -> Condition:
    """`||` of two conditions on the status.

    Raises:
        UnsaidError: they are on something else.
    """
    if left.step is not right.step or left.statuses is None or right.statuses is None or not (left.is_of_status and right.is_of_status):
        raise UnsaidError(node, f"found {excerpt(node)!r}: all that a step checks must hold, but for a list of statuses")
    return replace(left, statuses=left.statuses | right.statuses)


def negated(value: Value, node: Node) -> Value:
    """`!` of a value.

    Raises:
        UnsaidError: a step has no such check.
    """
    if isinstance(value, Condition):
        if value.statuses is None or not value.is_of_status:
            raise UnsaidError(node, f"found {excerpt(node)!r}: a step checks what is there, not what is missing")
        return replace(value, statuses=STATUSES - value.statuses)
    return not truthy(value, node)


def used(drawn: Drawn, node: Node) -> str:
    """The placeholder of a drawn value, which may stand in one place only.

    Raises:
        UnsaidError: it stands somewhere already.
    """
    if drawn.is_used and not drawn.per_iteration:
        raise UnsaidError(node, f"found a random value for the second time in {excerpt(node)!r}: weir draws one for each place")
    drawn.is_used = True
    return drawn.placeholder


def whole(low: int, high: int) -> Drawn:
    """A whole number between two, any as likely."""
    return Drawn(f"{{{{int {low} {high}}}}}", (low, high))


def _held(operator: str, symbol: Part | JsonAt, value: Value, node: Node) -> Condition:
    answer = symbol.answer.step
    is_equal = operator in ("===", "==")
    match symbol:
        case JsonAt() if is_equal and isinstance(value, str | int | float):
            return Condition(answer, json={symbol.pointer: value})
        case Part(kind="status") if _is_number(value):
            return Condition(answer, frozenset(status for status in STATUSES if _COMPARISONS[operator](status, value)))
        case Part(kind="body") if is_equal and isinstance(value, str):
            return Condition(answer, body_equals=value)
        case Part(kind="length") if operator in ("<", "<=") and _is_number(value) and value >= 1:
            return Condition(answer, max_body_bytes=math.ceil(value) - 1 if operator == "<" else math.floor(value))
        case Part(kind="position") if (operator, value) in (("!==", -1), ("!=", -1), (">", -1), (">=", 0)):
            return Condition(answer, body_contains=symbol.text)
        case Part(kind="timings"):
            raise UnsaidError(node, f"found {excerpt(node)!r}: a limit on times is --objective 'p99<200ms' and the like")
    raise UnsaidError(node, f"found {excerpt(node)!r}, which a step cannot check: it has status, body and json")


def _drawn_arithmetic(operator: str, left: Value, right: Value, node: Node) -> Value:
    match left, right:
        case (Uniform(low, high), (int() | float()) as by) | ((int() | float()) as by, Uniform(low, high)) if operator in "+*" and by >= 0:
            return Uniform(_ARITHMETIC[operator](low, by), _ARITHMETIC[operator](high, by))
        case Uniform(low, high), (int() | float()) as by if operator == "-" or (operator == "/" and by > 0):
            return Uniform(_ARITHMETIC[operator](low, by), _ARITHMETIC[operator](high, by))
        case (Drawn(whole=(low, high)) as drawn, int(by)) | (int(by), Drawn(whole=(low, high)) as drawn) if operator == "+":
            used(drawn, node)
            return whole(low + by, high + by)
    raise UnsaidError(node, f"found {excerpt(node)!r}, which weir cannot calculate")


def _is_known(value: Value) -> bool:
    return isinstance(value, Undefined) or is_plain(value)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _tidy(value: float) -> float:
    return int(value) if isinstance(value, float) and value.is_integer() else value
