"""What a k6 script can call: JavaScript's own names, and those of k6's modules that a scenario can say."""

import base64
import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from tree_sitter import Node

from weir.compat.k6.members import parsed
from weir.compat.k6.operators import whole
from weir.compat.k6.source import UnsaidError, excerpt
from weir.compat.k6.users import Users
from weir.compat.k6.values import (
    Builtin,
    Drawn,
    JsonAt,
    Module,
    Undefined,
    Uniform,
    Unsayable,
    Value,
    as_text,
    is_plain,
    joined,
    stringified,
)

_LARGEST_FILE = 1 << 20
_METHODS = {"get": "GET", "post": "POST", "put": "PUT", "patch": "PATCH", "del": "DELETE", "head": "HEAD", "options": "OPTIONS"}
_WITHOUT_BODY = ("get", "head")


def names(environment: Mapping[str, str], folder: Path, users: Users) -> dict[str, Value]:
    """What every script knows.

    Args:
        environment: `__ENV`.
        folder: what the paths of `open()` are relative to.
        users: whose random values are drawn.
    """
    silent = Builtin(lambda _arguments, _node: Undefined())
    return {
        "__ENV": _Environment(environment),
        "__VU": Unsayable("the number of a user, which weir does not tell: {{seq}} numbers requests, {{csv users.name}} takes from a file"),
        "__ITER": Drawn("{{seq}}", per_iteration=True),
        "JSON": Module("JSON", {"stringify": Builtin(_stringify), "parse": Builtin(lambda given, node: parsed(_at(given, 0), node))}),
        "Math": Module("Math", {"random": Builtin(lambda _given, node: users.drawn(Uniform(0, 1), node)), "floor": Builtin(_floor)}),
        "Number": Module("Number", {}, Builtin(_as_number)),
        "String": Module("String", {}, Builtin(_as_string)),
        "parseInt": Builtin(_as_number),
        "parseFloat": Builtin(_as_number),
        "encodeURIComponent": Builtin(_encoded),
        "console": Module("console", dict.fromkeys(("log", "info", "warn", "error", "debug"), silent)),
        "open": Builtin(lambda given, node: _opened(given, node, folder)),
    }


def module_of(users: Users) -> Callable[[str], Mapping[str, Value]]:
    """A function that gives what can be imported from somewhere, by name.

    Args:
        users: what the script's users do is told them.
    """
    http: dict[str, Value] = {name: _request(users, name, method) for name, method in _METHODS.items()}
    http["request"] = Builtin(lambda given, node: users.request(_method(given, node), _at(given, 1), _at(given, 2), _at(given, 3), node))
    http["url"] = Builtin(lambda given, _node: _at(given, 0))
    http["batch"] = _refused("http.batch(): users of a scenario ask one thing after the other")
    http["setResponseCallback"] = _refused("http.setResponseCallback(): each step has its own check.status")
    encoding: dict[str, Value] = {"b64encode": Builtin(_base64)}
    execution: dict[str, Value] = {
        "scenario": Module("exec.scenario", {"iterationInTest": Drawn("{{seq}}", per_iteration=True)}),
    }
    known: dict[str, dict[str, Value]] = {
        "k6/http": {"default": Module("http", http), **http},
        "k6/data": {"SharedArray": Builtin(lambda given, node: _items(users.call(_at(given, 1), [], node), node))},
        "k6/metrics": dict.fromkeys(("Counter", "Gauge", "Rate", "Trend"), Builtin(_metric)),
        "k6/encoding": {"default": Module("encoding", encoding), **encoding},
        "k6/execution": {"default": Module("exec", execution), **execution},
        "k6": {
            "check": Builtin(users.check),
            "sleep": Builtin(users.sleep),
            "group": Builtin(users.group),
            "fail": _refused("fail(): a step fails by its check"),
        },
    }
    utilities: dict[str, Value] = {
        "randomIntBetween": Builtin(lambda given, node: users.drawn(whole(*_two_integers(given, node)), node)),
        "randomString": Builtin(lambda given, node: users.drawn(Drawn(f"{{{{word {_length(given, node)}}}}}"), node)),
        "randomItem": Builtin(lambda given, node: users.one_of(_at(given, 0), node)),
        "uuidv4": Builtin(lambda _given, node: users.drawn(Drawn("{{uuid}}"), node)),
    }
    libraries = {"k6-utils": utilities, "papaparse": {"default": Module("papaparse", {"parse": Builtin(_parsed_csv)})}}
    # As k6's own library of modules has them: https://jslib.k6.io/NAME/VERSION/index.js
    return lambda source: libraries.get(source.split("/")[3], {}) if "//jslib.k6.io/" in source else known.get(source, {})


