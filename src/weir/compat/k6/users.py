"""What the users of a k6 script do: its requests, checks and pauses, as steps of a scenario."""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote_plus

from tree_sitter import Node

from weir.compat.conversion import duration_of
from weir.compat.k6.members import Call, escaped
from weir.compat.k6.operators import both, used
from weir.compat.k6.source import UnsaidError, excerpt
from weir.compat.k6.values import (
    Answer,
    Checked,
    Condition,
    Drawn,
    Field,
    HeaderOf,
    JsonAt,
    StepDraft,
    Text,
    Undefined,
    Uniform,
    Value,
    as_text,
    is_plain,
)

_MOST_STEPS = 1000
_PLAIN_IN_URL = re.compile(r"[\w/.:@,~-]*", re.ASCII)
"""What a placeholder in a path leaves as it is."""
_ORIGIN = re.compile(r"(https?://[^/?#]+)(.*)", re.IGNORECASE | re.DOTALL)
_BELOW_400 = frozenset(range(100, 400))
_KEYWORDS = ("int", "word", "csv", "json", "seq", "uuid")
_WITHOUT_EFFECT = ("tags", "responseType", "redirects")


class Users:
    """The steps, as they are read.

    Args:
        said: is told of what cannot be said.
    """

    def __init__(self, said: Callable[[Node, str], None]) -> None:
        self.steps: list[StepDraft] = []
        self.origin = ""
        """Scheme, host and port of all requests."""
        self.timeouts_s: set[float] = set()
        """Those that requests name."""
        self.counts_iterations: list[Node] = []
        """Where the number of an iteration stands in a request."""
        self.has_checks = False
        self.has_whole_pauses = False
        """Whether a pause of whole seconds was made one of any length."""
        self._said = said
        self.feeders: dict[str, dict[str, str]] = {}
        """Of rows of which users have one by chance."""
        self.files: dict[str, str] = {}
        """Their content, by name."""
        self.call: Call
        """Calls a function of the script."""
        self._has_begun = False
        self._groups: list[str] = []
        self._pauses_first: list[tuple[Value, Node]] = []

    def begin(self) -> None:
        """The script itself has been read; what is called from here on its users do."""
        self._has_begun = True

    def end(self) -> None:
        """The iteration has been read."""
        if self.steps:
            for pause, node in self._pauses_first:
                self._pause(self.steps[-1], pause, node)

    def request(self, method: str, url: Value, body: Value, params: Value, node: Node) -> Answer:
        """`http.get` and the like.

        Raises:
            UnsaidError: it cannot be a step.
        """
        self._doing(node)
        if len(self.steps) >= _MOST_STEPS:
            raise UnsaidError(node, f"found more than {_MOST_STEPS:,} requests in one iteration")
        params = {} if isinstance(params, Undefined) or params is None else params
        if not isinstance(params, dict):
            raise UnsaidError(node, f"found {excerpt(node)!r}, expected the request's params as an object")
        step = StepDraft(node, method, self._path(url, node), {}, None, self._name(params, method))
        if isinstance(body, dict):
            step.headers["Content-Type"] = "application/x-www-form-urlencoded"
            step.body = "&".join(f"{quote_plus(key)}={self._form_value(value, node)}" for key, value in body.items())
        elif not isinstance(body, Undefined) and body is not None:
            step.body = self._text(body, "body", node)
        self._take_params(step, params, node)
        if step.name is None and self._groups:
            step.name = f"{method} {step.path}"
        if step.name is not None:
            step.name = ": ".join([*self._groups, step.name])
        self.steps.append(step)
        return Answer(step)

    def check(self, arguments: Sequence[Value], node: Node) -> Value:
        """`check(answer, {name: predicate})`: the answer's step looks for the same."""
        call = self._doing(node)
        answer, sets = arguments[0] if arguments else Undefined(), arguments[1] if len(arguments) > 1 else Undefined()
        if not isinstance(answer, Answer) or not isinstance(sets, dict):
            raise UnsaidError(node, f"found {excerpt(node)!r}, expected check(answer, {{'name': (r) => r.status === 200}})")
        for name, predicate in sets.items():
            try:
                self._hold(answer.step, call(predicate, [answer], node) if callable_(predicate) else predicate, name, node)
            except UnsaidError as unsaid:
                if not unsaid.told:
                    self._said(unsaid.node, unsaid.what)
        return Checked()

    def sleep(self, arguments: Sequence[Value], node: Node) -> Value:
        """`sleep(seconds)`: the pause after the step before; before the first one, after the last."""
        self._doing(node)
        pause = arguments[0] if arguments else Undefined()
        if self.steps:
            self._pause(self.steps[-1], pause, node)
        else:
            self._pauses_first.append((pause, node))
        return Undefined()

    def group(self, arguments: Sequence[Value], node: Node) -> Value:
        """`group(name, function)`: its name stands before those of its steps."""
        call = self._doing(node)
        if len(arguments) != 2 or not isinstance(arguments[0], str):
            raise UnsaidError(node, f"found {excerpt(node)!r}, expected group('name', () => {{ ... }})")
        self._groups.append(arguments[0])
        try:
            return call(arguments[1], [], node)
        finally:
            self._groups.pop()

    def drawn(self, value: Value, node: Node) -> Value:
        """A random value, where it is drawn for every iteration.

        Raises:
            UnsaidError: it is drawn once, when the script begins.
        """
        if not self._has_begun:
            raise UnsaidError(node, f"found {excerpt(node)!r}, drawn once for each user: weir draws for each request")
        return value

    def one_of(self, items: Value, node: Node) -> Value:
        """One of a list by chance: in each iteration a user has another row of a feeder.

        Raises:
            UnsaidError: the list is not known beforehand, or it is drawn once, when the script begins.
        """
        if not isinstance(items, list) or not items or not is_plain(items):
            raise UnsaidError(node, f"found {excerpt(node)!r}, expected one of a list that is known beforehand")
        self.drawn(items, node)
        are_objects = all(isinstance(item, dict) for item in items)
        rows = "".join(f"{json.dumps(item if are_objects else {'value': item}, ensure_ascii=False)}\n" for item in items)
        file = next(name for number in itertools.count(1) if self.files.setdefault(name := f"rows-{number}.jsonl", rows) == rows)
        feeder = f"rows_{len(self.feeders) + 1}"
        self.feeders[feeder] = {"format": "json_lines", "file": file, "mode": "random"}
        return _fields(feeder, "" if are_objects else "/value", items)

    def _doing(self, node: Node) -> Call:
        if not self._has_begun:
            raise UnsaidError(node, f"found {excerpt(node)!r} outside of a function, where k6 forbids it")
        return self.call

    # --- Requests

    def _path(self, url: Value, node: Node) -> str:
        parts = url.parts if isinstance(url, Text) else (url,)
        found = _ORIGIN.fullmatch(parts[0]) if isinstance(parts[0], str) else None
        if found is None or (len(parts) > 1 and not found.group(2)):
            self._text(url, "URL", node)
            raise UnsaidError(node, f"found the URL {parts[0]!r}, expected http://HOST[:PORT]/PATH whose host is known beforehand")
        origin, path = found.groups()
        self.origin = self.origin or origin
        if origin.lower() != self.origin.lower():
            raise UnsaidError(node, f"found {origin}, expected {self.origin}: all steps of a scenario ask one server")
        path = path if path.startswith("/") else f"/{path}"
        rest = self._text(Text(parts[1:]), "URL", node) if len(parts) > 1 else ""
        return (self._text(path, "URL", node) + rest).partition("#")[0]

    def _name(self, params: dict[str, Value], method: str) -> str | None:
        tags = params.get("tags")
        name = tags.get("name") if isinstance(tags, dict) else None
        return name if isinstance(name, str) else None

    def _take_params(self, step: StepDraft, params: dict[str, Value], node: Node) -> None:
        for key, value in params.items():
            match key, value:
                case "headers", dict():
                    for name, text in value.items():
                        step.headers = {other: held for other, held in step.headers.items() if other.lower() != name.lower()}
                        step.headers[name] = self._text(text, f"header {name}", node)
                case "timeout", (int() | float()):
                    self.timeouts_s.add(value / 1000)
                case "timeout", str() if seconds := duration_of(value):
                    self.timeouts_s.add(seconds)
                case _ if key not in _WITHOUT_EFFECT:
                    self._said(node, f"found params.{key}, which a step does not have: it has headers, timeout, and a name from tags.name")

    def _form_value(self, value: Value, node: Node) -> str:
        parts = value.parts if isinstance(value, Text) else (value,)
        found = []
        for one in parts:
            text = as_text(one)
            found.append(self._text(one, "body", node) if text is None else quote_plus(text))
        return "".join(found)

    def _text(self, value: Value, what: str, node: Node) -> str:
        """A value as it stands in a step: a template."""
        found = []
        for one in value.parts if isinstance(value, Text) else (value,):
            match one:
                case str() if "{{" in one:
                    raise UnsaidError(node, f"found {{{{ in the {what}, where a scenario has placeholders")
                case Drawn():
                    if one.per_iteration:
                        self.counts_iterations.append(node)
                    found.append(used(one, node))
                case JsonAt():
                    found.append(self._extracted(one.answer.step, {"json": one.pointer}, one.pointer.rpartition("/")[2], node))
                case Field() if one.all_are(str, int, float, bool) and "{" not in one.pointer and "}" not in one.pointer:
                    if what == "URL" and not all(_PLAIN_IN_URL.fullmatch(as_text(value) or "") for value in one.values):
                        raise UnsaidError(node, f"found {excerpt(node)!r} with rows that a path would hold in another form")
                    found.append(one.placeholder)
                case HeaderOf():
                    found.append(self._extracted(one.answer.step, {"header": one.name}, one.name, node))
                case Undefined(why):
                    raise UnsaidError(node, f"found undefined in the {what}" + (f": {why}" if why else ""))
                case _:
                    text = as_text(one)
                    if text is None:
                        raise UnsaidError(node, f"found {excerpt(node)!r}, whose {what} a scenario cannot say")
                    found.append(text)
        return "".join(found)

    def _extracted(self, step: StepDraft, rule: dict[str, str], near: str, node: Node) -> str:
        """The placeholder of a value that a step takes from its answer."""
        if step not in self.steps:
            raise UnsaidError(node, f"found {excerpt(node)!r}, about the answer to a request that is left out")
        known = next((name for name, held in step.extract.items() if held == rule), None)
        if known is None:
            base = re.sub(r"\W", "_", near, flags=re.ASCII) or "value"
            base = f"_{base}" if base[0].isdigit() or base in _KEYWORDS else base
            taken = {name for other in self.steps for name in other.extract}
            known = next(name for name in _numbered(base) if name not in taken)
            step.extract[known] = rule
        return f"{{{{{known}}}}}"

    # --- Checks and pauses

    def _hold(self, step: StepDraft, found: Value, name: str, node: Node) -> None:
        if found is True:
            return
        if not isinstance(found, Condition) or found.step is not step:
            raise UnsaidError(node, f"found the check {name!r}, which a step cannot make of its answer: status, text and JSON can be")
        merged = both(self._held(step), found, node)
        if merged.statuses is not None and not merged.statuses:
            raise UnsaidError(node, f"found the check {name!r}, which no status can meet together with those before it")
        self.has_checks = True
        table: dict[str, Any] = {
            "status": None if merged.statuses in (None, _BELOW_400) else sorted(merged.statuses or ()),
            "body_contains": merged.body_contains, "body_equals": merged.body_equals,
            "json": merged.json or None, "max_body_bytes": merged.max_body_bytes,
        }  # fmt: skip
        step.check = {key: value for key, value in table.items() if value is not None}

    @staticmethod
    def _held(step: StepDraft) -> Condition:
        """What a step checks so far."""
        status = step.check.get("status")
        others = {key: value for key, value in step.check.items() if key != "status"}
        return Condition(step, None if status is None else frozenset(status), **others)

    def _pause(self, step: StepDraft, pause: Value, node: Node) -> None:
        match pause:
            case Drawn(whole=(low, high)):
                used(pause, node)
                self.has_whole_pauses = True
                bounds = float(low), float(high)
            case Uniform(low, high):
                bounds = float(low), float(high)
            case int() | float() if not isinstance(pause, bool):
                bounds = float(pause), float(pause)
            case _:
                raise UnsaidError(node, f"found {excerpt(node)!r}, expected seconds: a number, Math.random() * 3 or randomIntBetween(1, 3)")
        if not all(map(math.isfinite, bounds)):
            raise UnsaidError(node, f"found {excerpt(node)!r}, a pause without an end")
        before = _bounds(step.think)
        if before[0] != before[1] and bounds[0] != bounds[1]:
            raise UnsaidError(node, f"found a second random pause after one request, {excerpt(node)!r}: a step has one")
        low_s, high_s = before[0] + max(0.0, bounds[0]), before[1] + max(0.0, bounds[1])
        if high_s > 0:
            step.think = {"constant_s": low_s} if low_s == high_s else {"uniform_s": [low_s, high_s]}


def _fields(feeder: str, pointer: str, values: Sequence[Value]) -> Value:
    """What a row has at a place: an object of such where it has one with the same names in all rows."""
    first = values[0]
    if isinstance(first, dict) and all(isinstance(value, dict) and value.keys() == first.keys() for value in values):
        return {key: _fields(feeder, f"{pointer}/{escaped(key)}", [value[key] for value in values]) for key in first}
    return Field(feeder, pointer, tuple(values))


def callable_(value: Value) -> bool:
    """Whether a predicate of a check has to be called."""
    return not isinstance(value, bool | Condition)


def _bounds(think: dict[str, Any] | None) -> tuple[float, float]:
    match think:
        case {"constant_s": pause_s}:
            return pause_s, pause_s
        case {"uniform_s": [low_s, high_s]}:
            return low_s, high_s
    return 0.0, 0.0


def _numbered(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1
