"""Parses templates: texts with placeholders in double braces. Workloads, scenarios and the engine use this syntax. A
placeholder begins with `{{`, ends with the next `}}` and has no brace inside. So a placeholder can stand in JSON:
`{"id":{{int 1 9}}}`. `tests/data/templates.json` has texts that test both this module and the engine's parser."""

import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from weir.model.errors import UsageError

_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENVIRONMENT = re.compile(r"\{\{\s*env\s+([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_LONGEST_WORD = 1 << 20
_INT_RANGE = range(-(1 << 63), 1 << 63)


def pieces(template: str) -> Iterator[str | list[str]]:
    """Yields the parts of a template in order: a string for a text, a list of words for a placeholder. Raises
    ValueError if a placeholder is unknown, has wrong arguments or is not closed."""
    end = 0
    for match in _PLACEHOLDER.finditer(template):
        yield _check_text(template[end : match.start()])
        yield _parse_placeholder(match.group(1))
        end = match.end()
    yield _check_text(template[end:])


def fill_environment(scenario: Any, place: str = "scenario") -> Any:
    """Returns the scenario of a plan with values of environment variables in place of `{{env NAME}}`. Only the engine
    gets these values; run files do not. Raises UsageError that names every missing variable."""
    missing: dict[str, list[str]] = {}

    def fill(value: Any, key: str) -> Any:
        if isinstance(value, list):
            return [fill(one, f"{key}[{index}]") for index, one in enumerate(value)]
        if isinstance(value, dict):
            return {name: fill(one, f"{key}.{name}" if key else name) for name, one in value.items()}
        return _ENVIRONMENT.sub(lambda match: read(match[1], key), value) if isinstance(value, str) else value

    def read(name: str, key: str) -> str:
        value = os.environ.get(name)
        if value is None or "{{" in value:
            missing.setdefault(name, []).append(key)
            return ""
        return quote(value, safe="") if key.endswith(".path") else value

    filled = fill(scenario, "")
    if missing:
        found = "\n".join(f"  {name}: {', '.join(keys[:3])}" for name, keys in missing.items())
        problem = f"{place}: found {{{{env NAME}}}}, expected these environment variables, with values without {{{{:"
        raise UsageError(f"{problem}\n{found}", hint=f"export {' '.join(f'{name}=...' for name in missing)}")
    return filled


def _check_text(text: str) -> str:
    if "{{" in text:
        raise ValueError(f"{text[text.index('{{') :][:40]!r}: expected }}}} after {{{{, without braces between them")
    return text


def _parse_placeholder(inside: str) -> list[str]:
    words = inside.split()
    match words:
        case ["env", name] if _NAME.fullmatch(name):
            return words
        case ["int", low, high] if _is_int(low) and _is_int(high) and int(low) <= int(high):
            return words
        case ["word", length] if _is_int(length) and 0 < int(length) <= _LONGEST_WORD:
            return words
        case [("seq" | "uuid")]:
            return words
        case ["csv" | "json", *_] if (
            re.fullmatch(r"[^.]+\..+", inside.split(maxsplit=1)[-1].strip()) and len(words) > 1
        ):
            return words
        case [name] if _NAME.fullmatch(name) and name not in ("int", "word", "csv", "json"):
            return words
    known = (
        "{{seq}}, {{uuid}}, {{int LOW HIGH}}, {{word LENGTH}}, {{csv FEEDER.COLUMN}}, {{json FEEDER.KEY}}, {{env NAME}}"
    )
    raise ValueError(f"unknown placeholder {{{{{inside}}}}}; expected {known} or {{{{VARIABLE}}}}")


def _is_int(text: str) -> bool:
    return bool(re.fullmatch(r"-?[0-9]+", text)) and int(text) in _INT_RANGE
