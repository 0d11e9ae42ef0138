"""The command line of wrk and wrk2, which differ in a few flags: read as they read it, with what they say of a wrong one."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weir.compat.front_end import ToolExit, not_offered
from weir.compat.getopt_long import OptionError, Options
from weir.compat.wrk_units import number, seconds
from weir.model.errors import TargetError, WeirError
from weir.model.load import Load, LoadPlan, Request, Tls

_TIMEOUT_S = 2
FAILED = 1
"""The exit code of both for everything that ends them before a load."""
_WRK = Options(
    with_value="tcdsHT",
    # The last two lead to the usage, as does what is unknown, but without a word.
    alone="Lvr?",
    long={
        "connections": "c",
        "duration": "d",
        "threads": "t",
        "script": "s",
        "header": "H",
        "latency": "L",
        "timeout": "T",
        "help": "h",
        "version": "v",
    },
)
_WRK2 = Options(
    with_value=_WRK.with_value + "R",
    alone=_WRK.alone + "UB",
    long={**_WRK.long, "u_latency": "U", "batch_latency": "B", "rate": "R"},
)
_NUMBERS: dict[str, tuple[str, Callable[[str], int | None]]] = {
    "t": ("threads", number),
    "c": ("connections", number),
    "d": ("duration_s", seconds),
    "T": ("timeout_s", seconds),
    "R": ("rate_rps", number),
}
_URL = re.compile(
    r"(?P<scheme>[A-Za-z]+)://(?:[\w.!~*'();:&=+$,%-]*@)?"
    r"(?P<host>[A-Za-z0-9._-]+|\[(?P<address>[0-9A-Fa-f:.]+)\])(?::(?P<port>\d+))?(?P<path>/[^ \r\n\t\f]*)?(?:[?#][^ \r\n\t\f]*)?"
)
_PORTS = 65_535


@dataclass(slots=True)
class WrkFlags:
    """What the flags ask for, the values of a command line without any to begin with."""

    tool: str
    threads: int = 2
    connections: int = 10
    duration_s: int = 10
    timeout_s: int = _TIMEOUT_S
    rate_rps: int = 0
    latency: bool = False
    uncorrected_latency: bool = False
    script: str | None = None
    headers: list[str] = field(default_factory=list)
    url: str = ""
    version: str = ""
    """The line that `-v` prints, if it was given."""


def read_flags(tool: str, words: Sequence[str], usage: str) -> WrkFlags:
    """What a command line of `wrk` or `wrk2` asks for.

    Raises:
        ToolExit: the tool would print its usage, or this is something that weir does not do.
    """
    flags = WrkFlags(tool)
    arguments: list[str] = []

    def wrong(line: str = "") -> ToolExit:
        return ToolExit(out=flags.version + usage, err=f"{line}\n" if line else "", code=FAILED)

    try:
        for letter, value in (_WRK2 if tool == "wrk2" else _WRK).read(words):
            if not letter:
                arguments.append(value)
            elif not _take(flags, letter, value):
                raise wrong()
    except OptionError as error:
        raise wrong(f"{tool}: {error}") from None
    if not arguments or not flags.threads or not flags.duration_s:
        raise wrong()
    flags.url = arguments[0]
    if not _is_url(flags.url):
        raise wrong(f"invalid URL: {flags.url}")
    if flags.connections < flags.threads:
        raise wrong("number of connections must be >= threads")
    if tool == "wrk2" and not flags.rate_rps:
        raise wrong("Throughput MUST be specified with the --rate or -R option")
    if flags.script is not None:
        raise not_offered(
            f"-s/--script: found {flags.script!r}, and weir runs no Lua; a scenario in TOML says what users do",
            f"weir load {flags.url} --scenario FILE, as docs/guides/scenarios.md shows",
            FAILED,
        )
    if not flags.timeout_s:
        raise not_offered(
            "-T/--timeout: found 0, which makes every answer too late, expected a second or more", f"weir {tool} --timeout 2s", FAILED
        )
    return flags


def _take(flags: WrkFlags, letter: str, value: str) -> bool:
    """Keeps one flag; False where the tool would stop at it."""
    match letter:
        case "t" | "c" | "d" | "T" | "R":
            name, read = _NUMBERS[letter]
            if (found := read(value)) is None:
                return False
            setattr(flags, name, found)
        case "s":
            flags.script = value
        case "H":
            flags.headers.append(value)
        case "L":
            flags.latency = True
        case "U":
            flags.latency = flags.uncorrected_latency = True
        case "B":
            # Batches are pipelined requests, which only a script makes.
            pass
        case "v":
            flags.version = _version()
        case _:
            return False
    return True


def _version() -> str:
    # Here and not above: the package's metadata take a while to find.
    from weir import __version__

    return f"wrk 4.1.0 [weir {__version__}] weir's front end, not wrk itself\n"


def _is_url(text: str) -> bool:
    match = _URL.fullmatch(text)
    return match is not None and int(match["port"] or 0) <= _PORTS


def request_of(flags: WrkFlags) -> Request:
    """What is asked for, and where.

    Raises:
        ToolExit: the URL is of a scheme that has no port.
    """
    parts = _URL.fullmatch(flags.url)
    assert parts is not None
    scheme, host, port = parts["scheme"], parts["host"], parts["port"]
    if scheme not in ("http", "https"):
        if port is None:
            raise ToolExit(err=f"unable to resolve {host}:{scheme} Servname not supported for ai_socktype\n", code=FAILED)
        scheme = "http"
    authority = host if port is None else f"{host}:{port}"
    return Request("GET", f"{scheme}://{authority}{parts['path'] or '/'}", tuple(_sent_headers(flags).items()))


def _sent_headers(flags: WrkFlags) -> dict[str, str]:
    """As wrk's table of headers has them: the last of a name counts, and there is no length without a body."""
    headers: dict[str, str] = {}
    for text in flags.headers:
        name, colon, value = text.partition(": ")
        if colon:
            headers[name] = value
    headers.pop("Content-Length", None)
    return headers


