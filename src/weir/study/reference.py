"""Writes docs/reference/study.md from the types that read study files: `python -m weir.study.reference` (`make reference`)."""

import json
from typing import Any

from weir.study.schema import json_schema

_HEAD = """\
# The study file

<!-- Made by `make reference` from the types in src/weir/study. Change the docstrings there. -->

A study is a question as a TOML file: `weir run FILE` answers it, `weir study check FILE` says beforehand what that takes. How to write one:
[guides/studies.md](../guides/studies.md). Unknown keys are errors. For editors: `weir study schema > study.schema.json`, and
`#:schema ./study.schema.json` as the study's first line.

- A **list of numbers** is a number, a list, or numbers and ranges as text: `50`, `[4, 50, 100]`, `"4, 50..500 step 50"` (a range's end
  belongs to it; without a step it is 1; at most 1,000 numbers).
- A **profile** is an amount over time, linear between its points: `"0s:0,30s:500,60s:0"`.
"""
_TAIL = """\
## `[scales.NAME]`

Any of the tables above below a scale's name: `[scales.quick.load]` with `duration_s = 6`. `weir run STUDY --scale NAME` takes them. A key
takes the place of the same key; a list of tables (`[[scales.quick.override]]`) is added to the study's own, so that a later override
wins; any other list takes the place of the whole list. Without `--scale` the scale is `evidence`, else the first.
"""


def reference() -> str:
    """The page."""
    schema = json_schema()
    parts = [_HEAD, "## The file itself\n", _rows(schema, schema["$defs"], top=True)]
    for key, value in schema["properties"].items():
        below, heading = _table_of(key, value)
        if below is not None and key != "scales":
            table = schema["$defs"][below]
            parts += [f"## `{heading}`\n", f"{table.get('description', '')}\n", _rows(table, schema["$defs"])]
    return "\n".join([*parts, _TAIL])


def _table_of(key: str, value: dict[str, Any]) -> tuple[str | None, str]:
    """The table that a key of the file holds, or tables of one kind, and how its heading is written; None where it holds a value."""
    below = value.get("additionalProperties")
    for holder, heading in ((value, f"[{key}]"), (below, f"[{key}.NAME]"), (value.get("items"), f"[[{key}]]")):
        if isinstance(holder, dict) and "$ref" in holder:
            return str(holder["$ref"]).rpartition("/")[2], heading
    return None, key


def _rows(table: dict[str, Any], definitions: dict[str, Any], *, top: bool = False) -> str:
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    required = table.get("required", [])
    for key, value in table["properties"].items():
        if top and _table_of(key, value)[0] is not None:
            continue
        default = "required" if key in required else f"`{json.dumps(value['default'])}`" if "default" in value else "–"
        meaning = value.get("description", "").replace("\n", " ").replace("|", "\\|")
        lines.append(f"| `{key}` | {_kind(value, definitions)} | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _kind(value: dict[str, Any], definitions: dict[str, Any]) -> str:
    if "$ref" in value:
        return "a table"
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return " or ".join(f"`{json.dumps(one)}`" for one in value["enum"])
    if "anyOf" in value:
        kinds = value["anyOf"]
        if any(str(one.get("description", "")).startswith("Numbers and ranges") for one in kinds):
            return "a list of numbers or profiles" if "anyOf" in kinds[0] else "a list of numbers"
        return " or ".join(dict.fromkeys(_kind(one, definitions) for one in kinds))
    match value.get("type"):
        case "array":
            items = value.get("items", {})
            return f"a list of {_plural(_kind(items, definitions))}" if items else "a list"
        case "object":
            below = value.get("additionalProperties")
            if isinstance(below, dict) and len(below.get("anyOf", [])) > 1 and "items" in below["anyOf"][-1]:
                return "a table of values or lists of them" if "$ref" not in below else "a table"
            return f"a table of {_plural(_kind(below, definitions))}" if isinstance(below, dict) else "a table"
        case "integer":
            return "a whole number" + _bounds(value)
        case "number":
            return "a number" + _bounds(value)
        case "boolean":
            return "true or false"
        case "string":
            return "text"
    return "anything"


def _plural(kind: str) -> str:
    """'a number above 0' as 'numbers above 0'."""
    if kind.startswith("`"):
        return kind
    noun, *rest = kind.removeprefix("a ").split(" ", 1)
    if noun == "whole":
        return f"whole {_plural(rest[0])}"
    return " ".join([noun if noun == "text" else f"{noun}s", *rest])


def _bounds(value: dict[str, Any]) -> str:
    if "minimum" in value and "maximum" in value:
        return f" from {value['minimum']:g} to {value['maximum']:g}"
    if "minimum" in value:
        return f" from {value['minimum']:g} on"
    return f" above {value['exclusiveMinimum']:g}" if "exclusiveMinimum" in value else ""


if __name__ == "__main__":
    print(reference(), end="")
