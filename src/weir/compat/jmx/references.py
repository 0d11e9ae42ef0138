"""Finds the references (`${...}`) in the texts of a test plan. A reference becomes a placeholder of weir's templates if
its value changes from request to request."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_ESCAPED = "$,\\"
_HEAD = re.compile(r"\$\{([^}(${]*)[}(]")
_DEEPEST = 50


class Placeholder(NamedTuple):
    """A value that changes from request to request."""

    template: str
    """The placeholder in weir's templates, without braces: `int 1 9`."""
    written: str
    """The reference in the test plan: `${__Random(1,9)}`."""
    column: tuple[str, str] | None = None
    """The data set and the column with the value. None: the value is not from a data set."""


Piece = str | Placeholder
Text = tuple[Piece, ...]
"""A text, split into strings and placeholders. No string is empty, and no string follows another string."""


def join_texts(texts: Iterable[Iterable[Piece]]) -> Text:
    """Joins several texts to one text."""
    pieces: list[Piece] = []
    for piece in (piece for text in texts for piece in text):
        if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
            pieces[-1] += piece
        elif piece:
            pieces.append(piece)
    return tuple(pieces)


def write_template(text: Text) -> str:
    """Returns a text as a weir template."""
    return "".join(piece if isinstance(piece, str) else f"{{{{{piece.template}}}}}" for piece in text)


def write_original(text: Text) -> str:
    """Returns a text as in the test plan, with `${...}` for placeholders."""
    return "".join(piece if isinstance(piece, str) else piece.written for piece in text)


class Reference(NamedTuple):
    """A reference to a variable, `${name}`, or a call of a function, `${__name(arguments)}`."""

    name: str
    arguments: tuple[tuple["str | Reference", ...], ...]
    written: str


class _NotClosedError(Exception):
    """Raised for a `${` without an end, and for too many nested references."""


def parse(text: str) -> list[str | Reference]:
    r"""Splits a text into strings and references.

    As in JMeter, a backslash escapes `$`, `,` and `\` in a text with a reference. If a reference has no
    end, the whole text is one string.

    >>> [type(piece).__name__ for piece in parse("/a/${id}?n=${__Random(1,${most})}")]
    ['str', 'Reference', 'str', 'Reference']
    """
    try:
        pieces, _ = _parse_until("", text, 0, 0)
    except _NotClosedError:
        pieces = []
    if any(isinstance(piece, Reference) for piece in pieces):
        return pieces
    return [text] if text else []


def _parse_until(ends: str, text: str, at: int, depth: int) -> tuple[list[str | Reference], int]:
    """Returns the pieces from `at` to the next character in `ends`, and the position of that character."""
    pieces: list[str | Reference] = []
    plain = ""
    open_count = 0
    while at < len(text) and (text[at] not in ends or (text[at] == ")" and open_count)):
        if text.startswith("${", at):
            reference, at = _parse_reference(text, at, depth + 1)
            pieces += [plain, reference] if plain else [reference]
            plain = ""
            continue
        if ends:
            # An argument may contain pairs of parentheses, such as calls in a script.
            open_count += {"(": 1, ")": -1}.get(text[at], 0)
        is_escape = text[at] == "\\" and at + 1 < len(text) and text[at + 1] in _ESCAPED
        plain += text[at + is_escape]
        at += 1 + is_escape
    return [*pieces, plain] if plain else pieces, at


def _parse_reference(text: str, at: int, depth: int) -> tuple[Reference, int]:
    """Returns the reference that begins at `at`, and the position after the reference."""
    head = _HEAD.match(text, at)
    if head is None or depth > _DEEPEST:
        raise _NotClosedError
    end = head.end() - 1
    arguments = []
    while text[end : end + 1] in ("(", ","):
        pieces, end = _parse_until(",)", text, end + 1, depth)
        arguments.append(tuple(pieces))
    closing = ")}" if arguments else "}"
    if not text.startswith(closing, end):
        raise _NotClosedError
    end += len(closing)
    return Reference(head.group(1), tuple(arguments), text[at:end]), end
