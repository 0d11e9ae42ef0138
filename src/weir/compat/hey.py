"""hey: its flags, made into a load, and what it says of one.

hey 0.1.4 is the arbiter: its requests are sent byte for byte, and its report has its lines. `notes` say what it does otherwise than weir.
"""

import json
import os
import re
import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from weir.compat.front_end import Asked, Outcome, ToolExit, not_offered, said
from weir.compat.go_flags import GoFlagError, GoFlags, parse_bool, parse_duration_s, parse_float, parse_int
from weir.compat.hey_report import CSV_HEAD, HeySummary, csv_text
from weir.compat.native import command_of
from weir.model.errors import TargetError, WeirError
from weir.model.load import LONGEST_S, LONGEST_TIMEOUT_S, METHODS, ClosedLoad, LoadPlan, Request, Tls

_USAGE = """Usage: hey [options...] <url>

Options (of hey, done by weir):
  -n  How many requests in all; each worker has n/c, a remainder is left out. 200.
  -c  Workers, each of which asks again when it was answered; no more than n. 50.
  -q  Requests per second of each worker, at most. No limit.
  -z  How long to go on, whatever n is: 10s, 1m30s.
  -o  "csv": a row for each answer instead of the summary.

  -m  Method: GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS.
  -H  A header, "Name: value"; may be repeated.
  -t  Seconds that an answer may take, 0 for any time. 20.
  -A  The header Accept.
  -d  The request's body.
  -D  The file that holds it.
  -T  The header Content-Type. text/html.
  -U  What User-Agent begins with; hey/0.0.1 follows.
  -a  Basic authentication, user:password.
  -x  Proxy; not offered.
  -h2 HTTP/2; not offered.

  -host                 The header Host.
  -disable-compression  Do not ask for gzip.
  -disable-keepalive    A connection for each request.
  -disable-redirects    Redirects are never followed.
  -cpus                 Threads of the generator. 1.
"""
_FLAGS = GoFlags(
    {
        **dict.fromkeys(("m", "h", "d", "D", "A", "T", "a", "host", "U", "o", "x", "H"), str),
        **dict.fromkeys(("c", "n", "t", "cpus"), parse_int),
        **dict.fromkeys(("h2", "disable-compression", "disable-keepalive", "disable-redirects"), parse_bool),
        "q": parse_float,
        "z": parse_duration_s,
    },
    repeated=("H",),
)
_HEADER = re.compile(r"([\w-]+):\s*(.+)", re.ASCII)
_CREDENTIALS = re.compile(r"(.+):(\S.+)")
_AGENT = "hey/0.0.1"
# Go writes these itself, from elsewhere or not at all.
_NOT_OF_HEADERS = ("Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer")


