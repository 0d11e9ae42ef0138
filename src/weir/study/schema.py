"""The JSON Schema of study files, from the types that read them: for editors, and for the reference.

What overrides something (a scale, `[[override]]`) has the same keys as what it overrides, none of them required.
"""

import copy
from typing import Any

from weir.study.file import StudyFile
from weir.study.override import METHOD_KEYS
from weir.toml_file import schema_of

_REF = "#/$defs/"
_PARTIAL = "Partial"


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12)."""
    schema = schema_of(StudyFile)
    definitions: dict[str, Any] = schema["$defs"]
    top = {key: value for key, value in schema.items() if key != "$defs"}
    for name, definition in [*definitions.items(), ("StudyFile", top)]:
        partial = _retargeted(copy.deepcopy(definition))
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
        "description": "Named scales, each with any of the tables above: what it says takes the place of what stands there.",
        "additionalProperties": {"$ref": f"{_REF}{_PARTIAL}StudyFile"},
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _retargeted(value: Any) -> Any:
    """References to tables made into references to the same without required keys; those in lists stay whole: each is a new one."""
    if isinstance(value, list):
        return [_retargeted(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "array":
        return value
    return {
        key: f"{_REF}{_PARTIAL}{one.removeprefix(_REF)}" if key == "$ref" else one if key == "required" else _retargeted(one)
        for key, one in value.items()
    }
