"""Options and arguments that several commands share (`options.Json`), and the parsing of their values."""

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from typer import Argument, Option

from weir.cli.completion import studies
from weir.load_spec import SETTINGS, Setting
from weir.model.errors import InvalidValueError, UsageError

T = TypeVar("T")

STUDY = Argument(metavar="STUDY", help="Name of a study of weir, or a study file NAME.toml.", autocompletion=studies)
Run = Annotated[Path, Argument(metavar="RUN", help="Run folder or run file.")]
Json = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
JsonFile = Annotated[
    str | None, Option("--json", metavar="FILE", help="Write the result as JSON to FILE (- is standard output).")
]
Quiet = Annotated[bool, Option("-q", "--quiet", help="Print only the result, and no progress.")]
Strict = Annotated[bool, Option("--strict", help="Exit with 4 if the result is not valid.")]
Scale = Annotated[
    str | None,
    Option(
        "--scale",
        help="Size of the study: quick (minutes), evidence (enough for a claim), article (enough for a publication), or a "
        "scale that the study defines.",
    ),
]
Objective = Annotated[
    str | None, Option("--objective", help="Limit of a response-time percentile. Example: 'p99<=50ms'.")
]
Metrics = Annotated[
    list[str] | None,
    Option("--metric", help="Metric to compare; repeatable. Default: throughput, p99 and CPU per request."),
]
KeepLoad = Annotated[
    str | None,
    Option("--out", metavar="PATH", help="Save the result for weir report. PATH is a new file NAME.weir or a folder."),
]
Live = Annotated[bool, Option("--live", help="Show progress on a page in a browser, and print the page's address.")]
Listen = Annotated[
    str | None,
    Option("--listen", metavar="ADDRESS", help="Serve the page on ADDRESS[:PORT]. Default: loopback, any free port."),
]
Cluster = Annotated[
    str | None,
    Option(
        "--cluster",
        metavar="ADDRESS",
        help="Send the load from the Ray cluster with this head node (HOST:PORT, or auto). See docs/guides/cluster.md.",
    ),
]
Agents = Annotated[
    int | None,
    Option(
        "--agents", min=1, help="With --cluster: number of agents. Default: one on each node that offers weir_load."
    ),
]
AgentThreads = Annotated[
    str | None,
    Option(
        "--agent-threads",
        help="With --cluster: threads of each agent. An agent with twice the threads makes twice the load. Example: 2,1,1. "
        "Default: equal.",
    ),
]
ShareNodes = Annotated[bool, Option("--share-nodes", help="With --cluster: allow several agents on one node.")]


def with_load_settings(*names: str, **helps: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds options for the named settings of `LoadSpec` (default: all settings) to a command. The command's argument
    `given` receives the texts. `helps` replaces the help of some settings."""
    chosen = {name: replace(SETTINGS[name], help=helps.get(name, SETTINGS[name].help)) for name in names or SETTINGS}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_settings(**values: Any) -> None:
            command(given={name: values.pop(name) for name in chosen}, **values)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if parameter.name == "given":
                parameters += [_option(name, setting) for name, setting in chosen.items()]
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        # Typer reads the signature and the annotations.
        with_settings.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_settings.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_settings

    return decorate


def _option(name: str, setting: Setting) -> inspect.Parameter:
    type_: Any = bool if not setting.metavar else list[str] | None if setting.repeats else str | None
    option = Option(*setting.flags.split("/"), help=setting.help, metavar=setting.metavar or None)
    default = None if setting.metavar else False
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[type_, option])


def read_flag(flag: str, parse: Callable[[str], T], text: str) -> T:
    """Returns the value of a flag. Raises UsageError if `parse` cannot read the text."""
    try:
        return parse(text)
    except InvalidValueError as error:
        raise error.at(flag) from None


def parse_percent(text: str) -> float:
    """Parses a percentage such as `5%`, and returns the share."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
    if match is None or not 0 < float(match[1]) < 100:
        raise InvalidValueError(text, "a percentage such as 5%, above 0 and below 100")
    return float(match[1]) / 100


def parse_counts(text: str) -> tuple[int, ...]:
    """Parses whole numbers such as `2,1,1`."""
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InvalidValueError(text, "whole numbers of at least 1, such as 2,3")
    return tuple(map(int, parts))


def choose_metrics(asked: list[str] | None, usual: Sequence[str], command: str) -> Sequence[str]:
    """Returns the metrics of `--metric`, or `usual` if the user names none. Raises UsageError for an unknown metric."""
    from weir.findings.metrics import BY_KEY

    for metric in asked or ():
        if metric not in BY_KEY:
            expected = f"expected one of {', '.join(BY_KEY)}"
            raise UsageError(f"--metric: found {metric!r}, {expected}", hint=f"weir {command} --help")
    return asked or usual


def check_listen(live: bool, listen: str | None) -> None:
    """Raises UsageError if the user gave `--listen` without `--live`."""
    if listen is not None and not live:
        raise UsageError(f"--listen: found {listen!r} without --live, expected both", hint="add --live")
