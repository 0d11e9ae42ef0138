"""Generates docs/reference/cli.md from the docstrings, arguments and options of the commands' functions.

The caller passes the commands, because no other code may import `weir.cli`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import typer
from typer.models import ArgumentInfo, OptionInfo

from scripts.reference.tables import table

Function = Callable[..., None]

_HEAD = """\
# The commands

<!-- Made by `make reference` from src/weir/cli. Change the docstrings and the helps of the options there. -->

`weir` without arguments shows a few commands for the beginning. `weir --version` prints the version. Every command has `--help`. Exit
codes of all commands: [exit-codes.md](exit-codes.md).
"""
_EXAMPLE = "Example: "


def page(commands: Mapping[str, typer.Typer | Function]) -> str:
    """Returns the page.

    Args:
        commands: the commands by name, in the page's order.
    """
    parts = [_HEAD]
    for name, found in commands.items():
        if isinstance(found, typer.Typer):
            parts.append(f"## `weir {name}`\n\n{found.info.help}\n")
            for below in found.registered_commands:
                assert below.callback is not None
                parts.append(_section(f"weir {name} {below.name or below.callback.__name__}", below.callback, "###"))
        else:
            parts.append(_section(f"weir {name}", found, "##"))
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class _Argument:
    name: str
    is_required: bool
    meaning: str

    @property
    def usage(self) -> str:
        return self.name if self.is_required or self.name.startswith("[") else f"[{self.name}]"


@dataclass(frozen=True, slots=True)
class _Option:
    names: tuple[str, ...]
    value: str
    default: str
    meaning: str


def _section(title: str, function: Function, level: str) -> str:
    taken = list(_taken(function))
    arguments = [one for one in taken if isinstance(one, _Argument)]
    options = [one for one in taken if isinstance(one, _Option)]
    usage = [title, *(["[OPTION]..."] if options else []), *(argument.usage for argument in arguments)]
    parts = [f"{level} `{title}`\n", f"```\n{' '.join(usage)}\n```\n", *_paragraphs(inspect.getdoc(function) or "")]
    if arguments:
        rows = ([f"`{one.name}`", "required" if one.is_required else "–", one.meaning] for one in arguments)
        parts.append(table(["argument", "default", "meaning"], rows))
    if options:
        of_options = (
            [", ".join(f"`{name}`" for name in one.names), one.value, one.default, one.meaning] for one in options
        )
        parts.append(table(["option", "value", "default", "meaning"], of_options))
    return "\n".join(parts)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield (
            f"```sh\n{paragraph.removeprefix(_EXAMPLE)}\n```\n" if paragraph.startswith(_EXAMPLE) else f"{paragraph}\n"
        )


def _taken(function: Function) -> Iterator[_Argument | _Option]:
    """Yields the arguments and visible options of a command, in the order of the function's parameters."""
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        kind, info = get_args(parameter.annotation)
        is_required = parameter.default is inspect.Parameter.empty
        match info:
            case ArgumentInfo():
                name = info.metavar or parameter.name.upper() + ("..." if _is_list(kind) else "")
                yield _Argument(name, is_required, info.help or "")
            case OptionInfo() if not info.hidden:
                # In `Annotated`, typer stores an option's first name in `default`.
                names = tuple(name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str))
                default = (
                    "required"
                    if is_required
                    else "–"
                    if parameter.default is None or parameter.default is False
                    else f"`{parameter.default}`"
                )
                yield _Option(names, _value(kind, info), default, info.help or "")


def _value(kind: Any, info: OptionInfo) -> str:
    """Returns the kind of an option's value in words."""
    if _is_list(kind):
        (of,) = get_args(_without_none(kind))
        return f"{_value(of, info)}; repeatable"
    if kind is bool:
        return "–"
    if info.metavar:
        return f"`{info.metavar}`"
    kind = _without_none(kind)
    words = {int: "a whole number", float: "a number", str: "text", Path: "a path"}[kind]
    if info.min is not None and info.max is not None:
        return f"{words} from {info.min} to {info.max}"
    return words if info.min is None else f"{words} from {info.min} on"


def _is_list(kind: Any) -> bool:
    return get_origin(_without_none(kind)) is list


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (one for one in get_args(kind) if one is not type(None))
    return kind
