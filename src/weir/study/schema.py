"""Builds the JSON Schema of study files for editors and the reference. A scale or an `[[override]]` accepts the same
keys as the changed tables, but requires no key."""

import copy
from typing import Any

from weir.study.file import METHOD_KEYS, StudyFile
from weir.toml_file import build_schema

_REF = "#/$defs/"
_PARTIAL = "Partial"


def build_json_schema() -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of study files."""
    schema = build_schema(StudyFile)
    definitions: dict[str, Any] = schema["$defs"]
    top = {key: value for key, value in schema.items() if key != "$defs"}
    for name, definition in [*definitions.items(), ("StudyFile", top)]:
        partial = _retarget(copy.deepcopy(definition))
        partial.pop("required", None)
        definitions[_PARTIAL + name] = partial
    changed = definitions["Override"]["properties"]
    changed["load"] |= {"$ref": f"{_REF}{_PARTIAL}LoadTable"}
    changed["load"].pop("additionalProperties", None)
    method = definitions["Method"]["properties"]
    changed["method"] |= {"properties": {key: method[key] for key in METHOD_KEYS}, "additionalProperties": False}
    definitions[f"{_PARTIAL}Override"] = definitions["Override"]
    schema["properties"]["scales"] = {
        "type": "object",
        "description": "Named scales. A scale may have any table above. Keys of the scale replace keys of the file.",
        "additionalProperties": {"$ref": f"{_REF}{_PARTIAL}StudyFile"},
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _retarget(value: Any) -> Any:
    """Returns a schema whose nested tables require no key. A list's entries stay unchanged: they must be complete."""
    if isinstance(value, list):
        return [_retarget(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "array":
        return value
    found = {key: one if key == "required" else _retarget(one) for key, one in value.items()}
    if "$ref" in found:
        found["$ref"] = f"{_REF}{_PARTIAL}{found['$ref'].removeprefix(_REF)}"
    return found