def ignored_headers(flags: WrkFlags) -> list[str]:
    """Those that the tool leaves out without a word, and weir therefore too."""
    return [text for text in flags.headers if ": " not in text]


def plan_of(flags: WrkFlags, load: Load) -> LoadPlan:
    """The load that is asked for.

    Raises:
        ToolExit: the URL is of a scheme that has no port.
    """
    request = request_of(flags)
    return LoadPlan(
        request=request,
        load=load,
        duration_s=flags.duration_s,
        timeout_s=flags.timeout_s,
        # Both tools trust every certificate.
        tls=Tls(insecure=True) if request.target.startswith("https:") else None,
        # weir's threads never wait for one another: more than there are CPUs would only take these from each other.
        threads=min(flags.threads, len(os.sched_getaffinity(0))),
    )


def cannot_begin(flags: WrkFlags, error: WeirError) -> ToolExit:
    """What both say when there is nobody at the URL."""
    parts = _URL.fullmatch(flags.url)
    assert parts is not None
    host = parts["address"] or parts["host"]
    where = f"{host}:{parts['port'] or parts['scheme']}"
    if isinstance(error, TargetError):
        reason = "Connection refused" if error.message.startswith("connection refused") else _last_words(error)
        return ToolExit(out=flags.version, err=f"unable to connect to {where} {reason}\n", code=FAILED)
    if error.message.startswith("plan, key target:"):
        return ToolExit(out=flags.version, err=f"unable to resolve {where} {_last_words(error)}\n", code=FAILED)
    return not_offered(error.message, error.hint, FAILED)


def _last_words(error: WeirError) -> str:
    """The system's own words at the end of the engine's sentence."""
    return error.message.rpartition(": ")[2].rstrip(")")
