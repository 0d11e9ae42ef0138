"""The JSON Schema of types with the docstrings of their attributes, for the pages on JSON."""

import inspect
import re
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from scripts.reference.tables import Schema, attribute_docs


def described(schema: Schema, *modules: ModuleType, everywhere: Mapping[str, str] = MappingProxyType({})) -> Schema:
    """The schema of a type with its docstrings, which say of None what JSON has for it.

    Pydantic could read them itself, but would do so whenever weir starts.

    Args:
        schema: the type's, as pydantic makes it. It is changed.
        modules: where the type and those below it are.
        everywhere: what keys mean that mean the same wherever they stand, for those without a docstring that are no
            objects.
    """
    for name, definition in [(schema["title"], schema), *schema["$defs"].items()]:
        type_: Any = next(found for module in modules if (found := getattr(module, name, None)) is not None)
        definition["description"] = _as_json(inspect.getdoc(type_) or "")
        plain = [key for key, value in definition["properties"].items() if "$ref" not in str(value)]
        meanings = {key: everywhere[key] for key in plain if key in everywhere} | attribute_docs(type_)
        _describe(definition["properties"], meanings, getattr(type_, "model_fields", {}))
    return schema


def _describe(properties: Schema, meanings: Mapping[str, str], fields: Mapping[str, Any]) -> None:
    aliases = {field.alias: key for key, field in fields.items() if field.alias}
    for key, value in properties.items():
        name = aliases.get(key, key)
        is_left_out = name in fields and fields[name].exclude_if is not None
        if is_left_out:
            value["anyOf"] = [kind for kind in value["anyOf"] if kind != {"type": "null"}]
        value["description"] = _as_json(meanings.get(name, ""), "left out" if is_left_out else "null")


def _as_json(text: str, none: str = "null") -> str:
    return re.sub(r"\bNone\b", none, text)