class _Environment(dict[str, Value]):
    """`__ENV`: what is not there says how to give it."""

    def get(self, key: str, default: Value = None) -> Value:
        return self[key] if key in self else Undefined(f"__ENV.{key} has no value; -e {key}=VALUE gives it one")


def _request(users: Users, name: str, method: str) -> Builtin:
    def asked(given: Sequence[Value], node: Node) -> Value:
        body, params = (Undefined(), _at(given, 1)) if name in _WITHOUT_BODY else (_at(given, 1), _at(given, 2))
        return users.request(method, _at(given, 0), body, params, node)

    return Builtin(asked)


def _refused(what: str) -> Builtin:
    def refuse(given: Sequence[Value], node: Node) -> NoReturn:
        raise UnsaidError(node, f"found {what}")

    return Builtin(refuse)


def _metric(given: Sequence[Value], node: Node) -> Value:
    return Module("a metric", {"add": _refused(f"a metric of the script's own, {excerpt(node)!r}: weir has those of every load")})


def _method(given: Sequence[Value], node: Node) -> str:
    method = _at(given, 0)
    if not isinstance(method, str) or method.upper() not in _METHODS.values():
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected one of the methods {', '.join(_METHODS.values())}")
    return method.upper()


def _stringify(given: Sequence[Value], node: Node) -> Value:
    if len(given) > 2:
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected JSON.stringify() of a value alone")
    try:
        return stringified(_at(given, 0))
    except TypeError:
        raise UnsaidError(node, f"found {excerpt(node)!r}, in which something is neither known nor said to be a text or a number") from None


def _floor(given: Sequence[Value], node: Node) -> Value:
    match _at(given, 0):
        case Uniform(low, high) if low == int(low) and high == int(high) and high > low:
            return whole(int(low), int(high) - 1)
        case (int() | float()) as value if math.isfinite(value):
            return math.floor(value)
    raise UnsaidError(node, f"found {excerpt(node)!r}, which weir cannot calculate")


def _as_number(given: Sequence[Value], node: Node) -> Value:
    value = _at(given, 0)
    if isinstance(value, JsonAt):
        return JsonAt(value.answer, value.pointer, "number")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected a number that is known beforehand") from None
    return int(number) if number.is_integer() else number


def _as_string(given: Sequence[Value], node: Node) -> Value:
    value = _at(given, 0)
    return JsonAt(value.answer, value.pointer, "text") if isinstance(value, JsonAt) else joined((value,))


def _encoded(given: Sequence[Value], node: Node) -> Value:
    text = as_text(_at(given, 0))
    if text is None:
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected a text that is known beforehand")
    return quote(text, safe="-_.!~*'()")


def _base64(given: Sequence[Value], node: Node) -> Value:
    text = _at(given, 0)
    if not isinstance(text, str) or len(given) > 1:
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected b64encode() of a text that is known beforehand")
    return base64.b64encode(text.encode()).decode()


def _opened(given: Sequence[Value], node: Node, folder: Path) -> str:
    name = _at(given, 0)
    if not isinstance(name, str) or len(given) > 1:
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected open() of a text file")
    path = folder / name
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise UnsaidError(node, f"found {path}, which is larger than {_LARGEST_FILE:,} bytes")
        return path.read_bytes().decode()
    except (OSError, ValueError) as error:
        raise UnsaidError(node, f"found {path}, which cannot be read: {error}") from None


def _items(value: Value, node: Node) -> list[Value]:
    if not isinstance(value, list):
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected a function that gives a list")
    return value


def _parsed_csv(given: Sequence[Value], node: Node) -> Value:
    text, options = _at(given, 0), _at(given, 1)
    if not isinstance(text, str) or not isinstance(options, dict) or options.get("header") is not True:
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected parse(open('./users.csv'), {{ header: true }})")
    return {"data": [{key: value or "" for key, value in row.items() if key} for row in csv.DictReader(io.StringIO(text))]}


def _two_integers(given: Sequence[Value], node: Node) -> tuple[int, int]:
    low, high = _at(given, 0), _at(given, 1)
    if not (is_plain(low) and is_plain(high) and isinstance(low, int) and isinstance(high, int) and low <= high):
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected two whole numbers that are known beforehand")
    return low, high


def _length(given: Sequence[Value], node: Node) -> int:
    length = _at(given, 0)
    if not isinstance(length, int) or not 0 < length <= 1 << 20 or len(given) > 1:
        raise UnsaidError(node, f"found {excerpt(node)!r}, expected a length alone: {{{{word LENGTH}}}} has letters")
    return length


def _at(given: Sequence[Value], index: int) -> Value:
    return given[index] if index < len(given) else Undefined()
