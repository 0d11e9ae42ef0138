"""Expressions of a k6 script: what is known beforehand is calculated, the rest are symbols."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

from tree_sitter import Node

from weir.compat.k6.literals import in_one_piece, number_of, unescaped
from weir.compat.k6.members import member
from weir.compat.k6.operators import binary, both, either, negated, truthy, used
from weir.compat.k6.source import UnsaidError, excerpt, line_of, named, part, text_of
from weir.compat.k6.values import Condition, Drawn, Function, Undefined, Unknown, Unsayable, Value, as_text, joined

Scopes = tuple[dict[str, Value], ...]
"""Names and their values, the innermost last."""

_FUEL = 200_000
"""Statements and expressions that are read: a loop that never ends, ends."""
_TEXT_OF_A_STEP = 4096


class OutOfFuelError(Exception):
    """A script goes on and on; its argument is the line."""


class Expressions(ABC):
    """Gives expressions their values.

    Args:
        one_of: gives one of a list by chance.
    """

    def __init__(self, one_of: Callable[[Value, Node], Value]) -> None:
        self._one_of = one_of
        self._fuel = _FUEL

    @abstractmethod
    def call(self, function: Value, arguments: Sequence[Value], node: Node) -> Value:
        """What a function gives for arguments.

        Raises:
            UnsaidError: it is none, or cannot be said.
        """

    def _value(self, node: Node, scopes: Scopes) -> Value:
        self._spend(node)
        match node.type:
            case "identifier" | "undefined":
                return self._name(node, scopes)
            case "string":
                parts = [unescaped(child) if child.type == "escape_sequence" else text_of(child) for child in named(node)]
                return in_one_piece("".join(parts))
            case "template_string":
                return self._template(node, scopes)
            case "number":
                return number_of(node)
            case "true" | "false" | "null":
                return {"true": True, "false": False, "null": None}[node.type]
            case "array":
                items = [one for item in named(node) for one in self._spread(item, scopes)]
                self._spend(node, len(items))
                return items
            case "object":
                return self._object(node, scopes)
            case "parenthesized_expression" | "await_expression":
                return self._value(named(node)[-1], scopes)
            case "arrow_function" | "function_expression":
                return Function(node, scopes)
            case "member_expression":
                return member(self._value(part(node, "object"), scopes), text_of(part(node, "property")), node, self.call)
            case "subscript_expression":
                return self._subscript(node, scopes)
            case "call_expression":
                return self._call(node, scopes)
            case "new_expression":
                return self._call(node, scopes, "constructor")
            case "binary_expression":
                return self._binary(node, scopes)
            case "unary_expression":
                return self._unary(node, scopes)
            case "ternary_expression":
                condition = part(node, "condition")
                chosen = "consequence" if truthy(self._value(condition, scopes), condition) else "alternative"
                return self._value(part(node, chosen), scopes)
            case "assignment_expression" | "augmented_assignment_expression" | "update_expression":
                return self._assignment(node, scopes)
        raise UnsaidError(node, f"found {excerpt(node)!r}: a {node.type.replace('_', ' ')} is not read")

    def _name(self, node: Node, scopes: Scopes) -> Value:
        name = text_of(node)
        for scope in reversed(scopes):
            if name in scope:
                value = scope[name]
                if isinstance(value, Unsayable):
                    raise UnsaidError(node, f"found {name!r} {value.what}")
                if isinstance(value, Unknown):
                    raise UnsaidError(node, f"found {name!r}, which is left out above", told=True)
                return value
        if name == "undefined":
            return Undefined()
        raise UnsaidError(node, f"found {name!r}, which is not read: neither the script nor weir knows it")

    def _template(self, node: Node, scopes: Scopes) -> Value:
        parts: list[Value] = []
        for child in named(node):
            match child.type:
                case "template_substitution":
                    parts.append(self._value(named(child)[0], scopes))
                case "escape_sequence":
                    parts.append(unescaped(child))
                case _:
                    parts.append(text_of(child))
        self._spend(node, len(parts))
        return joined(parts)

    def _spread(self, node: Node, scopes: Scopes) -> Iterator[Value]:
        if node.type != "spread_element":
            yield self._value(node, scopes)
            return
        items = self._value(named(node)[0], scopes)
        if not isinstance(items, list):
            raise UnsaidError(node, f"found {excerpt(node)!r}, expected a list that is known beforehand")
        yield from items

    def _object(self, node: Node, scopes: Scopes) -> Value:
        found: dict[str, Value] = {}
        for one in named(node):
            match one.type:
                case "pair":
                    key = part(one, "key")
                    name = text_of(key) if key.type == "property_identifier" else self._key(key, scopes)
                    found[name] = self._value(part(one, "value"), scopes)
                case "shorthand_property_identifier":
                    found[text_of(one)] = self._name(one, scopes)
                case "method_definition":
                    found[text_of(part(one, "name"))] = Function(one, scopes)
                case "spread_element":
                    more = self._value(named(one)[0], scopes)
                    if not isinstance(more, dict):
                        raise UnsaidError(one, f"found {excerpt(one)!r}, expected an object that is known beforehand")
                    found |= more
                case _:
                    raise UnsaidError(one, f"found {excerpt(one)!r} in an object, which is not read")
        return found

    def _key(self, node: Node, scopes: Scopes) -> str:
        key = as_text(self._value(named(node)[0] if node.type == "computed_property_name" else node, scopes))
        if key is None:
            raise UnsaidError(node, f"found {excerpt(node)!r}, expected a name that is known beforehand")
        return key

    def _subscript(self, node: Node, scopes: Scopes) -> Value:
        index = self._value(part(node, "index"), scopes)
        if isinstance(index, Drawn):
            items = self._value(part(node, "object"), scopes)
            if isinstance(items, list) and index.whole == (0, len(items) - 1):
                used(index, node)
                return self._one_of(items, node)
        if isinstance(index, bool) or not isinstance(index, str | int):
            raise UnsaidError(node, f"found {excerpt(node)!r}, expected a place that is known beforehand, or any one by chance")
        return member(self._value(part(node, "object"), scopes), index, node, self.call)

    def _call(self, node: Node, scopes: Scopes, field: str = "function") -> Value:
        function = self._value(part(node, field), scopes)
        given = node.child_by_field_name("arguments")
        if given is None:
            arguments: list[Value] = []
        elif given.type == "template_string":
            arguments = [self._template(given, scopes)]
        else:
            arguments = [one for argument in named(given) for one in self._spread(argument, scopes)]
        return self.call(function, arguments, node)

    def _binary(self, node: Node, scopes: Scopes) -> Value:
        operator, right = text_of(part(node, "operator")), part(node, "right")
        left = self._value(part(node, "left"), scopes)
        if operator not in ("&&", "||", "??"):
            found = binary(operator, left, self._value(right, scopes), node)
            # A loop that makes longer and longer texts is one that goes on and on.
            self._spend(node, len(found) // _TEXT_OF_A_STEP if isinstance(found, str) else 0)
            return found
        if operator == "??":
            return self._value(right, scopes) if left is None or isinstance(left, Undefined) else left
        if not isinstance(left, Condition):
            return self._value(right, scopes) if truthy(left, node) == (operator == "&&") else left
        other = self._value(right, scopes)
        if not isinstance(other, Condition):
            raise UnsaidError(node, f"found {excerpt(node)!r}, of which a step cannot check all")
        return both(left, other, node) if operator == "&&" else either(left, other, node)

    def _unary(self, node: Node, scopes: Scopes) -> Value:
        operator, value = text_of(part(node, "operator")), self._value(part(node, "argument"), scopes)
        if operator == "!":
            return negated(value, node)
        if operator in "+-" and isinstance(value, int | float):
            return -value if operator == "-" else value
        raise UnsaidError(node, f"found {excerpt(node)!r}, whose operator {operator} is not read")

    def _assignment(self, node: Node, scopes: Scopes) -> Value:
        target = node.child_by_field_name("left") or part(node, "argument")
        if target.type != "identifier":
            raise UnsaidError(node, f"found {excerpt(node)!r}, expected a name that is given a value")
        right = node.child_by_field_name("right")
        operator = "=" if node.type == "assignment_expression" else text_of(part(node, "operator"))
        other = 1 if right is None else self._value(right, scopes)
        value = other if operator == "=" else binary(operator[0], self._name(target, scopes), other, node)
        return self._assign(text_of(target), value, node, scopes)

    def _spend(self, node: Node, steps: int = 1) -> None:
        self._fuel -= steps
        if self._fuel < 0:
            raise OutOfFuelError(line_of(node))

    def _bind(self, pattern: Node, value: Value, scope: dict[str, Value]) -> None:
        if pattern.type == "identifier":
            scope[text_of(pattern)] = value
        elif pattern.type == "object_pattern" and all(one.type == "shorthand_property_identifier_pattern" for one in named(pattern)):
            for one in named(pattern):
                scope[text_of(one)] = member(value, text_of(one), one, self.call)
        else:
            raise UnsaidError(pattern, f"found {excerpt(pattern)!r}, expected a name")

    def _assign(self, name: str, value: Value, node: Node, scopes: Scopes) -> Value:
        for scope in reversed(scopes):
            if name in scope:
                scope[name] = value
                return value
        raise UnsaidError(node, f"found {name!r}, which is declared nowhere")
