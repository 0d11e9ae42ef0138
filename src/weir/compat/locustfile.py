"""Locustfiles, read without being run: requests that stand in `@task` methods as they are sent, as a scenario.

What only Python can say (branches, calculations, answers that are looked at) is a gap: `weir locust` runs it.
"""

import argparse
import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode, urlsplit

from weir.compat.conversion import Conversion, Gap, duration_of
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, LoadPlan, Profile, Request, Think
from weir.scenario import Scenario
from weir.toml_file import validate

_USAGE = "weir convert locust -f locustfile.py --host http://127.0.0.1:8000 -u 100 -r 10 -t 1m"
_LARGEST = 1 << 20
_USERS = ("HttpUser", "FastHttpUser")
_OLD_USERS = ("HttpLocust", "FastHttpLocust")
_CLIENTS = ("get", "post", "put", "patch", "delete", "head", "options")
_DURATION_S = 60.0
_TIMEOUT_S = 60.0
_TAKEN = ("json", "data", "headers", "params", "name", "timeout", "allow_redirects", "verify")


class _UnsaidError(Exception):
    """Something that a scenario cannot say."""

    def __init__(self, node: ast.AST, what: str) -> None:
        super().__init__(what)
        self.line = getattr(node, "lineno", 1)
        self.what = what


def read(arguments: Sequence[str]) -> Conversion:
    """What `locust` would do with these arguments.

    Raises:
        UsageError: an argument or the file cannot be read, or there is no user class that makes a request.
    """
    given = _parser().parse_args(arguments)
    words = [*given.words]
    file = given.locustfile or next((word for word in words if word.endswith(".py")), "locustfile.py")
    chosen = [word for word in words if word != file]
    return _Locustfile(Path(file)).conversion(given, chosen)


