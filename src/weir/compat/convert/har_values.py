"""Finds values of a request in earlier responses of a recording, such as CSRF tokens and order numbers."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from weir.compat.convert.draft import Draft
from weir.compat.convert.har_file import Response
from weir.scenario import Extract, Header, JsonPointer, Regex

_LONGEST_TEXT = 4 << 20
_CONTEXT = 40
_META = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
"""The special characters in Rust's regular expressions."""
_ID = re.compile(r"(?=[^a-zA-Z]*\d)(?!(?:19|20)\d\d$)\d{4,18}|(?=.*\d)(?=.*[a-zA-Z])[\w-]{8,}", re.ASCII)
"""Matches a number of four or more digits that is no year, or a word of eight or more letters and digits."""
_WORD = re.compile(r"[\w-]+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_RESERVED = ("int", "word", "csv", "json", "seq", "uuid", "env")


@dataclass(slots=True)
class RecordedResponse:
    """The response to a draft, with its values."""

    draft: Draft
    response: Response
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """A dict from value to name of each header."""
    pointers: dict[str, str] = field(default_factory=dict)
    """A dict from value to JSON pointer of each text and number in the body."""
    words: set[str] = field(default_factory=set)
    """The words of the body and of the headers. A look-up here is faster than a search in the text."""

    def __post_init__(self) -> None:
        self.text = self.response.content.decode()[:_LONGEST_TEXT]
        self.words = set(_WORD.findall("\n".join([self.text, *(one.value or "" for one in self.response.headers)])))
        self.headers = {one.value: one.name for one in self.response.headers if one.value}
        if self.text.lstrip()[:1] in ("{", "["):
            try:
                for pointer, value in _list_leaves(json.loads(self.text), ""):
                    self.pointers.setdefault(value, pointer)
            except (ValueError, RecursionError):
                pass

    def has(self, value: str) -> bool:
        """Returns whether this response contains a value as a whole word."""
        words = _WORD.findall(value)
        return all(word in self.words for word in words) if words else value in self.text

    def find(self, value: str) -> Extract | None:
        """Returns the location of a value in this response. None: the value is missing or weir cannot extract it."""
        if value in self.pointers:
            return JsonPointer(self.pointers[value])
        if value in self.headers and self.headers[value].lower() != "set-cookie":
            return Header(self.headers[value])
        return None if self.pointers else self._find_in_text(value)

    def _find_in_text(self, value: str) -> Extract | None:
        at = self.text.find(value)
        if at < 0 or not re.fullmatch(r"[\w.+/=:~-]+", value, re.ASCII):
            return None
        before = re.split(r"[\n<>]", self.text[max(0, at - _CONTEXT) : at])[-1]
        pattern = _META.sub(r"\\\g<0>", before) + r"([0-9A-Za-z_.+/=:~-]+)"
        match = re.search(pattern, self.text)
        # The pattern's first match must be the recorded value. At run time, weir takes the first match.
        return Regex(pattern) if before.strip() and match is not None and match[1] == value else None


def is_id(value: str) -> bool:
    """Returns whether a value looks like an ID that the server has made."""
    return bool(_ID.fullmatch(value)) and not _DATE.match(value)


def name_variable(name: str, taken: Mapping[str, object]) -> str:
    """Returns a new name for a variable of the scenario."""
    base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "value"
    base = f"{base}_value" if base in _RESERVED else f"_{base}" if base[0].isdigit() else base
    return next(one for one in [base, *(f"{base}_{n}" for n in range(2, 10_000))] if one not in taken)


def _list_leaves(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Yields the JSON pointer and the text of each string and number."""
    match value:
        case dict():
            for key, one in value.items():
                yield from _list_leaves(one, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
        case list():
            for index, one in enumerate(value):
                yield from _list_leaves(one, f"{pointer}/{index}")
        case bool() | None:
            return
        case _:
            yield pointer, str(value)
