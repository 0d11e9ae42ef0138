"""Locust's command line: its flags, their variables of the environment and `locust.conf`, and a few flags of weir's own.

The parent reads it to know what to do, and every worker again with the flags that the locustfile adds (`events.init_command_line_parser`).
"""

import argparse
import os
import re
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from weir.model.errors import UsageError

CONFIG_FILES = ("~/.locust.conf", "locust.conf")
HINT = "weir locust --help"
_TIMESPAN = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?")
_TRUE, _FALSE = ("true", "yes", "1", "on"), ("false", "no", "0", "off", "")

_WORKERS = "weir locust starts its workers itself, on this machine; --processes N says how many"
_PAGE = "weir's page needs none of it; docs/guides/live.md says who can see it"
_ELSEWHERE = {
    **dict.fromkeys(
        ("--master", "--worker", "--slave", "--master-host", "--master-port", "--master-bind-host", "--master-bind-port",
         "--expect-workers", "--expect-workers-max-wait", "--expect-slaves", "--enable-rebalancing"),
        _WORKERS,
    ),
    **dict.fromkeys(("--web-auth", "--web-login", "--tls-cert", "--tls-key", "--class-picker", "--autoquit", "--modern-ui"), _PAGE),
    **dict.fromkeys(("--json", "--json-file"), "weir's is --out FILE.weir, and then weir report FILE.weir --json"),
    "--hatch-rate": "of the locustio of 2019; now -r/--spawn-rate",
    "--no-web": "of the locustio of 2019; now --headless",
    **dict.fromkeys(("-c", "--clients"), "of the locustio of 2019; now -u/--users"),
    **dict.fromkeys(("-n", "--num-request"), "of the locustio of 2019; now -t/--run-time, or StopUser in a task"),
    **dict.fromkeys(("--show-task-ratio", "--show-task-ratio-json"), "weir has no such table; --list shows the classes"),
    "--reset-stats": "weir keeps every request with its time; weir report shows how they went over time",
    "--config-users": "weir takes weight, fixed_count and host from the classes of the file",
    "--otel": "weir sends its figures nowhere; --out FILE.weir keeps them",
}  # fmt: skip


class Parser(argparse.ArgumentParser):
    """As Locust's: an argument may name its variable of the environment, and whether its web page shows it."""

    def __init__(self) -> None:
        super().__init__(prog="weir locust", add_help=False, usage=SUPPRESS, allow_abbrev=False)
        self.variables: dict[str, argparse.Action] = {}

    def add_argument(self, *names: Any, env_var: str = "", include_in_web_ui: bool = True, is_secret: bool = False, **settings: Any) -> Any:
        """As argparse's."""
        action = super().add_argument(*names, **settings)
        if env_var:
            self.variables[env_var] = action
        return action

    def error(self, message: str) -> NoReturn:
        """Says what is wrong.

        Raises:
            UsageError: always.
        """
        raise UsageError(message, hint=HINT)


