"""Makes the JSON Schema of types with their attributes' docstrings, for the pages about JSON."""

import inspect
import re
from collections.abc import Mapping, Set
from dataclasses import fields
from types import MappingProxyType, ModuleType
from typing import Any

from scripts.reference.tables import Schema, attribute_docs


def described(schema: Schema, *modules: ModuleType, everywhere: Mapping[str, str] = MappingProxyType({})) -> Schema:
    """Returns the schema of a type with docstrings as descriptions; in them None becomes its JSON form.

    Pydantic can read docstrings itself, but would do so at every start of weir.

    Args:
        schema: the type's schema from pydantic. It is changed.
        modules: the modules of the type and of its nested types.
        everywhere: meanings of keys that mean the same in every object, for keys without a docstring that hold no
            objects.
    """
    for name, definition in [(schema["title"], schema), *schema["$defs"].items()]:
        type_: Any = next(found for module in modules if (found := getattr(module, name, None)) is not None)
        definition["description"] = _as_json(inspect.getdoc(type_) or "")
        plain = [key for key, value in definition["properties"].items() if "$ref" not in str(value)]
        meanings = {key: everywhere[key] for key in plain if key in everywhere} | attribute_docs(type_)
        omitted = {one.name for one in fields(type_) if one.metadata.get("is_omitted")}
        _describe(definition["properties"], meanings, omitted)
    return schema


def _describe(properties: Schema, meanings: Mapping[str, str], omitted: Set[str]) -> None:
    for key, value in properties.items():
        if key in omitted:
            value["anyOf"] = [kind for kind in value["anyOf"] if kind != {"type": "null"}]
        value["description"] = _as_json(meanings.get(key, ""), "left out" if key in omitted else "null")


def _as_json(text: str, none: str = "null") -> str:
    return re.sub(r"\bNone\b", none, text)
