"""What stands behind a dot or in brackets: properties and methods of plain values and of answers."""

import json
import re
from collections.abc import Callable, Iterator, Sequence

from tree_sitter import Node

from weir.compat.k6.source import UnsaidError, excerpt
from weir.compat.k6.values import (
    Answer,
    Builtin,
    Condition,
    Drawn,
    HeaderOf,
    JsonAt,
    Module,
    Part,
    Text,
    Undefined,
    Value,
    as_text,
    is_plain,
    joined,
)

Call = Callable[[Value, Sequence[Value], Node], Value]
_SELECTOR = re.compile(r"[\w-]+(\.[\w-]+)*")


def member(value: Value, name: str | int, node: Node, call: Call) -> Value:
    """A property of a value.

    Args:
        value: whose.
        name: which; a number in brackets.
        node: where it stands.
        call: calls a function of the script.

    Raises:
        UnsaidError: it has none that is known here.
    """
    match value:
        case Undefined(why) | (None as why):
            raise UnsaidError(node, f"found {excerpt(node)!r} of undefined" + (f": {why}" if why else ""))
        case Module():
            if name not in value.members:
                raise UnsaidError(node, f"found {value.name}.{name}, which is not read")
            return value.members[str(name)]
        case dict():
            return value.get(str(name), Undefined(f"{excerpt(node)} is not there"))
        case list() if isinstance(name, int) and 0 <= name < len(value):
            return value[name]
        case list():
            return _of_list(value, str(name), node, call)
        case str():
            return _of_text(value, str(name), node)
        case Answer():
            return _of_answer(value, str(name), node)
        case Part(kind="timings"):
            return value
        case Part(kind="headers"):
            return HeaderOf(value.answer, str(name))
        case Part(kind="body"):
            return _of_body(value, str(name), node)
        case JsonAt() if name == "toString":
            return Builtin(lambda _arguments, _node: JsonAt(value.answer, value.pointer, "text"))
        case JsonAt() if name != "length":
            return JsonAt(value.answer, f"{value.pointer}/{escaped(str(name))}")
        case Drawn() | Text() | float() | int() if name == "toString":
            return Builtin(lambda _arguments, _node: joined((value,)))
    raise UnsaidError(node, f"found {excerpt(node)!r}, which is not read")


def json_at(answer: Answer, selector: Value, node: Node) -> JsonAt:
    """`response.json(selector)`.

    Raises:
        UnsaidError: the selector is more than names and numbers with dots between them.
    """
    if isinstance(selector, Undefined):
        return JsonAt(answer, "")
    if not isinstance(selector, str) or not _SELECTOR.fullmatch(selector):
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected names with dots between them, as in json('user.id')")
    return JsonAt(answer, "".join(f"/{name}" for name in selector.split(".")))


def _of_answer(answer: Answer, name: str, node: Node) -> Value:
    if name in ("status", "body", "timings", "headers"):
        return Part(answer, name)
    if name == "json":
        return Builtin(lambda arguments, where: json_at(answer, arguments[0] if arguments else Undefined(), where))
    raise UnsaidError(node, f"found {excerpt(node)!r}; of an answer status, body, headers, json() and timings are read")


def _of_body(body: Part, name: str, node: Node) -> Value:
    def text(arguments: Sequence[Value], where: Node) -> str:
        if len(arguments) != 1 or not isinstance(arguments[0], str):
            raise UnsaidError(where, f"found {excerpt(where)!r}, expected a text that does not change")
        return arguments[0]

    match name:
        case "includes":
            return Builtin(lambda arguments, where: Condition(body.answer.step, body_contains=text(arguments, where)))
        case "indexOf":
            return Builtin(lambda arguments, where: Part(body.answer, "position", text(arguments, where)))
        case "length":
            return Part(body.answer, "length")
    raise UnsaidError(node, f"found {excerpt(node)!r}; of a body includes(), indexOf() and length are read")


def _of_text(text: str, name: str, node: Node) -> Value:
    plain: dict[str, Callable[[], str]] = {
        "toUpperCase": text.upper, "toLowerCase": text.lower, "trim": text.strip, "toString": text.__str__,
    }  # fmt: skip
    if name == "length":
        return len(text)
    if name in plain:
        return Builtin(lambda _arguments, _node: plain[name]())
    if name == "concat":
        return Builtin(lambda arguments, _node: joined((text, *arguments)))
    if name in ("includes", "startsWith", "endsWith"):
        test = {"includes": text.__contains__, "startsWith": text.startswith, "endsWith": text.endswith}[name]
        return Builtin(lambda arguments, where: test(_text(arguments, where)))
    raise UnsaidError(node, f"found {excerpt(node)!r}, a method of texts that is not read")


def _of_list(items: list[Value], name: str, node: Node, call: Call) -> Value:
    def mapped(arguments: Sequence[Value], where: Node) -> list[Value]:
        return [call(arguments[0], [item, index], where) for index, item in enumerate(items)]

    def includes(arguments: Sequence[Value], where: Node) -> Value:
        wanted = arguments[0] if arguments else Undefined()
        if isinstance(wanted, Part) and wanted.kind == "status":
            return Condition(wanted.answer.step, frozenset(item for item in items if isinstance(item, int)))
        if not is_plain(wanted):
            raise UnsaidError(where, f"found {excerpt(where)!r}, which is known only when it runs")
        return wanted in items

    match name:
        case "length":
            return len(items)
        case "map":
            return Builtin(mapped)
        case "forEach":
            return Builtin(lambda arguments, where: (mapped(arguments, where), Undefined())[1])
        case "includes":
            return Builtin(includes)
        case "join":
            return Builtin(lambda arguments, where: joined(_separated(items, _text(arguments, where) if arguments else ",")))
    raise UnsaidError(node, f"found {excerpt(node)!r}, a method of lists that is not read")


def _separated(items: Sequence[Value], separator: str) -> Iterator[Value]:
    for index, item in enumerate(items):
        yield from (separator, item) if index else (item,)


def _text(arguments: Sequence[Value], node: Node) -> str:
    text = as_text(arguments[0]) if arguments else None
    if text is None:
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected a text that does not change")
    return text


def escaped(name: str) -> str:
    """A name as it stands in a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def parsed(value: Value, node: Node) -> Value:
    """`JSON.parse`.

    Raises:
        UnsaidError: it is neither JSON nor the body of an answer.
    """
    if isinstance(value, Part) and value.kind == "body":
        return JsonAt(value.answer, "")
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected JSON or the body of an answer") from None