def timespan_s(text: str) -> float:
    """Seconds in Locust's `10`, `300s`, `20m`, `3h` or `1h30m`.

    >>> timespan_s("1m30s")
    90.0

    Raises:
        UsageError: it is none of these.
    """
    match = _TIMESPAN.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise UsageError(f"found {text!r}, expected a time such as 10, 300s, 20m, 3h or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def _timespan(flag: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            return timespan_s(text)
        except UsageError as error:
            raise UsageError(f"{flag}: {error.message}", hint=HINT) from None

    return read


def parser() -> Parser:
    """All flags, without those that a locustfile adds."""
    of_all = Parser()
    add = of_all.add_argument
    add(
        "-f",
        "--locustfile",
        default="locustfile",
        metavar="FILE",
        env_var="LOCUST_LOCUSTFILE",
        help="The file, several with commas between, or a folder of them. Default: locustfile.py here or above.",
    )
    add("--config", metavar="FILE", help="Flags from this file as well: key = value.")
    add("-H", "--host", metavar="URL", env_var="LOCUST_HOST", help="Where to: http://127.0.0.1:8000")
    add("-u", "--users", type=int, dest="num_users", metavar="N", env_var="LOCUST_USERS", help="How many users. Default: 1.")
    add(
        "-r",
        "--spawn-rate",
        type=float,
        metavar="R",
        env_var="LOCUST_SPAWN_RATE",
        help="How many of them come in a second, until all are there. Default: 1.",
    )
    add(
        "-t",
        "--run-time",
        type=_timespan("-t/--run-time"),
        metavar="T",
        env_var="LOCUST_RUN_TIME",
        help="How long: 300s, 20m, 1h30m. Default: until Ctrl-C, at most a day.",
    )
    add("-l", "--list", action="store_true", dest="list_commands", help="Show the user classes of the file, and nothing else.")
    add("--headless", action="store_true", env_var="LOCUST_HEADLESS", help="No page in a browser.")
    add("--autostart", action="store_true", env_var="LOCUST_AUTOSTART", help="What weir does anyway: begin at once.")
    add("--headful", action="store_true", help=SUPPRESS)
    add("--web-host", default="", metavar="ADDRESS", env_var="LOCUST_WEB_HOST", help="Where the page listens. Default: loopback.")
    add("-P", "--web-port", type=int, metavar="PORT", env_var="LOCUST_WEB_PORT", help="Its port. Default: a free one.")
    add("-T", "--tags", nargs="*", metavar="TAG", env_var="LOCUST_TAGS", help="Only tasks with one of these tags.")
    add("-E", "--exclude-tags", nargs="*", metavar="TAG", env_var="LOCUST_EXCLUDE_TAGS", help="No tasks with one of these tags.")
    add("--equal-weights", action="store_true", help="Every task as likely as every other.")
    add(
        "--csv",
        dest="csv_prefix",
        metavar="PREFIX",
        env_var="LOCUST_CSV",
        help="Write PREFIX_stats.csv, _stats_history.csv, _failures.csv and _exceptions.csv.",
    )
    add(
        "--csv-full-history",
        action="store_true",
        dest="stats_history_enabled",
        env_var="LOCUST_CSV_FULL_HISTORY",
        help="The history of each name, and not only of all together.",
    )
    add("--print-stats", action="store_true", env_var="LOCUST_PRINT_STATS", help="The table every two seconds, without --headless too.")
    add("--only-summary", action="store_true", env_var="LOCUST_ONLY_SUMMARY", help="The tables at the end only.")
    add("--html", dest="html_file", metavar="FILE", env_var="LOCUST_HTML", help="Write weir's report of the load to this file.")
    add("--skip-log-setup", action="store_true", env_var="LOCUST_SKIP_LOG_SETUP", help="Logging is as the file sets it up.")
    add("-L", "--loglevel", default="INFO", metavar="LEVEL", env_var="LOCUST_LOGLEVEL", help="DEBUG, INFO, WARNING, ERROR or CRITICAL.")
    add("--logfile", metavar="FILE", env_var="LOCUST_LOGFILE", help="Where the file's logging goes. Default: standard error.")
    add(
        "--exit-code-on-error",
        type=int,
        default=1,
        metavar="CODE",
        env_var="LOCUST_EXIT_CODE_ON_ERROR",
        help="The exit code when a request failed or a task raised something. Default: 1.",
    )
    add(
        "-s",
        "--stop-timeout",
        type=_timespan("-s/--stop-timeout"),
        default=0.0,
        metavar="T",
        env_var="LOCUST_STOP_TIMEOUT",
        help="How long users may take to finish their tasks at the end. Default: 0.",
    )
    add(
        "--processes",
        type=int,
        metavar="N",
        env_var="LOCUST_PROCESSES",
        help="Worker processes; -1: as many as CPUs. Default: a CPU less than there are.",
    )
    add("--out", metavar="PATH", help="weir's: keep the load in this new file NAME.weir, or in a folder, for weir report.")
    add("--live", action="store_true", help="weir's: the page in a browser with --headless too.")
    add("--strict", action="store_true", help="weir's: exit with 4 when the result is not valid.")
    add("-V", "--version", action="store_true", help="Show the version.")
    add("-h", "--help", action="store_true", help="Show this.")
    add("user_classes", nargs="*", metavar="UserClass", help="User classes of the file; none: all that are not abstract.")
    return of_all  # fmt: skip


def read(
    arguments: Sequence[str], of_all: Parser | None = None, environment: Mapping[str, str] = os.environ, *, knows_all: bool = False
) -> Namespace:
    """A command line, with what files and variables add: the command line goes before variables, they before files.

    Args:
        arguments: what stands behind `weir locust`.
        of_all: the parser, with the flags that the locustfile has added; None: without.
        environment: variables.
        knows_all: whether a flag that is not known is wrong.

    Raises:
        UsageError: something in it is wrong, or not weir's.
    """
    of_all = of_all or parser()
    _refuse(arguments)
    first, _ = of_all.parse_known_intermixed_args(list(arguments))
    by_name = {name.lstrip("-"): action for action in of_all._actions for name in action.option_strings if name.startswith("--")}
    for path, key, text in _configured(first.config):
        if key not in by_name:
            raise UsageError(f"{path}: found the key {key!r}, expected the long name of a flag", hint=HINT)
        _set(of_all, by_name[key], text, f"{path}: {key}")
    for variable, action in of_all.variables.items():
        if variable in environment:
            _set(of_all, action, environment[variable], variable)
    values, unknown = of_all.parse_known_intermixed_args(list(arguments))
    if knows_all and unknown:
        raise UsageError(f"found {' '.join(unknown)}, expected flags of Locust or of the locustfile", hint=HINT)
    if values.headful:
        values.headless = False
    if values.stats_history_enabled and values.csv_prefix is None:
        raise UsageError("--csv-full-history: found without --csv, expected both", hint="--csv PREFIX")
    for flag, value in (("-u/--users", values.num_users), ("-r/--spawn-rate", values.spawn_rate), ("-t/--run-time", values.run_time)):
        if value is not None and value <= 0:
            raise UsageError(f"{flag}: found {value:g}, expected a number above 0", hint=HINT)
    return values


def _refuse(arguments: Sequence[str]) -> None:
    for argument in arguments:
        name = argument.partition("=")[0]
        if name in _ELSEWHERE:
            raise UsageError(f"{name}: {_ELSEWHERE[name]}", hint=HINT)


def _configured(named: str | None) -> Iterator[tuple[Path, str, str]]:
    """(file, key, value) of all files of flags, those that go before others later."""
    paths = [Path(name).expanduser() for name in CONFIG_FILES]
    found = [path for path in paths if path.is_file()] + ([Path(named)] if named else [])
    for path in found:
        try:
            lines = path.read_text().splitlines()
        except OSError as error:
            raise UsageError(f"--config: {path}: cannot be read: {error.strerror}") from None
        for line in lines:
            match = re.fullmatch(r"\s*(?:--)?([\w-]+)\s*(?:[=:\s]\s*(.*?))?\s*", line)
            if match and not line.lstrip().startswith(("#", ";", "[")):
                yield path, match[1], (match[2] or "true").strip("\"'")


def _set(of_all: Parser, action: argparse.Action, text: str, where: str) -> None:
    if action.nargs == 0:
        if text.lower() not in (*_TRUE, *_FALSE):
            raise UsageError(f"{where}: found {text!r}, expected true or false")
        value: Any = text.lower() in _TRUE
    elif action.nargs == "*":
        value = text.strip("[]").replace(",", " ").split()
    else:
        try:
            value = action.type(text) if callable(action.type) else text
        except ValueError:
            raise UsageError(f"{where}: found {text!r}, expected a number") from None
    of_all.set_defaults(**{action.dest: value})


def locustfiles(named: str, folder: Path) -> list[Path]:
    """The files that `-f` names: one, also without its suffix or in a folder above; several; or all of a folder.

    Raises:
        UsageError: there is none.
    """
    names = [name.strip() for name in named.split(",") if name.strip()]
    found: list[Path] = []
    for name in names or [""]:
        path = Path(name).expanduser()
        if (folder / path).is_dir():
            found += sorted(one for one in (folder / path).rglob("*.py") if not one.name.startswith("_"))
            continue
        written = path if path.suffix == ".py" else path.with_name(f"{path.name}.py")
        places = [folder, *folder.parents] if written.parent == Path() else [folder]
        here = next((place / written for place in places if (place / written).is_file()), None)
        if here is None:
            raise UsageError(f"-f/--locustfile: {written}: found no such file, expected a locustfile", hint="weir locust -f FILE.py")
        found.append(here)
    if not found:
        raise UsageError(f"-f/--locustfile: {named}: found no file in it that ends with .py", hint="weir locust -f FILE.py")
    for one in found:
        if one.name == "locust.py":
            raise UsageError(f"-f/--locustfile: {one}: found this name, expected another: the file imports locust, and would import itself")
    return found
