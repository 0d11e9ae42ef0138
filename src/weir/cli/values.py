"""Values of flags: CPUs, requests, headers, bodies. Those of loads are in `weir.load_values`, which studies share."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from weir.model.errors import UsageError
from weir.model.load import METHODS, Request


def cpu_list(text: str) -> tuple[int, ...]:
    """CPUs in `0`, `0,2` or `1-3,5`, in the kernel's notation.

    Raises:
        UsageError: it is none of these, or weir may not use one of them.
    """
    usable = os.sched_getaffinity(0)
    chosen: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise UsageError(f"--cpus: found {text!r}, expected CPUs such as 0 or 0,2-3")
        first = int(match.group(1))
        chosen.extend(range(first, int(match.group(2) or first) + 1))
    if not chosen or not set(chosen) <= usable:
        raise UsageError(f"--cpus: found {text!r}, expected some of the CPUs weir may use: {sorted(usable)}")
    return tuple(chosen)


def header(text: str) -> tuple[str, str]:
    """Name and value in `Name: value`.

    Raises:
        UsageError: it has no colon, or the name is not one.
    """
    name, colon, value = text.partition(":")
    if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name.strip()):
        raise UsageError(f"-H: found {text!r}, expected 'Name: value'")
    if "\r" in value or "\n" in value:
        raise UsageError(f"-H: found a line break in the value of {name.strip()!r}, expected one line")
    return name.strip(), value.strip()


def body(text: str) -> bytes:
    """The body that `-b` names: `@FILE` its content, anything else itself.

    Raises:
        UsageError: the file cannot be read.
    """
    if not text.startswith("@"):
        return text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise UsageError(f"-b/--body: {text[1:]}: cannot be read: {error.strerror}") from None


def metrics(asked: list[str] | None, usual: Sequence[str], command: str) -> Sequence[str]:
    """The metrics of findings that `--metric` names, or the usual ones.

    Raises:
        UsageError: there is no such metric.
    """
    # Here and not above: findings take as long to import as all else, and `weir load` does not need it.
    from weir.findings import BY_KEY

    for metric in asked or ():
        if metric not in BY_KEY:
            raise UsageError(f"--metric: found {metric!r}, expected one of {', '.join(BY_KEY)}", hint=f"weir {command} --help")
    return asked or usual


def request(url: str, method: str | None, headers: list[str], body_: str | None) -> Request:
    """What is asked of `url`; without a method GET, or POST where there is a body.

    Raises:
        UsageError: the method is none, or a header or the body cannot be read.
    """
    chosen = (method or ("GET" if body_ is None else "POST")).upper()
    if chosen not in METHODS:
        raise UsageError(f"-m/--method: found {method!r}, expected one of: {', '.join(METHODS)}")
    return Request(chosen, url, tuple(header(text) for text in headers), None if body_ is None else body(body_))
