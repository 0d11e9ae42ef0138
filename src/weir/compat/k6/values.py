"""Values of a k6 script: those of JavaScript as Python's own, and those that are known only when users run it, as symbols.

`None` is null, `int` and `float` are numbers, `list` and `dict` arrays and objects. A symbol that comes to stand in a request becomes a
placeholder of a scenario, one in a check a condition of its step.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tree_sitter import Node

Value = Any
"""One of those above, `Undefined`, `Function`, `Builtin` or a symbol."""


LONGEST_TEXT = 1 << 20
"""Characters: what is longer was made by a loop."""


class TooLongError(Exception):
    """A text grows beyond all measure."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """JavaScript's undefined, and why it is."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """What came of something that was told to be a gap."""


@dataclass(frozen=True, slots=True)
class Unsayable:
    """What stands behind a name that can only be told."""

    what: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What `check()` gives: whether all of it held."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the script."""

    node: Node
    scopes: tuple[dict[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function of JavaScript's or k6's."""

    call: Callable[[Sequence[Value], Node], Value]


@dataclass(frozen=True, slots=True)
class Module:
    """What stands behind a name with a dot, such as `http` and `Math`."""

    name: str
    members: dict[str, Value]
    call: Builtin | None = None
    """What it is as a function."""


@dataclass(slots=True, eq=False)
class Drawn:
    """A value that is drawn anew, and its placeholder: k6 draws it once for each place where it is called, weir for each placeholder."""

    placeholder: str
    whole: tuple[int, int] | None = None
    """Its bounds, where it is a whole number between them."""
    is_used: bool = False
    per_iteration: bool = False
    """Whether it counts iterations: as requests are counted only where each iteration has one."""


@dataclass(frozen=True, slots=True)
class Field:
    """What stands at one place of a row, by the row that a user has in an iteration."""

    feeder: str
    pointer: str
    values: tuple[Value, ...]
    """Of all rows."""

    @property
    def placeholder(self) -> str:
        """How a template calls it."""
        return f"{{{{json {self.feeder}.{self.pointer}}}}}"

    def all_are(self, *types: type) -> bool:
        """Whether it is of one of these types in all rows."""
        return all(type(value) in types for value in self.values)


@dataclass(frozen=True, slots=True)
class Uniform:
    """A number between two, any as likely: `Math.random()` and what is made of it."""

    low: float
    high: float


@dataclass(slots=True, eq=False)
class Answer:
    """The answer to a request: of `step`, or the one that a check looks at."""

    step: "StepDraft"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an answer: `status`, `body`, `timings`, `headers`, `length` (of the body), `position` (of a text in it)."""

    answer: Answer
    kind: str
    text: str = ""
    """The text whose position it is."""


@dataclass(frozen=True, slots=True)
class JsonAt:
    """A value in an answer's JSON."""

    answer: Answer
    pointer: str
    as_what: str = ""
    """`text` or `number`, where the script makes it one."""


@dataclass(frozen=True, slots=True)
class HeaderOf:
    """A header of an answer."""

    answer: Answer
    name: str


@dataclass(frozen=True, slots=True)
class Condition:
    """What the answer of a step is held against."""

    step: "StepDraft"
    statuses: frozenset[int] | None = None
    body_contains: str | None = None
    body_equals: str | None = None
    json: dict[str, Value] = field(default_factory=dict)
    max_body_bytes: int | None = None

    @property
    def is_of_status(self) -> bool:
        """Whether it is about the status alone."""
        return self == Condition(self.step, self.statuses)


@dataclass(frozen=True, slots=True)
class Text:
    """Text with symbols in it."""

    parts: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class StepDraft:
    """A request as far as it has been read."""

    node: Node
    method: str
    path: str
    headers: dict[str, str]
    body: str | None
    name: str | None
    think: dict[str, Any] | None = None
    extract: dict[str, dict[str, str]] = field(default_factory=dict)
    check: dict[str, Any] = field(default_factory=dict)

    def table(self) -> dict[str, Any]:
        """The step as a scenario has it."""
        given = {
            "name": self.name, "method": self.method, "path": self.path, "headers": self.headers, "body": self.body,
            "check": self.check, "extract": self.extract, "think": self.think,
        }  # fmt: skip
        return {key: value for key, value in given.items() if value is not None and value != {}}


def number_as_text(value: float) -> str:
    """A number as JavaScript writes it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if value == int(value) and abs(value) < 1e21 else repr(value)


def as_text(value: Value) -> str | None:
    """A value as JavaScript makes text of it; None of what has none here."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return number_as_text(value)
        case None:
            return "null"
    return None


def joined(values: Iterable[Value]) -> Value:
    """Texts and symbols one after the other: plain text where no symbol is among them.

    Raises:
        TooLongError: it would be longer than anything that a request holds.
    """
    parts: list[Value] = []
    plain: list[str] = []
    length = 0
    for value in values:
        for one in value.parts if isinstance(value, Text) else (value,):
            text = as_text(one)
            length += 1 if text is None else len(text)
            if length > LONGEST_TEXT:
                raise TooLongError
            if text is None:
                parts += ["".join(plain), one] if plain else [one]
                plain = []
            elif text:
                plain.append(text)
    rest = "".join(plain)
    if not parts:
        return rest
    return Text((*parts, rest) if rest else tuple(parts))


def is_plain(value: Value) -> bool:
    """Whether a value is JSON's, without symbols."""
    match value:
        case list():
            return all(map(is_plain, value))
        case dict():
            return all(map(is_plain, value.values()))
    return value is None or isinstance(value, bool | int | float | str)


def stringified(value: Value) -> Value:
    """`JSON.stringify`.

    Raises:
        TypeError: a value of unknown type is in it.
        TooLongError: it would be too long.
    """
    match value:
        case list():
            return joined(_listed("[", (stringified(None if isinstance(item, Undefined) else item) for item in value), "]"))
        case dict():
            known = ((key, item) for key, item in value.items() if not isinstance(item, Undefined | Function | Builtin))
            members = (joined((json.dumps(key, ensure_ascii=False), ":", stringified(item))) for key, item in known)
            return joined(_listed("{", members, "}"))
        case Text():
            inner = (json.dumps(one, ensure_ascii=False)[1:-1] if isinstance(one, str) else one for one in value.parts)
            return joined(('"', *inner, '"'))
        case Drawn():
            return value if value.whole or value.per_iteration else joined(('"', value, '"'))
        case JsonAt() if value.as_what == "number":
            return value
        case JsonAt() if value.as_what == "text":
            return joined(('"', value, '"'))
        case HeaderOf():
            return joined(('"', value, '"'))
        case Field() if value.all_are(str) and all(json.dumps(one, ensure_ascii=False) == f'"{one}"' for one in value.values):
            return joined(('"', value, '"'))
        case Field() if value.all_are(int, float) or value.all_are(bool):
            return value
        case float() | int() if not isinstance(value, bool):
            return number_as_text(value)
    if not is_plain(value):
        raise TypeError(value)
    return json.dumps(value, ensure_ascii=False)


def _listed(opening: str, items: Iterable[Value], closing: str) -> Iterator[Value]:
    yield opening
    for index, item in enumerate(items):
        yield from (",", item) if index else (item,)
    yield closing
