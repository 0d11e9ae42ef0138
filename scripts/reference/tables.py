"""Parts that the pages share: Markdown tables, and sections made from a JSON Schema of pydantic."""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Schema = dict[str, Any]

_PARTIAL = "Partial"
"""Prefix of definitions that repeat another definition without its required keys (`weir.study.schema`)."""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table; in cells a line break becomes a space and a bar is escaped."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(headings), "|" + "---|" * len(headings), *map(line, rows)]) + "\n"


def anchor(heading: str) -> str:
    """Returns the anchor of a heading, as links to it end.

    >>> anchor("`[variants.NAME]`")
    '#variantsname'
    """
    return "#" + "".join(
        character for character in heading.lower() if character.isalnum() or character in "-_ "
    ).replace(" ", "-")


def attribute_docs(of: type) -> dict[str, str]:
    """Returns docstrings by name for the attributes of a class or the members of an enumeration, including those of
    bases."""
    found: dict[str, str] = {}
    for base in reversed(of.__mro__):
        if base.__module__ == "builtins":
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(definition, ast.ClassDef)
        for attribute, following in zip(definition.body, definition.body[1:], strict=False):
            match attribute, following:
                case (
                    (ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)])),
                    ast.Expr(ast.Constant(str(text))),
                ):
                    found[name] = inspect.cleandoc(text).replace("\n", " ")
    return found


@dataclass
class Sections:
    """The sections of a page about a type: its own keys, then the keys of every table in it.

    A table that stands in several places is described at the first; the other places link to it.
    """

    definitions: Schema
    """The schema's `$defs`."""
    style: Literal["toml", "json"]
    """Style of headings; in "json" a table is called an object."""
    level: int = 2
    """Level of the headings."""
    _headings: dict[str, str] = field(default_factory=dict)
    """Headings by name of the definition."""

    def of(self, schema: Schema, title: str) -> str:
        """Returns the text of all sections.

        Args:
            schema: the type's own schema.
            title: heading of the type's own keys.
        """
        return "\n".join(self._section(schema, title, ()))

    def _section(self, schema: Schema, heading: str, path: tuple[str, ...]) -> Iterator[str]:
        parts = list(self._below(schema, path))
        for definition, below in parts:
            self._headings[definition] = self._heading(below)
        required = schema.get("required", [])
        yield f"{'#' * self.level} {heading}\n"
        if path:
            yield f"{schema.get('description', '')}\n"
        yield table(
            ["key", "value", "default", "meaning"] if self.style == "toml" else ["key", "value", "meaning"],
            (self._row(key, value, is_required=key in required) for key, value in schema["properties"].items()),
        )
        for definition, below in parts:
            yield from self._section(self.definitions[definition], self._heading(below), below)

    def _below(self, schema: Schema, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yields the tables in a type that have no section yet, with their paths."""
        seen = set(self._headings)
        for key, value in schema["properties"].items():
            held = _held(value)
            if held is not None and held.definition not in seen and not held.definition.startswith(_PARTIAL):
                seen.add(held.definition)
                yield held.definition, (*path, key, *_STEPS[held.how])

    def _heading(self, path: tuple[str, ...]) -> str:
        is_list = path[-1] == _EACH
        name = ".".join(part for part in path if part != _EACH)
        if self.style == "json":
            return f"`{name}[]`" if is_list else f"`{name}`"
        return f"`[[{name}]]`" if is_list else f"`[{name}]`"

    def _row(self, key: str, value: Schema, *, is_required: bool) -> list[str]:
        meaning = value.get("description", "")
        held = _held(value)
        if not meaning and held is not None:
            meaning = self.definitions[held.definition].get("description", "")
        if self.style == "json":
            return [f"`{key}`", self._kind(value), meaning]
        default = "required" if is_required else f"`{json.dumps(value['default'])}`" if "default" in value else "–"
        return [f"`{key}`", self._kind(value), default, meaning]

    @property
    def _noun(self) -> str:
        return "table" if self.style == "toml" else "object"

    def _kind(self, value: Schema) -> str:
        """Returns the kind of a key's value in words."""
        held = _held(value)
        if held is not None:
            words = {
                "one": _with_article(self._noun),
                "listed": f"a list of {self._noun}s",
                "named": f"{self._noun}s by name",
            }[held.how]
            heading = self._headings.get(held.definition)
            words = f"[{words}]({anchor(heading)})" if heading else words
            return f"{words} or null" if held.is_nullable else words
        if "const" in value:
            return f"`{json.dumps(value['const'])}`"
        if "enum" in value:
            return " or ".join(f"`{json.dumps(one)}`" for one in value["enum"])
        if "anyOf" in value:
            kinds = value["anyOf"]
            if any(str(one.get("description", "")).startswith("Numbers and ranges") for one in kinds):
                return "a list of numbers or profiles" if "anyOf" in kinds[0] else "a list of numbers"
            return " or ".join(dict.fromkeys(self._kind(one) for one in kinds))
        match value.get("type"):
            case "array":
                items = value.get("items", {})
                return f"a list of {_plural(self._kind(items))}" if items else "a list"
            case "object":
                below = value.get("additionalProperties")
                if isinstance(below, dict) and len(below.get("anyOf", [])) > 1 and "items" in below["anyOf"][-1]:
                    return "a table of values or lists of them"
                what = _with_article(self._noun)
                return f"{what} of {_plural(self._kind(below))}" if isinstance(below, dict) else what
            case "integer":
                return "a whole number" + _bounds(value)
            case "number":
                return "a number" + _bounds(value)
            case "boolean":
                return "true or false"
            case "string":
                return "text"
            case "null":
                return "null"
        return "anything"


_EACH = "[]"
"""Step of a path into the items of a list."""
_STEPS: dict[str, tuple[str, ...]] = {"one": (), "listed": (_EACH,), "named": ("NAME",)}


@dataclass(frozen=True)
class _Held:
    """A table that a key holds, or several tables of one kind."""

    definition: str
    how: Literal["one", "listed", "named"]
    is_nullable: bool = False


def _held(value: Schema) -> _Held | None:
    others = [one for one in value.get("anyOf", []) if one != {"type": "null"}]
    if len(others) == 1:
        inner = _held(others[0])
        return None if inner is None else _Held(inner.definition, inner.how, is_nullable=len(value["anyOf"]) > 1)
    if "$ref" in value:
        return _Held(_name(value), "one")
    for key, how in _HOLDERS:
        holder = value.get(key)
        if isinstance(holder, dict) and "$ref" in holder:
            return _Held(_name(holder), how)
    return None


_HOLDERS: tuple[tuple[str, Literal["listed", "named"]], ...] = (("items", "listed"), ("additionalProperties", "named"))


def _name(value: Schema) -> str:
    return str(value["$ref"]).rpartition("/")[2]


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _plural(kind: str) -> str:
    """Returns the plural of a kind: 'a number above 0' becomes 'numbers above 0'."""
    if kind.startswith(("`", "[")) or kind == "anything":
        return kind
    noun, *rest = kind.removeprefix("an ").removeprefix("a ").split(" ", 1)
    if noun == "whole":
        return f"whole {_plural(rest[0])}"
    return " ".join([noun if noun == "text" else f"{noun}s", *rest])


def _bounds(value: Schema) -> str:
    if "minimum" in value and "maximum" in value:
        return f" from {value['minimum']:g} to {value['maximum']:g}"
    if "minimum" in value:
        return f" from {value['minimum']:g} on"
    return f" above {value['exclusiveMinimum']:g}" if "exclusiveMinimum" in value else ""