class _Locustfile:
    """A locustfile, and what has been found in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._gaps: dict[Gap, None] = {}
        self._tree = _parsed(path)
        self._constants = dict(_constants(self._tree))

    def conversion(self, given: argparse.Namespace, chosen: Sequence[str]) -> Conversion:
        """All of it in weir's terms."""
        user = self._user(chosen)
        host = given.host or self._attribute(user, "host")
        if not isinstance(host, str) or not urlsplit(host).hostname:
            raise UsageError(f"{self._path}: found no host, expected --host http://HOST[:PORT]", hint=_USAGE)
        url = urlsplit(host)
        tasks = list(self._tasks(user, url.path.rstrip("/")))
        content, think, pace_s = self._content(user, tasks)
        for name in ("on_start", "on_stop"):
            if method := _method(user, name):
                self._say(method, f"found {name}(): a load has nothing that each user does once")
        if not content:
            found = "\n".join(f"  {gap}" for gap in self._gaps)
            nothing = f"{self._path}: found no request that weir can make"
            raise UsageError(f"{nothing}\n{found}" if found else nothing, hint="weir locust runs it")
        return Conversion(
            plan=LoadPlan(
                request=Request("GET", f"{url.scheme}://{url.netloc}"),
                load=ClosedLoad(_users(given.users, given.spawn_rate), think, pace_s=pace_s),
                duration_s=_DURATION_S if given.run_time is None else given.run_time,
                timeout_s=_TIMEOUT_S,
            ),
            scenario=validate(Scenario, content, path=self._path),
            gaps=sorted(self._gaps, key=lambda gap: int(gap.where.rpartition(":")[2])),
            notes=[*self._notes(given)],
        )

    def _notes(self, given: argparse.Namespace) -> Iterator[str]:
        yield "a closed loop, as Locust's users are: a server that is slow is asked less"
        yield "Locust follows redirects; here a redirect is an answer, and a right one"
        if given.run_time is None:
            yield f"-t is not given, and Locust would go on until it is stopped: here {_DURATION_S:g} s"

    def _user(self, chosen: Sequence[str]) -> ast.ClassDef:
        classes = {node.name: node for node in self._tree.body if isinstance(node, ast.ClassDef)}
        for node in classes.values():
            if old := [base for base in _bases(node) if base in _OLD_USERS]:
                new = old[0].replace("HttpLocust", "HttpUser")
                raise UsageError(
                    f"{self._path}:{node.lineno}: found {old[0]}, of Locust before 1.0; expected {new}, with tasks as @task methods",
                    hint=f"class {node.name}({new}), and wait_time = between(1, 5) in place of min_wait and max_wait",
                )
        users = [node for node in classes.values() if any(base in _USERS for base in _bases(node))]
        if unknown := [name for name in chosen if name not in classes]:
            raise UsageError(f"locust: found {unknown[0]!r}, expected a user class: {', '.join(one.name for one in users)}", hint=_USAGE)
        users = [node for node in users if not chosen or node.name in chosen]
        if not users:
            raise UsageError(f"{self._path}: found no class of {' or '.join(_USERS)}, expected one", hint=_USAGE)
        for other in users[1:]:
            self._say(other, f"found a second user class {other.name}: a load has users of one kind, here {users[0].name}; name the one")
        return users[0]

    def _tasks(self, user: ast.ClassDef, prefix: str) -> Iterator[tuple[str, int, list[dict[str, Any]]]]:
        """Name, weight and requests of each task that can be said."""
        for node in user.body:
            match node:
                case ast.FunctionDef() if (weight := _weight(node)) is not None:
                    try:
                        steps = [step for statement in node.body for step in self._steps(statement, prefix)]
                    except _UnsaidError as unsaid:
                        self._gaps[Gap(f"{self._path}:{unsaid.line}", unsaid.what)] = None
                    else:
                        if steps:
                            yield node.name, weight, steps
                case ast.ClassDef():
                    self._say(node, f"found a class {node.name} in a user: a scenario has one level of tasks")
                case ast.Assign(targets=[ast.Name("tasks")]):
                    self._say(node, "found a list of tasks: a scenario has those with @task")

    def _content(
        self, user: ast.ClassDef, tasks: Sequence[tuple[str, int, list[dict[str, Any]]]]
    ) -> tuple[dict[str, Any], Think | None, float | None]:
        """The scenario, and how a user waits: what each does one after the other where there is one task, else one of several."""
        think, pace_s = self._wait(user)
        if len(tasks) == 1:
            _, _, steps = tasks[0]
            if len(steps) == 1:
                return {"steps": steps}, think, pace_s
            if pace_s is not None:
                self._say(user, "found a pace with several requests in a task: a pace is that of requests")
            if think is not None:
                steps[-1] |= {"think": think.to_plan()}
            return {"steps": steps}, None, None
        requests = []
        for name, weight, steps in tasks:
            if len(steps) == 1:
                requests.append(steps[0] | {"weight": weight})
            else:
                task = _method(user, name)
                assert task is not None
                self._say(task, f"found {len(steps)} requests in the task {name}, which is one of several: each such has one request")
        return ({"requests": requests} if requests else {}), think, pace_s

    def _wait(self, user: ast.ClassDef) -> tuple[Think | None, float | None]:
        """The pause after a task, and the least time from one to the next."""
        node = _assigned(user, "wait_time")
        if node is None:
            return None, None
        try:
            match node:
                case ast.Call(ast.Name("between"), [low, high]):
                    return Think(self._number(low), self._number(high)), None
                case ast.Call(ast.Name("constant"), [seconds]):
                    pause_s = self._number(seconds)
                    return (Think(pause_s, pause_s) if pause_s else None), None
                case ast.Call(ast.Name("constant_pacing"), [seconds]):
                    return None, self._number(seconds) or None
                case ast.Call(ast.Name("constant_throughput"), [rate]) if self._number(rate) > 0:
                    return None, 1 / self._number(rate)
            self._say(node, f"found wait_time = {ast.unparse(node)}, expected between, constant, constant_pacing or constant_throughput")
        except _UnsaidError as unsaid:
            self._say(node, unsaid.what)
        return None, None

    # --- Requests

    def _steps(self, statement: ast.stmt, prefix: str) -> Iterator[dict[str, Any]]:
        match statement:
            case ast.Expr(ast.Constant()) | ast.Pass():
                return
            case ast.Expr(ast.Call() as call) | ast.Assign(value=ast.Call() as call) if method := _client_method(call):
                if isinstance(statement, ast.Assign):
                    raise _UnsaidError(statement, f"found {ast.unparse(statement)[:60]!r}: what becomes of the answer is not read")
                yield self._step(call, method, prefix)
            case ast.For(target=ast.Name(name), iter=ast.Call(ast.Name("range"), bounds)):
                numbers = range(*(int(self._number(bound)) for bound in bounds))
                if len(numbers) > 100:
                    raise _UnsaidError(statement, f"found a loop of {len(numbers):,} rounds, expected at most 100")
                for number in numbers:
                    self._constants[name] = number
                    for inner in statement.body:
                        yield from self._steps(inner, prefix)
            case _:
                text = ast.unparse(statement).splitlines()[0]
                raise _UnsaidError(statement, f"found {text[:60]!r}: only Python can say it, and weir locust runs it")

    def _step(self, call: ast.Call, method: str, prefix: str) -> dict[str, Any]:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if unknown := [name for name in given if name not in _TAKEN]:
            raise _UnsaidError(call, f"found {unknown[0]}= in a request, which a step does not have")
        if not 1 <= len(call.args) <= 2:
            raise _UnsaidError(call, f"found {ast.unparse(call)[:60]!r}, expected a path")
        path = self._text(call.args[0])
        if not path.startswith("/"):
            raise _UnsaidError(call, f"found {path!r}, expected a path from / on: all requests go to one host")
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
            raise _UnsaidError(call, "found {{ in a request, where a scenario has placeholders")
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
            raise _UnsaidError(node, f"found {ast.unparse(node)[:60]!r}, expected a text")
        return str(value)

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value) if value is None or isinstance(value, str | int | float):
                return value
            case ast.Name(name) if name in self._constants:
                return self._constants[name]
            case ast.Dict(keys, values):
                return {self._text(key): self._value(value) for key, value in zip(keys, values, strict=True) if key is not None}
            case ast.List(items) | ast.Tuple(items):
                return [self._value(item) for item in items]
            case ast.JoinedStr():
                return self._text(node)
            case ast.UnaryOp(ast.USub(), operand) if isinstance(number := self._value(operand), int | float):
                return -number
        raise _UnsaidError(node, f"found {ast.unparse(node)[:60]!r}, which is not known beforehand")

    def _object(self, node: ast.expr | None) -> Mapping[str, Any]:
        value = {} if node is None else self._value(node)
        if not isinstance(value, dict):
            raise _UnsaidError(node or self._tree, f"found {value!r}, expected names and values")
        return value

    def _number(self, node: ast.expr) -> float:
        value = self._value(node)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise _UnsaidError(node, f"found {ast.unparse(node)[:60]!r}, expected a number")
        return value

    def _attribute(self, user: ast.ClassDef, name: str) -> Any:
        node = _assigned(user, name)
        try:
            return None if node is None else self._value(node)
        except _UnsaidError as unsaid:
            self._say(node or user, unsaid.what)
            return None

    def _say(self, node: ast.AST, what: str) -> None:
        self._gaps[Gap(f"{self._path}:{getattr(node, 'lineno', 1)}", what)] = None


