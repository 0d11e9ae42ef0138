"""k6 scripts, read without being run: what their users do as a scenario, how they come as a load, thresholds as objectives.

`source` parses, `interpreter` and `expressions` read what JavaScript says, `api` and `users` what k6 makes of it, `options` how users come.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tree_sitter import Node

from weir.compat.conversion import Conversion, Gap, duration_of
from weir.compat.k6.api import module_of, names
from weir.compat.k6.expressions import OutOfFuelError
from weir.compat.k6.interpreter import Interpreter
from weir.compat.k6.options import Execution, Shortcuts, execution_of, objectives_of
from weir.compat.k6.source import UnsaidError, line_of, parse_script
from weir.compat.k6.users import Users
from weir.compat.k6.values import Function, Undefined, Unknown, Value, is_plain
from weir.model.errors import UsageError
from weir.model.load import LoadPlan, OpenLoad, Request, Tls
from weir.scenario import Scenario
from weir.toml_file import validate

_TIMEOUT_S = 60.0
_USAGE = "weir convert k6 script.js -e NAME=VALUE --vus 10 --duration 30s"


def read(arguments: Sequence[str]) -> Conversion:
    """What `k6 run` would do with these arguments.

    Raises:
        UsageError: an argument, the script or an option is none that k6 takes.
    """
    given = _parser().parse_args(arguments[1:] if arguments[:1] == ["run"] else arguments)
    path = Path(given.script)
    environment = dict(_pair(text) for text in given.env)
    shortcuts = Shortcuts(given.vus, given.duration, given.iterations, [_stage(text) for part in given.stage for text in part.split(",")])
    try:
        return _Script(path, environment).conversion(shortcuts, given.only)
    except OutOfFuelError as error:
        raise UsageError(f"{path}:{error}: found a loop that goes on and on, expected one that ends soon") from None
    except RecursionError:
        raise UsageError(f"{path}: nested too deep, expected a script that people read") from None


class _Script:
    """A script, and what has been found in it."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path = path
        self._gaps: dict[Gap, None] = {}
        self._program = parse_script(path)
        self._users = Users(self._say)
        self._names = names(environment, path.parent, self._users)
        self._interpreter = Interpreter(self._names, module_of(self._users), self._users.one_of, self._say)
        self._users.call = self._interpreter.call

    def conversion(self, shortcuts: Shortcuts, only: str | None) -> Conversion:
        """All of it in weir's terms."""
        self._interpreter.run(self._program)
        options = self._interpreter.exports.get("options", {})
        if not isinstance(options, dict):
            options = {}
        options = {key: value for key, value in options.items() if self._is_known(key, value)}
        try:
            execution = execution_of(options, shortcuts, only, self._say_option)
        except UsageError as error:
            raise UsageError(f"{self._path}: {error.message}", hint=error.hint) from None
        self._names["__ENV"].update(execution.environment)
        self._do(execution)
        return Conversion(
            scenario=self._scenario(execution, options),
            plan=self._plan(execution, options),
            notes=self._notes(execution),
            files=self._users.files,
            objectives=objectives_of(options.get("thresholds"), self._say_option),
            gaps=tuple(self._gaps),
        )

    def _do(self, execution: Execution) -> None:
        """Has a user do one iteration."""
        exports = self._interpreter.exports
        for name in ("setup", "teardown"):
            if isinstance(exports.get(name), Function):
                self._say(exports[name].node, f"found {name}(): a load has nothing that is done once")
        function = exports.get(execution.function)
        if not isinstance(function, Function):
            raise UsageError(
                f"{self._path}: found no function {execution.function!r} that it exports, expected what a user does",
                hint="export default function () { http.get('http://127.0.0.1:8000/') }",
            )
        self._users.begin()
        data = Unknown() if "setup" in exports else Undefined("there is no setup() that gives something")
        try:
            self._interpreter.call(function, [data], function.node)
            self._users.end()
        except UnsaidError as unsaid:
            if not unsaid.told:
                self._say(unsaid.node, unsaid.what)
        if len(self._users.steps) > 1:
            for node in self._users.counts_iterations:
                self._say(node, "found the number of an iteration: {{seq}} counts requests, which is the same with one request in each")

    def _scenario(self, execution: Execution, options: Mapping[str, Value]) -> Scenario:
        steps = self._users.steps
        if not steps:
            found = "\n".join(f"  {gap}" for gap in self._gaps)
            raise UsageError(f"{self._path}: found no request that weir can make" + (f"\n{found}" if found else ""), hint=_USAGE)
        if isinstance(execution.rate, tuple | float | int) and len(steps) == 1:
            # Whoever comes at a rate and asks once leaves then.
            steps[0].think = None
        tables = [step.table() for step in steps]
        if isinstance(agent := options.get("userAgent"), str):
            tables = [table | {"headers": {"User-Agent": agent} | table.get("headers", {})} for table in tables]
        content: dict[str, Any] = {"steps": tables, "cookies": "user" if options.get("noCookiesReset") else "round"}
        content |= {"feeders": self._users.feeders} if self._users.feeders else {}
        return validate(Scenario, content, path=self._path)

    def _plan(self, execution: Execution, options: Mapping[str, Value]) -> LoadPlan:
        steps = self._users.steps
        if len(self._users.timeouts_s) > 1:
            self._say(steps[0].node, "found requests with different timeouts: a load has one, here the longest")
        return LoadPlan(
            request=Request("GET", self._users.origin),
            load=execution.load(len(steps), self._pace_s(execution, options)),
            duration_s=execution.duration_s,
            timeout_s=max(self._users.timeouts_s, default=_TIMEOUT_S),
            requests=None if execution.iterations is None else execution.iterations * len(steps),
            keep_alive=not options.get("noConnectionReuse"),
            tls=Tls(insecure=True) if options.get("insecureSkipTLSVerify") and self._users.origin.startswith("https") else None,
        )

    def _pace_s(self, execution: Execution, options: Mapping[str, Value]) -> float | None:
        text = options.get("minIterationDuration")
        pace_s = duration_of(text) if isinstance(text, str) else None
        if pace_s and (execution.users is None or len(self._users.steps) > 1):
            self._say_option("options.minIterationDuration", "found with several requests in an iteration: a pace is that of requests")
            return None
        return pace_s

    def _notes(self, execution: Execution) -> list[str]:
        load = execution.load(len(self._users.steps), None)
        notes = ["k6 follows redirects; here a redirect is an answer, and a right one"]
        notes += ["k6 counts failed checks beside requests; here a request whose check fails has failed"] if self._users.has_checks else []
        if isinstance(load, OpenLoad):
            notes.append("k6 drops iterations for which no user is free; here they wait, and response times count from when they were due")
        else:
            notes.append("a closed loop, as k6's users are: a server that is slow is asked less")
        if execution.iterations is not None and len(self._users.steps) > 1:
            notes.append("the load ends with the last of all requests, and the users are not all at the end of an iteration by then")
        notes += ["pauses of whole seconds became pauses of any length between the same bounds"] if self._users.has_whole_pauses else []
        return notes

    def _is_known(self, key: str, value: Value) -> bool:
        if not is_plain(value):
            self._say_option(f"options.{key}", "found a value that is not known beforehand")
        return is_plain(value)

    def _say(self, node: Node, what: str) -> None:
        self._gaps[Gap(f"{self._path}:{line_of(node)}", what)] = None

    def _say_option(self, key: str, what: str) -> None:
        self._gaps[Gap(f"{self._path}: {key}", what)] = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"k6: {message}", hint=_USAGE)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("script")
    parser.add_argument("-e", "--env", action="append", default=[])
    parser.add_argument("-u", "--vus", type=int)
    parser.add_argument("-d", "--duration")
    parser.add_argument("-i", "--iterations", type=int)
    parser.add_argument("-s", "--stage", action="append", default=[])
    parser.add_argument("--only")
    # They change what k6 prints.
    for silent in (("-q", "--quiet"), ("--no-color",), ("--no-summary",), ("--no-usage-report",)):
        parser.add_argument(*silent, action="store_true")
    for told in (("-o", "--out"), ("--summary-export",), ("--tag",)):
        parser.add_argument(*told, action="append")
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"-e: found {text!r}, expected NAME=VALUE")
    return name, value


def _stage(text: str) -> dict[str, Any]:
    duration, colon, target = text.partition(":")
    if not colon or not target.isdigit():
        raise UsageError(f"-s/--stage: found {text!r}, expected DURATION:TARGET, as 30s:100")
    return {"duration": duration, "target": int(target)}