def read(argv: Sequence[str]) -> "Hey":
    """The load that `hey ARGV…` asks for.

    Raises:
        ToolExit: wrong flags, in hey's words, or what weir does not do, in weir's.
    """
    try:
        given, words = _FLAGS.parse(argv)
    except GoFlagError as error:
        said = "" if error.wants_help else f"{error.message}\n"
        raise ToolExit(err=said + _USAGE, code=0 if error.wants_help else 2) from None
    if not words:
        raise _wrong("")
    flags = _Flags(given)
    _check_counts(flags)
    request = _request(flags, words[0])
    plan = LoadPlan(
        request=request,
        load=ClosedLoad(flags.workers, loops=None if flags.lasts_s else flags.requests // flags.workers, pace_s=flags.pace_s),
        duration_s=flags.lasts_s or LONGEST_S,
        timeout_s=flags.timeout_s,
        keep_alive=not flags["disable-keepalive"],
        # hey trusts every certificate, and resumes no session.
        tls=Tls(insecure=True, server_name=flags.server_name, resumption=False) if request.target.startswith("https:") else None,
        threads=max(1, min(flags["cpus"], flags.workers, len(os.sched_getaffinity(0)))),
    )
    return Hey(
        plan=plan.answered_to_the_end() if flags.lasts_s else plan,
        native=command_of(plan, body_file=flags["D"] or None),
        needs_requests=flags["o"] == "csv",
        workers=flags.workers,
        is_csv=flags["o"] == "csv",
        follows_redirects=not flags["disable-redirects"],
        left_over=tuple(words[1:]),
    )


class _Flags:
    """The flags that were given, and what the others are."""

    _DEFAULTS: Mapping[str, Any] = {
        "m": "GET", "T": "text/html", "c": 50, "n": 200, "t": 20, "q": 0.0, "z": 0.0, "cpus": 1, "H": (),
        "disable-keepalive": False, "disable-compression": False, "disable-redirects": False, "h2": False,
    }  # fmt: skip

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def __getitem__(self, name: str) -> Any:
        return self._given.get(name, self._DEFAULTS.get(name, ""))

    @property
    def workers(self) -> int:
        """How many ask at a time."""
        return int(self["c"])

    @property
    def requests(self) -> int:
        """How many there are in all, but for the remainder."""
        return int(self["n"])

    @property
    def lasts_s(self) -> float:
        """How long requests are sent; 0 where their number says when it ends."""
        return max(0.0, float(self["z"]))

    @property
    def pace_s(self) -> float | None:
        """The least time from one request of a worker to its next."""
        return 1.0 / self["q"] if self["q"] > 0 else None

    @property
    def server_name(self) -> str | None:
        """The name that TLS asks for, where it is not the URL's."""
        return str(self["host"]).partition(":")[0] or None

    @property
    def timeout_s(self) -> float:
        """How long an answer may take."""
        return min(float(self["t"]), LONGEST_TIMEOUT_S) if self["t"] > 0 else LONGEST_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Hey(Asked):
    """A command line of hey."""

    workers: int
    is_csv: bool
    follows_redirects: bool
    left_over: tuple[str, ...]
    """Words behind the URL."""

    def heading(self) -> str:
        """Nothing: hey is silent until it is done."""
        return ""

    def report(self, outcome: Outcome) -> str:
        """The summary, or a row for each answer."""
        if outcome.requests is not None:
            return csv_text(outcome.requests)
        return HeySummary.of(outcome.end, self._errors(outcome)).text()

    def notes(self, outcome: Outcome) -> list[str]:
        """What hey would have done otherwise."""
        summary = outcome.end.summary
        found = ["DNS-lookup and req write are 0: weir looks a name up once, and writes a request in a moment"]
        failed = summary.requests.failed - summary.errors.check
        if failed and summary.duration_s > 0:
            rate = (summary.requests.completed + failed) / summary.duration_s
            found.append(f"Requests/sec counts answers; hey, which counts the {failed:,} failed requests too, would say {rate:.4f}")
        redirects = sum(count for status, count in summary.status.items() if status in ("301", "302", "303", "307", "308"))
        if redirects and self.follows_redirects:
            found.append(f"{redirects:,} answers were redirects, which hey follows and weir does not: ask for where they lead")
        if summary.requests.unanswered:
            found.append(f"{summary.requests.unanswered:,} requests were in flight at the end, which hey waits for")
        if self.left_over:
            found.append(f"as by hey, what stands behind the URL is not looked at: {shlex.join(self.left_over)}")
        return found

    def exit_code(self, outcome: Outcome) -> int:
        """0, whatever came."""
        return 0

    def cannot_begin(self, error: WeirError) -> ToolExit:
        """hey reports its failures: so many requests as workers, each of which weir has tried to connect once."""
        message = said(error.message, error.hint)
        if not isinstance(error, TargetError) and "key target" not in error.message:
            return ToolExit(err=message, code=1)
        out = CSV_HEAD if self.is_csv else HeySummary.of_failures({self._said_of("connect", error.message): self.workers}).text()
        return ToolExit(out=out, err=f"{message}weir: nothing was sent; hey goes on until all requests have failed\n", code=0)

    def _errors(self, outcome: Outcome) -> dict[str, int]:
        """How many requests failed, by what hey says of them."""
        kinds = outcome.end.summary.errors.model_dump(exclude={"check"})
        first = {event.kind: event.detail for event in reversed(outcome.events)}
        return {self._said_of(kind, first.get(kind, kind)): count for kind, count in kinds.items() if count}

    def _said_of(self, kind: str, detail: str) -> str:
        request = self.plan.request
        what = {
            "connect": f"dial tcp {urlsplit(request.target).netloc}: connect: {'connection refused' if 'refused' in detail else detail}",
            "timeout": "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            "reset": "EOF" if "closed" in detail else f"read tcp: {detail}",
            "protocol": f"net/http: HTTP/1.x transport connection broken: {detail}",
        }[kind]
        return f'{request.method.capitalize()} "{request.target}": {what}'


def _wrong(message: str) -> ToolExit:
    return ToolExit(err=(f"{message}\n\n" if message else "") + _USAGE + "\n", code=1)


def _never_sent(flags: _Flags, message: str) -> ToolExit:
    """All requests fail before they are sent, which is no reason for hey to end otherwise than usual."""
    failed = {message: flags.workers if flags.lasts_s else flags.requests // flags.workers * flags.workers}
    return ToolExit(
        out=CSV_HEAD if flags["o"] else HeySummary.of_failures(failed).text(), err=f"weir: nothing was sent: {message}\n", code=0
    )


def _check_counts(flags: _Flags) -> None:
    if flags.lasts_s:
        if flags.workers <= 0:
            raise _wrong("-c cannot be smaller than 1.")
    elif flags.requests <= 0 or flags.workers <= 0:
        raise _wrong("-n and -c cannot be smaller than 1.")
    elif flags.requests < flags.workers:
        raise _wrong("-n cannot be less than -c.")


def _request(flags: _Flags, url: str) -> Request:
    method = str(flags["m"]).upper() or "GET"
    if flags["h"]:
        raise _wrong("Flag '-h' is deprecated, please use '-H' instead.")
    headers = {"Content-Type": str(flags["T"])}
    for text in flags["H"]:
        name, value = _parsed(_HEADER, text)
        headers[_canonical(name)] = value.strip(" \t")
    if flags["A"]:
        headers["Accept"] = flags["A"]
    credentials = ":".join(_parsed(_CREDENTIALS, flags["a"])) if flags["a"] else ""
    body = _body(flags)
    _check_offered(flags, method)
    target = _target(url, flags)
    if userinfo := credentials or (target.username and f"{target.username}:{target.password or ''}"):
        headers.setdefault("Authorization", "Basic " + b64encode(userinfo.encode()).decode())
    agents = (flags["U"] or headers.get("User-Agent", ""), _AGENT)
    sent = [("Host", flags["host"] or target.netloc.rpartition("@")[2]), ("User-Agent", " ".join(agent for agent in agents if agent))]
    if body is not None or method in ("POST", "PUT", "PATCH"):
        sent.append(("Content-Length", str(len(body or b""))))
    sent += sorted((name, value) for name, value in headers.items() if name not in _NOT_OF_HEADERS)
    if not flags["disable-compression"] and method != "HEAD" and not headers.keys() & {"Accept-Encoding", "Range"}:
        sent.append(("Accept-Encoding", "gzip"))
    if flags["disable-keepalive"] and headers.get("Connection") != "close":
        sent.append(("Connection", "close"))
    path = quote(target.path or "/", safe="/%:@!$&'()*+,;=~-._") + (
        f"?{quote(target.query, safe='/%:@!$&()*+,;=~-._?')}" if target.query else ""
    )
    return Request(method, f"{target.scheme}://{target.netloc.rpartition('@')[2]}{path}", tuple(sent), body)


def _check_offered(flags: _Flags, method: str) -> None:
    if not re.fullmatch(r"[!#$%&'*+.^`|~\w-]+", method, re.ASCII):
        raise _wrong(f"net/http: invalid method {json.dumps(method)}")
    if method not in METHODS:
        raise not_offered(f"-m: found {method!r}, expected one of {', '.join(METHODS)}", "weir hey -m GET …", 2)
    if flags["x"]:
        raise not_offered(
            f"-x: found {flags['x']!r}, and weir sends through no proxy",
            "weir load --connect-to HOST:PORT URL reaches the URL at another address",
            2,
        )
    if flags["h2"]:
        raise not_offered("-h2: weir speaks HTTP/1.1", "h2load for HTTP/2; leave out -h2 for HTTP/1.1", 2)
    if flags["o"] not in ("", "csv"):
        raise not_offered(f"-o: found {flags['o']!r}, expected csv", "weir load --json FILE URL writes all figures as JSON", 2)


def _target(url: str, flags: _Flags) -> SplitResult:
    authority = re.split("[/?#]", url.partition("://")[2])[0].rpartition("@")[2]
    address = re.fullmatch(r"(\[[^\]]*\]|\[.*|[^:]*)(.*)", authority)
    assert address is not None
    host, port = address.groups()
    if host.startswith("[") and not host.endswith("]"):
        raise _wrong(f"parse \"{url}\": missing ']' in host")
    if not re.fullmatch(r"(:\d*)?", port):
        raise _wrong(f'parse "{url}": invalid port "{port}" after host')
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", url)
    if scheme is None and ":" in url.partition("/")[0]:
        raise _wrong(f'parse "{url}": first path segment in URL cannot contain colon')
    if scheme is None or scheme[1].lower() not in ("http", "https"):
        raise _never_sent(flags, f'Get "{url}": unsupported protocol scheme "{scheme[1] if scheme else ""}"')
    if not host:
        raise _never_sent(flags, f'Get "{url.removesuffix("//")}": http: no Host in request URL')
    if int(port[1:] or 0) > 65535:
        raise _never_sent(flags, f'Get "{url}": dial tcp: address {port[1:]}: invalid port')
    return urlsplit(url)


def _body(flags: _Flags) -> bytes | None:
    if flags["D"]:
        try:
            return Path(flags["D"]).read_bytes() or None
        except OSError as error:
            verb = "read" if isinstance(error, IsADirectoryError) else "open"
            raise ToolExit(err=f"{verb} {flags['D']}: {os.strerror(error.errno or 0).lower()}\n", code=1) from None
    return str(flags["d"]).encode() or None


def _parsed(pattern: re.Pattern[str], text: str) -> tuple[str, str]:
    match = pattern.match(text)
    if match is None:
        raise _wrong(f"could not parse the provided input; input = {text}")
    return match[1], match[2]


def _canonical(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))
