"""What weir prints, for a terminal or a pipe whose encoding lacks some of it: readable ASCII in place of a complaint.

Known by the name of `NAME` to Python's codecs, which ask only for characters that an encoding lacks: whoever has UTF-8 pays nothing.
"""

import codecs
import sys

NAME = "weir-plain"
_PLAIN = {
    "–": "-", "—": "-", "−": "-", "µ": "u", "μ": "u", "÷": "/", "×": "x", "…": "...", "≤": "<=", "≥": ">=", "±": "+/-", "→": "->",
    "“": '"', "”": '"', "‘": "'", "’": "'", "·": "-", "•": "-", "²": "^2", "√": "sqrt ", "∞": "inf", "\u00a0": " ", "\u202f": " ",
    "─": "-", "━": "-", "│": "|", "■": "#",
}  # fmt: skip


def plain(text: str) -> str:
    """`text` without characters that ASCII lacks: what there is a sign for by that sign, all else as a question mark."""
    return "".join(character if character.isascii() else _PLAIN.get(character, "?") for character in text)


def use_plain_text() -> None:
    """From here on standard output and error write what their encoding lacks as `plain` does. Those in UTF-8 stay as they are."""
    for stream in (sys.stdout, sys.stderr):
        # None where the file descriptor was closed; without `reconfigure` where somebody put another object there.
        if (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8" and hasattr(stream, "reconfigure"):
            codecs.register_error(NAME, _replaced)
            stream.reconfigure(errors=NAME)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain(error.object[error.start : error.end]), error.end