def _parsed(path: Path) -> ast.Module:
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
        raise UsageError(f"{path}: nested too deep, expected a locustfile that people read") from None


def _constants(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Constant(value)):
                yield name, value


def _bases(node: ast.ClassDef) -> list[str]:
    return [base.attr if isinstance(base, ast.Attribute) else base.id for base in node.bases if isinstance(base, ast.Attribute | ast.Name)]


def _weight(node: ast.FunctionDef) -> int | None:
    """The weight of a task; None of another method."""
    for decorator in node.decorator_list:
        match decorator:
            case ast.Name("task"):
                return 1
            case ast.Call(ast.Name("task"), [ast.Constant(int(weight))]) if weight >= 1:
                return weight
            case ast.Call(ast.Name("task"), []):
                return 1
    return None


def _client_method(call: ast.Call) -> str | None:
    match call.func:
        case ast.Attribute(ast.Attribute(ast.Name("self"), "client"), method) if method in _CLIENTS:
            return method
    return None


def _method(user: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((node for node in user.body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _assigned(user: ast.ClassDef, name: str) -> ast.expr | None:
    for node in user.body:
        match node:
            case ast.Assign(targets=[ast.Name(found)], value=value) if found == name:
                return value
    return None


def _users(users: int, spawn_rate: float) -> Profile:
    """Users who come one by one: at a rate at which all are there within a second they come at once."""
    ramp_s = users / spawn_rate
    return float(users) if ramp_s <= 1 else ((0.0, 0.0), (ramp_s, float(users)))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"locust: {message}", hint=_USAGE)


def _run_time(text: str) -> float:
    seconds = duration_of(f"{text}s" if text.isdigit() else text)
    if not seconds:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a time such as 90, 30s or 1h30m")
    return seconds


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number above 0")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e9:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number above 0")
    return rate


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    parser.add_argument("-f", "--locustfile")
    parser.add_argument("-H", "--host")
    parser.add_argument("-u", "--users", type=_count, default=1)
    parser.add_argument("-r", "--spawn-rate", type=_rate, default=1.0)
    parser.add_argument("-t", "--run-time", type=_run_time)
    # They change where Locust prints, and what.
    for silent in (("--headless",), ("--only-summary",), ("--autostart",)):
        parser.add_argument(*silent, action="store_true")
    for told in (("--csv",), ("--html",), ("-L", "--loglevel")):
        parser.add_argument(*told)
    return parser
