"""Converts a locustfile without running the file: constant requests in `@task` methods become a scenario.

Branches, calculations and uses of a response become gaps, because a scenario cannot express such code.
"""

import argparse
import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from weir.compat.convert.conversion import ArgumentParser, Conversion, Gap
from weir.load_spec import LoadSpec, choose_user_settings
from weir.model.errors import UsageError
from weir.model.load import Profile, Think
from weir.scenario import Scenario
from weir.toml_file import validate

_USAGE = "weir convert locust -f locustfile.py --host http://127.0.0.1:8000 -u 100 -r 10 -t 1m"
_LARGEST = 1 << 20
_USERS = ("HttpUser", "FastHttpUser")
_OLD_USERS = ("HttpLocust", "FastHttpLocust")
_CLIENTS = ("get", "post", "put", "patch", "delete", "head", "options")
_DURATION_S = 60.0
_TIMEOUT_S = 60.0
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
_NOTES = [
    "a closed loop, as in Locust: each user waits for a response, so a slow server gets fewer requests",
    "Locust follows redirects; weir counts a redirect as a right response",
]
_ENDLESS_NOTE = f"without -t, Locust runs until Ctrl-C; the converted load lasts {_DURATION_S:g} s"
_KEYWORDS = ("json", "data", "headers", "params", "name", "timeout", "allow_redirects", "verify")


_Task = tuple[ast.FunctionDef, int, list[dict[str, Any]]]
"""The method, the weight and the steps of a task."""


class _UnsupportedError(Exception):
    """The error for a syntax node that a scenario cannot express. `args` are the node and the problem."""

    @classmethod
    def at(cls, node: ast.AST, problem: str) -> "_UnsupportedError":
        """Returns the error for a node. The error's text quotes the node's source code before `problem`."""
        return cls(node, f"found {ast.unparse(node)[:60]!r}{problem}")


def convert(tool: str, words: Sequence[str]) -> Conversion:
    """Returns the load of a locustfile. Raises UsageError: `words` are invalid, or weir can convert no request."""
    given = _parse_arguments(tool, words)
    file = given.locustfile or next((word for word in given.words if word.endswith(".py")), "locustfile.py")
    return _Locustfile(Path(file)).convert(given, [word for word in given.words if word != file])


