"""Writes similar ASCII characters in place of characters that the output's encoding lacks. Python's codecs call
the error handler `NAME` only for missing characters, so UTF-8 output needs no extra time."""

import codecs
import sys

NAME = "weir-plain"
_PLAIN = {
    "–": "-", "—": "-", "−": "-", "µ": "u", "μ": "u", "÷": "/", "×": "x", "…": "...", "≤": "<=", "≥": ">=", "±": "+/-", "→": "->",
    "“": '"', "”": '"', "‘": "'", "’": "'", "·": "-", "•": "-", "²": "^2", "√": "sqrt ", "∞": "inf", "\u00a0": " ", "\u202f": " ",
    "─": "-", "━": "-", "│": "|", "■": "#",
}  # fmt: skip


def plain(text: str) -> str:
    """Returns the text in ASCII. Any other character becomes a similar sign, or a question mark without such a sign."""
    return "".join(character if character.isascii() else _PLAIN.get(character, "?") for character in text)


def use_plain_text() -> None:
    """Makes standard output and standard error replace characters that the encoding lacks. UTF-8 lacks no character."""
    for stream in (sys.stdout, sys.stderr):
        # A test may replace a stream by an object without `encoding` or `reconfigure`.
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
        if encoding != "utf8" and hasattr(stream, "reconfigure"):
            codecs.register_error(NAME, _replace)
            stream.reconfigure(errors=NAME)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain(error.object[error.start : error.end]), error.end
