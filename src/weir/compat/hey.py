"""The front end for hey 0.1.4. weir sends the same requests as hey, byte for byte."""

import os
import re
import shlex
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import quote

from weir.compat.flags import Flag, ToolFlags, format_authority, match_value, parse_whole
from weir.compat.front_end import TOOLS, FrontEnd, LoadResult, is_unknown_host
from weir.compat.hey_report import CSV_HEAD, format_csv, format_summary
from weir.load_spec import LoadSpec
from weir.model.errors import TargetError, WeirError
from weir.model.load import LONGEST_S, LONGEST_TIMEOUT_S
from weir.parsing import parse_header, parse_method

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h)"
_AGENT = "hey/0.0.1"
# If -H sets one of these headers, Go ignores the value: Go sends its own value, or leaves the header out.
_NOT_AMONG_HEADERS = ("Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer")
_REDIRECTS = ("301", "302", "303", "307", "308")


def _add_up(text: str) -> float:
    """Returns the seconds in a duration that may have several parts, such as 1m30s."""
    return sum(float(number) * _UNITS_S[unit] for number, unit in re.findall(_DURATION_PART, text))


def _parse_header(text: str) -> tuple[str, str]:
    name, value = parse_header(text)
    return "-".join(part.capitalize() for part in name.split("-")), value


_parse_duration = match_value(rf"(?:{_DURATION_PART})+", "a duration with a unit such as 30s or 1m30s", _add_up)
_parse_rate = match_value(r"[0-9]+\.?[0-9]*|\.[0-9]+", "a number such as 50 or 0.5", float)
_parse_output = match_value("csv", "csv; weir load --json FILE URL writes all figures as JSON")
_TABLE = ToolFlags(
    tool="hey",
    example=TOOLS["hey"],
    flags=(
        Flag("requests", "-n", parse_whole, 200, "number of requests. Default: 200. Each worker sends n/c requests"),
        Flag("workers", "-c", parse_whole, 50, "number of workers, each with one request at a time. Default: 50"),
        Flag("rate_rps", "-q", _parse_rate, 0.0, "maximum requests per second of each worker. Default: no maximum"),
        Flag("duration_s", "-z", _parse_duration, 0.0, "length of the load, such as 30s. -n then has no effect"),
        Flag("output", "-o", _parse_output, "", "csv: print a row for each response. Default: print the summary"),
        Flag("method", "-m", parse_method, "GET", "the method. Default: GET"),
        Flag("headers", "-H", _parse_header, [], "a header, 'Name: value'. The flag may be repeated"),
        Flag("timeout_s", "-t", parse_whole, 20, "maximum seconds to wait for a response. Default: 20. 0: no limit"),
        Flag("accept", "-A", str, "", "the header Accept. Default: no such header"),
        Flag("body", "-d", str, "", "the request's body. Default: no body"),
        Flag("body_file", "-D", str, "", "the file with the request's body. Default: no file"),
        Flag("content_type", "-T", str, "text/html", "the header Content-Type. Default: text/html"),
        Flag("agent", "-U", str, "", f"the start of the header User-Agent, before {_AGENT}"),
        Flag("credentials", "-a", str, "", "credentials for basic authentication, USER:PASSWORD"),
        Flag("host", "-host", str, "", "the header Host. Default: the host and port of the URL"),
        Flag("no_compression", "-disable-compression", None, False, "do not request gzip. Default: request gzip"),
        Flag("no_keep_alive", "-disable-keepalive", None, False, "open a connection per request. Default: keep-alive"),
        Flag("no_redirects", "-disable-redirects", None, False, "has no effect: weir never follows redirects"),
        Flag("threads", "-cpus", parse_whole, 1, "number of threads of the generator. Default: 1"),
    ),
    instead={
        "-x": "weir load --connect-to HOST:PORT URL sends the requests to another address",
        "-h2": "use h2load for HTTP/2, or leave out -h2 for HTTP/1.1",
    },
    version="hey 0.1.4",
    help_code=0,
    unreadable_code=2,
    wrong_code=1,
    is_go=True,
)


