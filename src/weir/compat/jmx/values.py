"""Texts of a test plan: what stands between `${` and `}` in them, resolved.

What is known before the load (variables, properties) is put in; what is drawn for each request becomes a placeholder of weir's templates.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

_ESCAPED = "$,\\"
_HEAD = re.compile(r"\$\{([^}(${]*)[}(]")
_DEEPEST = 50


class Placeholder(NamedTuple):
    """A value that each request has for itself."""

    template: str
    """What weir's templates say: `int 1 9`."""
    written: str
    """What the test plan says: `${__Random(1,9)}`."""
    column: tuple[str, str] | None = None
    """The data set and the column that it is of."""


Piece = str | Placeholder
Text = tuple[Piece, ...]
"""Text with placeholders; neighbours are not both strings."""


def template(text: Text) -> str:
    """A text in weir's templates."""
    return "".join(piece if isinstance(piece, str) else f"{{{{{piece.template}}}}}" for piece in text)


def written(text: Text) -> str:
    """A text as the test plan has it, but for what is known before the load."""
    return "".join(piece if isinstance(piece, str) else piece.written for piece in text)


class Reference(NamedTuple):
    """`${name}` or `${__name(arguments)}` as it stands."""

    name: str
    arguments: tuple[tuple["str | Reference", ...], ...] | None
    written: str


class _NotClosedError(Exception):
    """A `${` without its end, or more of them in one another than anybody writes."""


def parse(text: str) -> list[str | Reference]:
    r"""A text taken apart. As in JMeter, `\$`, `\,` and `\\` stand for their last character where there is a reference in the text,
    and a text with a reference that does not end is just text.

    >>> [type(piece).__name__ for piece in parse("/a/${id}?n=${__Random(1,${most})}")]
    ['str', 'Reference', 'str', 'Reference']
    """
    try:
        pieces, _ = _pieces(text, 0, "", 0)
    except _NotClosedError:
        pieces = []
    if any(isinstance(piece, Reference) for piece in pieces):
        return pieces
    return [text] if text else []


def _pieces(text: str, at: int, until: str, depth: int) -> tuple[list[str | Reference], int]:
    """The pieces from `at` to the first of the characters `until`, and where that is."""
    pieces: list[str | Reference] = []
    plain = ""
    while at < len(text) and text[at] not in until:
        if text.startswith("${", at):
            reference, at = _reference(text, at, depth + 1)
            pieces += [plain, reference] if plain else [reference]
            plain = ""
            continue
        is_escape = text[at] == "\\" and at + 1 < len(text) and text[at + 1] in _ESCAPED
        plain += text[at + is_escape]
        at += 1 + is_escape
    return [*pieces, plain] if plain else pieces, at


def _reference(text: str, at: int, depth: int) -> tuple[Reference, int]:
    """The reference that begins at `at`, and where it ends."""
    head = _HEAD.match(text, at)
    if head is None or depth > _DEEPEST:
        raise _NotClosedError
    name, end = head.group(1).strip(), head.end() - 1
    if text[end] == "}":
        return Reference(name, None, text[at : end + 1]), end + 1
    given = []
    while end < len(text) and text[end] in "(,":
        pieces, end = _pieces(text, end + 1, ",)", depth)
        given.append(tuple(pieces))
    if not text.startswith(")}", end):
        raise _NotClosedError
    return Reference(name, tuple(given), text[at : end + 2]), end + 2


Complain = Callable[[str], None]
"""Told what is not supported, in words."""


@dataclass(slots=True)
class Values:
    """What references stand for at one place of a test plan."""

    properties: Mapping[str, str]
    variables: dict[str, str] = field(default_factory=dict)
    columns: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Variables that a data set gives each user: the data set and the column."""

    def text(self, written: str, complain: Complain) -> Text:
        """A text for requests: what cannot be resolved stays as it is written, which is what JMeter sends of an unknown variable."""
        pieces: list[Piece] = []
        for piece in parse(written):
            resolved = piece if isinstance(piece, str) else self._resolve(piece, complain)
            if isinstance(resolved, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += resolved
            elif resolved != "":
                pieces.append(resolved)
        return tuple(pieces)

    def fixed(self, written: str, complain: Complain) -> str:
        """A text that must be known before the load."""
        text = ""
        for piece in self.text(written, complain):
            if isinstance(piece, Placeholder):
                complain(f"{piece.written}: a value that changes from request to request, expected one that is known before the load")
                text += piece.written
            else:
                text += piece
        return text

    def _resolve(self, reference: Reference, complain: Complain) -> Piece:
        name = reference.name
        if name.startswith("__"):
            return self._call(reference, complain)
        if name in self.columns:
            data_set, column = self.columns[name]
            return Placeholder(f"csv {data_set}.{column}", reference.written, (data_set, column))
        return self.variables.get(name, reference.written)

    def _call(self, reference: Reference, complain: Complain) -> Piece:
        given = ["".join(self._argument(piece, complain) for piece in argument) for argument in reference.arguments or ()]
        match reference.name, [text.strip() for text in given]:
            case "__P", [name]:
                return self.properties.get(name, "1")
            case "__P", [name, default]:
                return self.properties.get(name, default)
            case "__property", [name] | [name, ""]:
                return self.properties.get(name, name)
            case "__property", [name, "", default]:
                return self.properties.get(name, default)
            case "__V", [name] if name not in self.columns:
                return self.variables.get(name, name)
            case ("__Random", [low, high]) | ("__Random", [low, high, ""]) if _is_range(low, high):
                return Placeholder(f"int {int(low)} {int(high)}", reference.written)
            case "__UUID", [] | [""]:
                return Placeholder("uuid", reference.written)
            case "__counter", _:
                complain(f"{reference.written}: counts the calls; weir's {{{{seq}}}} counts all requests of the thread group, from 0")
                return Placeholder("seq", reference.written)
        complain(f"{reference.written}: no placeholder of weir's templates says the same")
        return reference.written

    def _argument(self, piece: str | Reference, complain: Complain) -> str:
        resolved = piece if isinstance(piece, str) else self._resolve(piece, complain)
        if isinstance(resolved, Placeholder):
            complain(f"{resolved.written}: a value that changes from request to request in a function's argument")
            return resolved.written
        return resolved


def _is_range(low: str, high: str) -> bool:
    try:
        return -(2**63) <= int(low) <= int(high) < 2**63
    except ValueError:
        return False
