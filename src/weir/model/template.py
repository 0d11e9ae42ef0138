"""Parses templates: texts with placeholders in double braces. Workloads, scenarios and the engine use this syntax. A
placeholder begins with `{{`, ends with the next `}}` and has no brace inside. So a placeholder can stand in JSON:
`{"id":{{int 1 9}}}`. `tests/data/templates.json` has texts that test both this module and the engine's parser."""

import re
from collections.abc import Iterator

_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
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


def _check_text(text: str) -> str:
    if "{{" in text:
        raise ValueError(f"{text[text.index('{{') :][:40]!r}: expected }}}} after {{{{, without braces between them")
    return text


def _parse_placeholder(inside: str) -> list[str]:
    words = inside.split()
    match words:
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
        case [name] if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name not in ("int", "word", "csv", "json"):
            return words
    known = "{{seq}}, {{uuid}}, {{int LOW HIGH}}, {{word LENGTH}}, {{csv FEEDER.COLUMN}}, {{json FEEDER.KEY}}"
    raise ValueError(f"unknown placeholder {{{{{inside}}}}}; expected {known} or {{{{VARIABLE}}}}")


def _is_int(text: str) -> bool:
    return bool(re.fullmatch(r"-?[0-9]+", text)) and int(text) in _INT_RANGE