class HeyFrontEnd(FrontEnd):
    """The load and the report for a command line of hey."""

    def format_report(self, result: LoadResult) -> str:
        if result.request_log is not None:
            return format_csv(result.request_log)
        counts = replace(result.end.summary.errors, check=0).to_json()
        first = {event.kind: event.detail for event in reversed(result.events)}
        errors = {self._name_error(kind, first.get(kind, "failed")): count for kind, count in counts.items() if count}
        return format_summary(result.end, errors)

    def list_differences(self, result: LoadResult) -> list[str]:
        summary = result.end.summary
        notes = ["DNS-lookup and req write are 0: weir resolves the name once before the load, and measures no writes"]
        failed = summary.requests.failed - summary.errors.check
        if failed and summary.duration_s > 0:
            rate_rps = (summary.requests.completed + failed) / summary.duration_s
            counted = f"hey also counts the {failed:,} failed requests and would print {rate_rps:.4f}"
            notes.append(f"Requests/sec counts only responses; {counted}")
        redirects = sum(count for status, count in summary.status.items() if status in _REDIRECTS)
        if redirects and not self.flags.no_redirects:
            notes.append(f"{redirects:,} responses were redirects; hey follows redirects: use the target's URL")
        if summary.requests.unanswered:
            notes.append(f"{summary.requests.unanswered:,} requests were in flight at the end; hey waits for them")
        if self.flags.arguments:
            notes.append(f"the words after the URL have no effect, as in hey: {shlex.join(self.flags.arguments)}")
        return notes

    def format_failed_start(self, error: WeirError) -> tuple[str, int]:
        if not isinstance(error, TargetError) and not is_unknown_host(error):
            return "", 1
        errors = {self._name_error("connect", error.message): self.flags.workers}
        return CSV_HEAD if self.flags.output else format_summary(None, errors), 0

    def _name_error(self, kind: str, detail: str) -> str:
        return f'{self.plan.request.method.capitalize()} "{self.plan.request.target}": {kind}: {detail}'


def read_command_line(tool: str, words: Sequence[str]) -> HeyFrontEnd:
    """Returns the front end for a command line of hey."""
    flags = _TABLE.parse(words)
    if flags.workers < 1:
        raise _TABLE.reject(f"-c: found {flags.workers}, expected 1 or more")
    if not flags.duration_s and flags.requests < flags.workers:
        raise _TABLE.reject(f"-n: found {flags.requests}, expected at least {flags.workers}, one for each worker (-c)")
    is_tls = flags.url.scheme == "https"
    url, headers, body = _build_request(flags)
    spec = LoadSpec(
        urls=(url,),
        method=flags.method,
        headers=headers,
        body=body,
        body_file=flags.body_file or None,
        connections=flags.workers,
        loops=None if flags.duration_s else flags.requests // flags.workers,
        pace_s=1.0 / flags.rate_rps if flags.rate_rps else None,
        duration_s=float(flags.duration_s) or LONGEST_S,
        timeout_s=min(float(flags.timeout_s), LONGEST_TIMEOUT_S) if flags.timeout_s > 0 else LONGEST_TIMEOUT_S,
        keep_alive=not flags.no_keep_alive,
        # hey trusts every certificate, and resumes no session.
        tls_insecure=is_tls,
        tls_server_name=flags.host.partition(":")[0] or None if is_tls else None,
        tls_resumption=not is_tls,
        threads=max(1, min(flags.threads, flags.workers, len(os.sched_getaffinity(0)))),
    )
    waits, needs_log = bool(flags.duration_s), bool(flags.output)
    return HeyFrontEnd(spec=spec, waits_for_answers=waits, needs_request_log=needs_log, flags=flags)


def _build_request(flags: SimpleNamespace) -> tuple[str, tuple[tuple[str, str], ...], bytes | None]:
    """Returns the URL, the headers (in Go's order) and the body of the requests."""
    url, method, authority = flags.url, flags.method, format_authority(flags.url)
    body = _TABLE.read_file("-D", flags.body_file) if flags.body_file else flags.body.encode()
    headers = {"Content-Type": flags.content_type} | dict(flags.headers)
    headers |= {"Accept": flags.accept} if flags.accept else {}
    if credentials := flags.credentials or url.netloc.rpartition("@")[0]:
        headers.setdefault("Authorization", "Basic " + b64encode(credentials.encode()).decode())
    agents = (flags.agent or headers.get("User-Agent", ""), _AGENT)
    sent = [("Host", flags.host or authority), ("User-Agent", " ".join(agent for agent in agents if agent))]
    sent += [("Content-Length", str(len(body)))] if body or method in ("POST", "PUT", "PATCH") else []
    sent += sorted((name, value) for name, value in headers.items() if name not in _NOT_AMONG_HEADERS)
    if not flags.no_compression and method != "HEAD" and not headers.keys() & {"Accept-Encoding", "Range"}:
        sent.append(("Accept-Encoding", "gzip"))
    if flags.no_keep_alive and headers.get("Connection") != "close":
        sent.append(("Connection", "close"))
    path = quote(url.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = f"?{quote(url.query, safe='/%:@!$&()*+,;=~-._?')}" if url.query else ""
    return f"{url.scheme}://{authority}{path}{query}", tuple(sent), body or None