class _Locustfile:
    """A parsed locustfile with its constants, and the gaps that the conversion has found so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._gaps: dict[Gap, None] = {}
        self._tree = _parse_file(path)
        assigned = _list_assigned(self._tree)
        self._constants = {name: node.value for name, node in assigned if isinstance(node, ast.Constant)}

    def convert(self, given: argparse.Namespace, chosen: Sequence[str]) -> Conversion:
        user = self._choose_user(chosen)
        host = given.host or self._read_host(user)
        if not isinstance(host, str) or not urlsplit(host).hostname:
            raise UsageError(f"{self._path}: found no host, expected --host http://HOST[:PORT]", hint=_USAGE)
        url = urlsplit(host)
        content, waiting = self._build_scenario(user, list(self._list_tasks(user, url.path.rstrip("/"))))
        for node in user.body:
            if isinstance(node, ast.FunctionDef) and node.name in ("on_start", "on_stop"):
                self._add_gap(node, f"found {node.name}(): weir cannot run this method once for each user")
        if not content:
            problem = [f"{self._path}: found no request that weir can convert", *(f"  {gap}" for gap in self._gaps)]
            raise UsageError("\n".join(problem), hint=f"weir locust -f {self._path}")
        return Conversion(
            spec=LoadSpec(
                urls=(f"{url.scheme}://{url.netloc}",),
                **choose_user_settings(_build_profile(given.users, given.spawn_rate)),
                **waiting,
                duration_s=_DURATION_S if given.run_time is None else given.run_time,
                timeout_s=_TIMEOUT_S,
            ),
            scenario=validate(Scenario, content, path=self._path),
            gaps=sorted(self._gaps, key=lambda gap: int(gap.where.rpartition(":")[2])),
            notes=_NOTES if given.run_time is not None else [*_NOTES, _ENDLESS_NOTE],
        )

    def _choose_user(self, chosen: Sequence[str]) -> ast.ClassDef:
        classes = {node.name: node for node in self._tree.body if isinstance(node, ast.ClassDef)}
        for node in classes.values():
            if old := [base for base in _list_bases(node) if base in _OLD_USERS]:
                new = old[0].replace("HttpLocust", "HttpUser")
                found = f"{self._path}:{node.lineno}: found {old[0]}, a class of Locust before version 1.0"
                raise UsageError(
                    f"{found}; expected {new} with @task methods",
                    hint=f"write class {node.name}({new}); use wait_time = between(1, 5), not min_wait and max_wait",
                )
        users = [node for node in classes.values() if set(_list_bases(node)) & set(_USERS)]
        if unknown := [name for name in chosen if name not in classes]:
            names = ", ".join(one.name for one in users)
            raise UsageError(f"locust: found {unknown[0]!r}, expected one of the user classes: {names}", hint=_USAGE)
        users = [node for node in users if not chosen or node.name in chosen]
        if not users:
            raise UsageError(f"{self._path}: found no subclass of {' or '.join(_USERS)}, expected one", hint=_USAGE)
        for other in users[1:]:
            kinds = f"expected only {users[0].name}"
            self._add_gap(other, f"found a second user class {other.name}, {kinds}; name one class on the command line")
        return users[0]

    def _list_tasks(self, user: ast.ClassDef, prefix: str) -> Iterator[_Task]:
        for node in user.body:
            match node:
                case ast.FunctionDef() if (weight := _read_weight(node)) is not None:
                    try:
                        steps = [step for statement in node.body for step in self._steps(statement, prefix)]
                    except _UnsupportedError as error:
                        self._add_gap(*error.args)
                    else:
                        if steps:
                            yield node, weight, steps
                case ast.ClassDef():
                    self._add_gap(node, f"found the class {node.name} in a user class, expected methods with @task")
                case ast.Assign(targets=[ast.Name("tasks")]):
                    self._add_gap(node, "found a list of tasks, expected methods with @task")

    def _build_scenario(self, user: ast.ClassDef, tasks: Sequence[_Task]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the scenario and the load's wait settings. One task becomes steps; several tasks become requests."""
        waiting = self._read_wait_time(user)
        if len(tasks) == 1:
            _, _, steps = tasks[0]
            if len(steps) == 1:
                return {"steps": steps}, waiting
            if "pace_s" in waiting:
                self._add_gap(user, "found a pace with several requests in a task, expected one request")
            if "think" in waiting:
                steps[-1] |= {"think": waiting["think"].to_plan()}
            return {"steps": steps}, {}
        requests = []
        for task, weight, steps in tasks:
            if len(steps) == 1:
                requests.append(steps[0] | {"weight": weight})
            else:
                found = f"found {len(steps)} requests in the task {task.name}"
                self._add_gap(task, f"{found}, expected one: weir converts several tasks only if each has one request")
        return ({"requests": requests} if requests else {}), waiting

    def _read_wait_time(self, user: ast.ClassDef) -> dict[str, Any]:
        """Returns the load's settings for `wait_time`: the pause after a task, or the time between task starts."""
        node = _find_value(user, "wait_time")
        try:
            match node:
                case ast.Call(ast.Name("between"), [low, high]):
                    return {"think": Think(self._number(low), self._number(high))}
                case ast.Call(ast.Name("constant" | "constant_pacing" as name), [length]):
                    if not (length_s := self._number(length)):
                        return {}
                    return {"pace_s": length_s} if name == "constant_pacing" else {"think": Think(length_s, length_s)}
                case ast.Call(ast.Name("constant_throughput"), [rate]) if self._number(rate) > 0:
                    return {"pace_s": 1 / self._number(rate)}
                case ast.expr():
                    expected = "expected between, constant, constant_pacing or constant_throughput"
                    self._add_gap(node, f"found wait_time = {ast.unparse(node)}, {expected}")
        except _UnsupportedError as error:
            self._add_gap(node or user, error.args[1])
        return {}

    # --- Requests

    def _steps(self, statement: ast.stmt, prefix: str) -> Iterator[dict[str, Any]]:
        match statement:
            case ast.Expr(ast.Constant()) | ast.Pass():
                return
            case ast.Expr(ast.Call() as call) | ast.Assign(value=ast.Call() as call) if method := _find_client_method(
                call
            ):
                if isinstance(statement, ast.Assign):
                    raise _UnsupportedError.at(statement, ": weir does not convert the use of a response")
                yield self._step(call, method, prefix)
            case ast.For(target=ast.Name(name), iter=ast.Call(ast.Name("range"), bounds)):
                numbers = range(*(int(self._number(bound)) for bound in bounds))
                if len(numbers) > 100:
                    raise _UnsupportedError(statement, f"found a loop of {len(numbers):,} rounds, expected at most 100")
                for number in numbers:
                    self._constants[name] = number
                    for inner in statement.body:
                        yield from self._steps(inner, prefix)
            case _:
                text = ast.unparse(statement).splitlines()[0][:60]
                problem = f"found {text!r}, expected a request: only weir locust can run this statement"
                raise _UnsupportedError(statement, problem)

    def _step(self, call: ast.Call, method: str, prefix: str) -> dict[str, Any]:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if unknown := [name for name in given if name not in _KEYWORDS]:
            raise _UnsupportedError(call, f"found {unknown[0]}= in a request, expected one of {', '.join(_KEYWORDS)}")
        if not 1 <= len(call.args) <= 2:
            raise _UnsupportedError.at(call, ", expected a path")
        path = self._text(call.args[0])
        if not path.startswith("/"):
            raise _UnsupportedError(call, f"found {path!r}, expected a path that begins with /")
        if "params" in given:
            path += "?" + urlencode(self._object(given["params"]))
        step: dict[str, Any] = {"method": method.upper(), "path": prefix + path}
        if "name" in given:
            step["name"] = self._text(given["name"])
        headers = {name: str(value) for name, value in self._object(given.get("headers")).items()}
        body = given.get("data", call.args[1] if len(call.args) > 1 else None)
        if "json" in given:
            step["body"] = json.dumps(self._value(given["json"]))
            headers.setdefault("Content-Type", "application/json")
        elif isinstance(body, ast.Dict):
            step["body"] = urlencode(self._object(body))
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        elif body is not None:
            step["body"] = self._text(body)
        if "{{" in json.dumps([step, headers]).replace("{{int ", ""):
            raise _UnsupportedError(call, "found {{ in a request, expected none: {{ begins a scenario's placeholder")
        return step | ({"headers": headers} if headers else {})

    def _text(self, node: ast.expr) -> str:
        match node:
            case ast.JoinedStr(values):
                return "".join(self._text(value) for value in values)
            case ast.FormattedValue(value, format_spec=None):
                return self._text(value)
            case ast.BinOp(left, ast.Add(), right):
                return self._text(left) + self._text(right)
            case ast.BinOp(ast.Constant(str(pattern)), ast.Mod(), value) if pattern.count("%") == 1:
                return pattern.replace("%i", "%s").replace("%d", "%s") % self._text(value)
            case ast.Call(ast.Attribute(ast.Name("random"), "randint"), [low, high]):
                return f"{{{{int {self._number(low):g} {self._number(high):g}}}}}"
            case ast.Call(ast.Name("str"), [value]):
                return self._text(value)
        value = self._value(node)
        if isinstance(value, dict | list) or value is None:
            raise _UnsupportedError.at(node, ", expected a text")
        return str(value)

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value) if value is None or isinstance(value, str | int | float):
                return value
            case ast.Name(name) if name in self._constants:
                return self._constants[name]
            case ast.Dict(keys, values):
                pairs = zip(keys, values, strict=True)
                return {self._text(key): self._value(value) for key, value in pairs if key is not None}
            case ast.List(items) | ast.Tuple(items):
                return [self._value(item) for item in items]
            case ast.JoinedStr():
                return self._text(node)
            case ast.UnaryOp(ast.USub(), operand) if isinstance(number := self._value(operand), int | float):
                return -number
        raise _UnsupportedError.at(node, ", expected a constant value")

    def _object(self, node: ast.expr | None) -> Mapping[str, Any]:
        value = {} if node is None else self._value(node)
        if not isinstance(value, dict):
            raise _UnsupportedError(node or self._tree, f"found {value!r}, expected a dict of names and values")
        return value

    def _number(self, node: ast.expr) -> float:
        value = self._value(node)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise _UnsupportedError.at(node, ", expected a number")
        return value

    def _read_host(self, user: ast.ClassDef) -> Any:
        node = _find_value(user, "host")
        try:
            return None if node is None else self._value(node)
        except _UnsupportedError as error:
            self._add_gap(node or user, error.args[1])
            return None

    def _add_gap(self, node: ast.AST, what: str) -> None:
        self._gaps[Gap(f"{self._path}:{getattr(node, 'lineno', 1)}", what)] = None


