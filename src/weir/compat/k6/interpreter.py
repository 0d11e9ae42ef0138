"""Reads a k6 script as JavaScript would run it for one iteration of one user: what is known beforehand is calculated, the rest are symbols.

Not an interpreter of all of JavaScript: what it does not know is told with its line and left out, with what depends on it.
"""

from collections.abc import Callable, Mapping, Sequence

from tree_sitter import Node

from weir.compat.k6.expressions import Expressions, Scopes
from weir.compat.k6.literals import assigned
from weir.compat.k6.operators import truthy
from weir.compat.k6.source import UnsaidError, excerpt, named, part, text_of
from weir.compat.k6.values import (
    LONGEST_TEXT,
    Builtin,
    Function,
    Module,
    TooLongError,
    Undefined,
    Unknown,
    Unsayable,
    Value,
)

_DEEPEST_CALL = 20
_FUNCTIONS = ("function_declaration", "generator_function_declaration", "arrow_function", "function_expression")


class Interpreter(Expressions):
    """A script that is read.

    Args:
        names: what every script knows: `Math`, `JSON`, `__ENV`.
        module_of: gives what can be imported from somewhere, by name.
        one_of: gives one of a list by chance.
        said: is told of what cannot be said: the node and a sentence.
    """

    def __init__(
        self,
        names: Mapping[str, Value],
        module_of: Callable[[str], Mapping[str, Value]],
        one_of: Callable[[Value, Node], Value],
        said: Callable[[Node, str], None],
    ) -> None:
        super().__init__(one_of)
        self.exports: dict[str, Value] = {}
        self._scope = dict(names)
        self._module_of = module_of
        self._said = said
        self._depth = 0

    def run(self, program: Node) -> None:
        """Reads the script itself: imports, constants, options, functions."""
        self._statements(named(program), (self._scope,))

    def call(self, function: Value, arguments: Sequence[Value], node: Node) -> Value:
        """What a function gives for arguments.

        Raises:
            UnsaidError: it is none, or cannot be said.
        """
        match function:
            case Builtin() | Module(call=Builtin()):
                builtin = function if isinstance(function, Builtin) else function.call
                assert builtin is not None
                return builtin.call(arguments, node)
            case Function():
                value = self._called(function, arguments, node)
                if isinstance(value, Unknown):
                    raise UnsaidError(node, f"found {excerpt(node)!r}, which gives what is left out", told=True)
                return value
        raise UnsaidError(node, f"found {excerpt(node)!r}, which is not read: it is no function that weir knows")

    def _called(self, function: Function, arguments: Sequence[Value], node: Node) -> Value:
        if self._depth >= _DEEPEST_CALL:
            raise UnsaidError(node, f"found {excerpt(node)!r}, a function within more than {_DEEPEST_CALL} others")
        taken = function.node.child_by_field_name("parameters") or function.node.child_by_field_name("parameter")
        scope: dict[str, Value] = {}
        given = list(arguments)
        for index, parameter in enumerate([] if taken is None else named(taken) if taken.type == "formal_parameters" else [taken]):
            value = given[index] if index < len(given) else Undefined()
            if parameter.type == "assignment_pattern":
                if isinstance(value, Undefined):
                    value = self._value(part(parameter, "right"), (*function.scopes, scope))
                parameter = part(parameter, "left")
            self._bind(parameter, value, scope)
        body = part(function.node, "body")
        self._depth += 1
        try:
            if body.type != "statement_block":
                return self._value(body, (*function.scopes, scope))
            self._statements(named(body), (*function.scopes, scope))
        except _ReturnedError as returned:
            return returned.value
        finally:
            self._depth -= 1
        return Undefined()

    def _statements(self, nodes: Sequence[Node], scopes: Scopes) -> None:
        for node in nodes:
            declared = node.child_by_field_name("declaration") if node.type == "export_statement" else node
            if declared is not None and declared.type in _FUNCTIONS:
                scopes[-1][text_of(part(declared, "name"))] = Function(declared, scopes)
        for node in nodes:
            try:
                self._statement(node, scopes)
            except TooLongError:
                self._leave_out(UnsaidError(node, f"found a text of more than {LONGEST_TEXT:,} characters"), node, scopes)
            except UnsaidError as unsaid:
                self._leave_out(unsaid, node, scopes)
                if node.type == "return_statement":
                    raise _ReturnedError(Unknown()) from None

    def _leave_out(self, unsaid: UnsaidError, node: Node, scopes: Scopes) -> None:
        if not unsaid.told:
            self._said(unsaid.node, unsaid.what)
        for name in assigned(node):
            if not any(name in scope for scope in scopes):
                scopes[-1][name] = Unknown()
            elif node.type == "expression_statement":
                self._assign(name, Unknown(), node, scopes)

    def _statement(self, node: Node, scopes: Scopes) -> None:
        self._spend(node)
        match node.type:
            case "import_statement":
                self._import(node, scopes[-1])
            case "export_statement":
                self._export(node, scopes)
            case "lexical_declaration" | "variable_declaration":
                for declarator in named(node):
                    value = declarator.child_by_field_name("value")
                    found = Undefined() if value is None else self._value(value, scopes)
                    self._bind(part(declarator, "name"), found, scopes[-1])
            case "expression_statement":
                for expression in named(node):
                    self._value(expression, scopes)
            case "statement_block":
                self._statements(named(node), (*scopes, {}))
            case "if_statement":
                condition = part(node, "condition")
                alternative = node.child_by_field_name("alternative")
                if truthy(self._value(condition, scopes), condition):
                    self._statements([part(node, "consequence")], scopes)
                elif alternative is not None:
                    self._statements(named(alternative), scopes)
            case "for_statement":
                self._for(node, scopes)
            case "for_in_statement":
                self._for_each(node, scopes)
            case "return_statement":
                given = named(node)
                raise _ReturnedError(self._value(given[0], scopes) if given else Undefined())
            case "function_declaration" | "empty_statement" | "comment" | "hash_bang_line":
                pass
            case _:
                raise UnsaidError(node, f"found {excerpt(node)!r}: a {node.type.replace('_', ' ')} is not read")

    def _import(self, node: Node, scope: dict[str, Value]) -> None:
        source = str(self._value(part(node, "source"), ()))
        members = self._module_of(source)
        missing = Unsayable(f"from {source!r}, which is not read")
        clause = next((child for child in named(node) if child.type == "import_clause"), None)
        for one in [] if clause is None else named(clause):
            match one.type:
                case "identifier":
                    scope[text_of(one)] = members.get("default", missing)
                case "namespace_import":
                    scope[text_of(named(one)[0])] = members.get("default", Module(source, dict(members)))
                case "named_imports":
                    for specifier in named(one):
                        name = text_of(part(specifier, "name"))
                        alias = specifier.child_by_field_name("alias")
                        scope[name if alias is None else text_of(alias)] = members.get(name, missing)

    def _export(self, node: Node, scopes: Scopes) -> None:
        declaration, value = node.child_by_field_name("declaration"), node.child_by_field_name("value")
        is_default = any(child.type == "default" for child in node.children)
        if declaration is not None:
            self._statement(declaration, scopes)
            for name in assigned(declaration):
                self.exports["default" if is_default else name] = scopes[-1][name]
        elif value is not None:
            self.exports["default"] = self._value(value, scopes)
        elif node.child_by_field_name("source") is not None:
            raise UnsaidError(node, f"found {excerpt(node)!r}: other files are not read")
        else:
            for specifier in (one for clause in named(node) for one in named(clause)):
                own, alias = part(specifier, "name"), specifier.child_by_field_name("alias")
                self.exports[text_of(own if alias is None else alias)] = self._value(own, scopes)

    def _for(self, node: Node, scopes: Scopes) -> None:
        scopes = (*scopes, {})
        self._statement(part(node, "initializer"), scopes)
        condition, increment = part(node, "condition"), node.child_by_field_name("increment")
        while truthy(self._value(condition, scopes), condition):
            self._statements([part(node, "body")], scopes)
            if increment is not None:
                self._value(increment, scopes)

    def _for_each(self, node: Node, scopes: Scopes) -> None:
        items = self._value(part(node, "right"), scopes)
        if isinstance(items, dict) and text_of(part(node, "operator")) == "in":
            items = list(items)
        if not isinstance(items, list):
            raise UnsaidError(node, f"found {excerpt(node)!r}, expected a list that is known beforehand")
        for item in items:
            scope: dict[str, Value] = {}
            self._bind(part(node, "left"), item, scope)
            self._statements([part(node, "body")], (*scopes, scope))


class _ReturnedError(Exception):
    """How a function ends at its `return`."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value
