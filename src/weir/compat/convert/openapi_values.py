"""Finds values for parameters and bodies in an OpenAPI file (2, 3.0, 3.1), and writes the values in the file's style. A
value comes from `example`, `examples`, `const`, `default` or `enum`. weir invents no value."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

MISSING = object()
"""No value: the file has no example."""
_DEEPEST = 30
_SEPARATORS = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "ssv": "%20", "tsv": "%09", "pipes": "%7C"}


class Placeholder(str):
    """A placeholder of weir. weir does not percent-encode placeholders."""

    __slots__ = ()


class Document:
    """An OpenAPI file."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content
        self.other_files: dict[str, None] = {}
        """References to other files. weir does not read those files."""

    def resolve(self, value: Any) -> dict[str, Any]:
        """Returns the table at a `$ref`. Returns an empty table if the table is missing or is in another file."""
        for _ in range(_DEEPEST):
            if not isinstance(value, dict):
                return {}
            if not isinstance(reference := value.get("$ref"), str):
                return value
            value = self._follow(reference)
        return {}

    def _follow(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            self.other_files[reference] = None
            return {}
        found: Any = self.content
        for part in reference[2:].split("/"):
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def find_value(self, holder: Any) -> Any:
        """Returns the value of a parameter or of a media type; `MISSING` if the file has no value."""
        holder = self.resolve(holder)
        found = self._find_example(holder)
        if found is MISSING and "schema" in holder:
            found = self._find_in_schema(holder["schema"], ())
        if found is MISSING and isinstance(media := holder.get("content"), dict) and media:
            found = self.find_value(next(iter(media.values())))
            return found if found is MISSING else json.dumps(found)
        return found if found is not MISSING or "schema" in holder else self._find_in_schema(holder, ())

    def _find_example(self, holder: Mapping[str, Any]) -> Any:
        for key in ("example", "x-example", "const", "default"):
            if key in holder:
                return holder[key]
        examples = holder.get("examples")
        if isinstance(examples, list) and examples:
            return examples[0]
        for one in examples.values() if isinstance(examples, dict) else ():
            if "value" in (found := self.resolve(one)):
                return found["value"]
        choices = holder.get("enum")
        return choices[0] if isinstance(choices, list) and choices else MISSING

    def _find_in_schema(self, schema: Any, within: tuple[int, ...]) -> Any:
        """Returns an example of a schema. `within`: the enclosing schemas. A schema inside itself has no value."""
        schema = self.resolve(schema)
        if id(schema) in within or len(within) > _DEEPEST:
            return MISSING
        within = (*within, id(schema))
        if (found := self._find_example(schema)) is not MISSING:
            return found
        for key in ("oneOf", "anyOf"):
            for one in as_list(schema.get(key)):
                if (found := self._find_in_schema(one, within)) is not MISSING:
                    return found
        if parts := [self._find_in_schema(one, within) for one in as_list(schema.get("allOf"))]:
            tables = [part for part in parts if isinstance(part, dict)]
            own = self._find_object(schema, within) if "properties" in schema else {}
            if len(tables) < len(parts) or own is MISSING:
                return parts[0] if len(parts) == 1 and own == {} else MISSING
            return {key: one for table in [*tables, own] for key, one in table.items()}
        if "items" in schema:
            found = self._find_in_schema(schema["items"], within)
            return found if found is MISSING else [found]
        return self._find_object(schema, within) if "properties" in schema else MISSING

    def _find_object(self, schema: Mapping[str, Any], within: tuple[int, ...]) -> Any:
        """Returns an object with all required properties, and with the optional properties that have an example."""
        found: dict[str, Any] = {}
        needed = set(map(str, as_list(schema.get("required"))))
        for name, property_ in as_table(schema["properties"]).items():
            value = self._find_in_schema(property_, within)
            if value is not MISSING and (name in needed or "example" in self.resolve(property_)):
                found[name] = value
        return found if found and needed <= found.keys() else MISSING


def as_table(value: Any) -> dict[str, Any]:
    """Returns the value if it is a table, else an empty table."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Returns the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def has_file(document: Document, schema: Any) -> bool:
    """Returns whether a form has a field for a file."""
    properties = as_table(document.resolve(schema).get("properties"))
    fields = [document.resolve(one) for one in properties.values()]
    fields += [document.resolve(one.get("items")) for one in fields]
    return any(one.get("format") == "binary" or "contentMediaType" in one for one in fields)


def write_path(parameter: Mapping[str, Any], value: Any) -> str:
    """Returns a value for a path. `style` and `explode` of the parameter set the form."""
    style, explode = parameter.get("style", "simple"), parameter.get("explode", False)
    before = {"label": ".", "matrix": ";"}.get(style, "")
    between = before if before and explode else ","
    equals = "=" if explode else ","
    match value:
        case list():
            parts = [_quote(one) for one in value]
            parts = [f"{parameter['name']}={one}" for one in parts] if style == "matrix" and explode else parts
        case dict():
            parts = [f"{_quote(key)}{equals}{_quote(one)}" for key, one in value.items()]
        case _:
            parts = [_quote(value)]
    is_named = style == "matrix" and not (explode and isinstance(value, list | dict))
    return before + (f"{parameter['name']}=" if is_named else "") + between.join(parts)


def write_query(parameter: Mapping[str, Any], value: Any) -> str:
    """Returns `NAME=VALUE` pairs for a query or a form, in the form set by `style`, `explode` or `collectionFormat`."""
    name, style = parameter["name"], parameter.get("style", parameter.get("collectionFormat", "form"))
    explode = parameter.get("explode", style in ("form", "multi")) or style == "multi"
    separator = _SEPARATORS.get(style, ",")
    match value:
        case list() if explode:
            return "&".join(f"{_quote(name)}={_quote(one)}" for one in value)
        case list():
            return f"{_quote(name)}={separator.join(map(_quote, value))}"
        case dict() if explode and style != "deepObject":
            return "&".join(f"{_quote(key)}={_quote(one)}" for key, one in value.items())
        case dict() if style != "deepObject":
            return f"{_quote(name)}={separator.join(f'{_quote(k)},{_quote(v)}' for k, v in value.items())}"
    return "&".join(f"{_quote(key)}={_quote(one)}" for key, one in flatten(name, value))


def write_text(value: Any) -> str:
    """Returns a value for a header or for a field of a multipart form."""
    match value:
        case list():
            return ",".join(map(write_text, value))
        case dict():
            return json.dumps(value)
        case bool():
            return "true" if value else "false"
    return "" if value is None else value if isinstance(value, Placeholder) else str(value)


def flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the fields of a nested value in the notation that most servers read: `a[b]=1` and `a[]=1`."""
    match value:
        case dict():
            for key, one in value.items():
                yield from flatten(f"{name}[{key}]" if name else str(key), one)
        case list():
            for one in value:
                yield from flatten(f"{name}[]", one) if isinstance(one, dict | list) else [(name, one)]
        case _:
            yield name, value


def _quote(value: Any) -> str:
    return value if isinstance(value, Placeholder) else quote(write_text(value), safe="")