def _parse_file(path: Path) -> ast.Module:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; expected a locustfile", hint=_USAGE) from None
    if len(text) > _LARGEST:
        raise UsageError(f"{path}: found {len(text):,} bytes, expected a locustfile of at most {_LARGEST:,}")
    try:
        return ast.parse(text, filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UsageError(f"{path}:{line}: found {error.args[0]}, expected Python") from None
    except (RecursionError, MemoryError):
        raise UsageError(f"{path}: found code that is nested too deep, expected less nesting") from None


def _list_assigned(holder: ast.Module | ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Yields the name and the value of each assignment in a module or a class."""
    for node in holder.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                yield name, value


def _list_bases(node: ast.ClassDef) -> list[str]:
    names = (base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases)
    return [name for name in names if name]


def _read_weight(node: ast.FunctionDef) -> int | None:
    """Returns the weight of a task; None if the method is not a task."""
    for decorator in node.decorator_list:
        match decorator:
            case ast.Name("task") | ast.Call(ast.Name("task"), []):
                return 1
            case ast.Call(ast.Name("task"), [ast.Constant(int(weight))]) if weight >= 1:
                return weight
    return None


def _find_client_method(call: ast.Call) -> str | None:
    match call.func:
        case ast.Attribute(ast.Attribute(ast.Name("self"), "client"), method) if method in _CLIENTS:
            return method
    return None


def _find_value(user: ast.ClassDef, name: str) -> ast.expr | None:
    return next((value for assigned, value in _list_assigned(user) if assigned == name), None)


def _build_profile(users: int, spawn_rate: float) -> Profile:
    """Returns the number of users over time: a ramp, or a constant number if the ramp would take at most 1 s."""
    ramp_s = users / spawn_rate
    return float(users) if ramp_s <= 1 else ((0.0, 0.0), (ramp_s, float(users)))


def _parse_run_time(text: str) -> float:
    given = f"{text}s" if text.isdigit() else text
    seconds = sum(int(number) * _UNITS_S[unit] for number, unit in re.findall(r"([0-9]+)([smh])", given))
    if not seconds or not re.fullmatch(r"([0-9]+[smh])+", given):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a duration such as 90, 30s or 1h30m")
    return seconds


def _parse_count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number above 0")
    return int(text)


def _parse_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e9:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number above 0")
    return rate


def _parse_arguments(tool: str, words: Sequence[str]) -> argparse.Namespace:
    parser = ArgumentParser(tool, _USAGE)
    parser.add_argument("words", nargs="*")
    parser.add_argument("-f", "--locustfile")
    parser.add_argument("-H", "--host")
    parser.add_argument("-u", "--users", type=_parse_count, default=1)
    parser.add_argument("-r", "--spawn-rate", type=_parse_rate, default=1.0)
    parser.add_argument("-t", "--run-time", type=_parse_run_time)
    # The other flags only change the output of Locust.
    for flag in ("--headless", "--only-summary", "--autostart"):
        parser.add_argument(flag, action="store_true")
    for flags in (["--csv"], ["--html"], ["-L", "--loglevel"]):
        parser.add_argument(*flags)
    return parser.parse_args(words)
