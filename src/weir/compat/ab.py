"""The front end for ab (ApacheBench 2.3). weir sends the same requests as ab, but with HTTP/1.1."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

from weir.compat import ab_report
from weir.compat.flags import Flag, ToolFlags, format_path, parse_whole
from weir.compat.front_end import TOOLS, FrontEnd, LoadResult, is_unknown_host
from weir.load_spec import LoadSpec
from weir.model.errors import TargetError, WeirError
from weir.model.load import LONGEST_S, LONGEST_TIMEOUT_S
from weir.parsing import parse_header, parse_method

_PROGRESS_FROM, _PROGRESS_STEPS, _LEAST_STEP = 150, 10, 100
_TIMED_REQUESTS = 50_000
_INVALID, _CONNECTION_RESET, _CONNECTION_REFUSED = 22, 104, 111
# Error numbers of APR, the library of ab. An exit code keeps only eight bits.
_TIMED_OUT, _NO_ADDRESS = 70007 & 255, 670002 & 255

_TABLE = ToolFlags(
    tool="ab",
    example=TOOLS["ab"],
    flags=(
        Flag("requests", "-n", parse_whole, 1, "total number of requests. Default: 1"),
        Flag("concurrency", "-c", parse_whole, 1, "number of concurrent requests. Default: 1"),
        Flag(
            "time_limit_s",
            "-t",
            parse_whole,
            0,
            "maximum seconds of the load; with this option, -n is 50000. Default: no limit",
        ),
        Flag("timeout_s", "-s", parse_whole, 30, "maximum seconds to wait for a response. Default: 30"),
        Flag("keep_alive", "-k", None, False, "keep connections open. Default: a new connection for each request"),
        Flag("post_file", "-p", str, "", "file with the body of POST requests"),
        Flag("put_file", "-u", str, "", "file with the body of PUT requests"),
        Flag("is_head", "-i", None, False, "use HEAD instead of GET"),
        Flag("method", "-m", parse_method, "", "method of the requests. Default: GET, or POST with -p, or PUT with -u"),
        Flag("content_type", "-T", str, "text/plain", "header Content-type with -p or -u. Default: text/plain"),
        Flag("headers", "-H", parse_header, [], "a header, 'NAME: VALUE'. The flag may be repeated"),
        Flag("cookie", "-C", str, "", "a cookie, NAME=VALUE. If the flag is repeated, the last cookie counts"),
        Flag("credentials", "-A", str, "", "credentials for basic authentication, USER:PASSWORD"),
        Flag("address", "-B", str, "", "local IP address for the connections. Default: the system chooses"),
        Flag("csv_file", "-e", str, "", "write the percentiles to this CSV file"),
        Flag("is_quiet", "-q", None, False, "print no progress. Default: print progress for more than 150 requests"),
        Flag("no_percentages", "-d", None, False, "print no table of percentiles"),
        Flag("goes_on", "-r", None, False, "exit with 0 after connection resets. weir continues even without -r"),
        Flag("any_length", "-l", None, False, "allow responses of different lengths. Default: they count as failed"),
        Flag("verbosity", "-v", parse_whole, 0, "has no effect: weir prints no requests and no responses"),
    ),
    instead={
        "-X -P": "weir load --connect-to HOST:PORT URL sends the requests to another address",
        "-g": "weir load --hdr FILE URL writes the response times of every interval",
        "-w -x -y -z": "weir load --out FILE.weir URL, then weir report FILE.weir for a report in HTML",
        "-S": "leave out -S. The table then has medians and deviations",
        "-b": "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem shows the kernel's sizes of socket buffers",
        "-E": "weir load --cert FILE --key FILE URL",
        "-f": "leave out -f. weir uses TLS 1.2 or 1.3, as the server prefers",
        "-Z": "leave out -Z. weir offers the ciphers of its TLS library",
        "-I": "use an IP address in the URL. weir then resolves no name",
    },
    version=ab_report.VERSION,
    version_flags=("-V",),
    wrong_code=_INVALID,
    default_scheme="http",
)


class AbFrontEnd(FrontEnd):
    """The load and the report for a command line of ab."""

    def format_heading(self) -> str:
        return ab_report.format_heading(self.flags.url.hostname) + ("\n" if _choose_step(self.flags) else "...")

    def format_progress(self, before: int, now: int, *, has_ended: bool) -> str:
        if not (step := _choose_step(self.flags)):
            return ""
        if has_ended:
            return f"Finished {now} requests\n"
        return "".join(f"Completed {tenth * step} requests\n" for tenth in range(before // step + 1, now // step + 1))

    def format_report(self, result: LoadResult) -> str:
        report = ab_report.format_report(self.flags, result, has_body=self.plan.request.body is not None)
        return report if _choose_step(self.flags) else f"..done\n{report}"

    def format_files(self, result: LoadResult) -> Mapping[str, str]:
        if not self.flags.csv_file or not result.end.summary.requests.completed:
            return {}
        return {self.flags.csv_file: ab_report.format_csv(ab_report.read_clocks(result).total)}

    def list_differences(self, result: LoadResult) -> list[str]:
        summary = result.end.summary
        connection = "keep-alive" if self.flags.keep_alive else "close"
        notes = [f"requests are HTTP/1.1 with Connection: {connection}; ab sends HTTP/1.0"]
        if failed := summary.requests.failed - summary.errors.check:
            notes.append(f"Complete requests counts only responses; ab also counts {failed:,} failed requests")
        if self._find_socket_error(result):
            notes.append("without -r, ab ends at the first socket error and prints no report; this load continued")
        return notes

    def choose_exit_code(self, result: LoadResult) -> int:
        return self._find_socket_error(result) or int(result.end.stopped == "signal")

    def _find_socket_error(self, result: LoadResult) -> int:
        """Returns ab's exit code for the first socket error that would end ab; 0 without such an error."""
        errors = result.end.summary.errors
        if errors.timeout and not result.end.summary.requests.completed:
            return _TIMED_OUT
        was_reset = any(event.kind == "reset" and "reset" in event.detail for event in result.events)
        return _CONNECTION_RESET if errors.reset and was_reset and not self.flags.goes_on else 0

    def format_failed_start(self, error: WeirError) -> tuple[str, int]:
        if isinstance(error, TargetError):
            return self.format_heading(), _CONNECTION_REFUSED
        return (self.format_heading(), _NO_ADDRESS) if is_unknown_host(error) else ("", _INVALID)


def read_command_line(tool: str, words: Sequence[str]) -> AbFrontEnd:
    """Returns the front end for a command line of ab."""
    flags = _TABLE.parse(words)
    if flags.arguments:
        raise _TABLE.reject(f"URL: found {flags.arguments[0]!r} after the URL, expected flags before the URL")
    if not flags.url.path:
        raise _TABLE.reject(f"URL: found {flags.url.geturl()!r}, expected a path such as / after the host")
    # As in ab, -t sets the number of requests, and a later -n replaces the number.
    if "time_limit_s" in flags.order and "requests" not in flags.order[flags.order.index("time_limit_s") :]:
        flags.requests = _TIMED_REQUESTS
    if flags.requests < 1:
        raise _TABLE.reject(f"-n: found {flags.requests}, expected 1 or more", code=1)
    if not 1 <= flags.concurrency <= flags.requests:
        raise _TABLE.reject(f"-c: found {flags.concurrency}, expected 1 to {flags.requests}, the value of -n")
    is_tls, file = flags.url.scheme == "https", flags.post_file or flags.put_file
    method, url, headers, body = _build_request(flags)
    spec = LoadSpec(
        urls=(url,),
        method=method,
        headers=headers,
        body=body,
        body_file=file or None,
        connections=flags.concurrency,
        requests=flags.requests,
        duration_s=float(flags.time_limit_s) or LONGEST_S,
        timeout_s=min(float(flags.timeout_s), LONGEST_TIMEOUT_S) if flags.timeout_s > 0 else LONGEST_TIMEOUT_S,
        keep_alive=flags.keep_alive,
        bind=(flags.address,) if flags.address else (),
        # ab trusts every certificate, and resumes no session.
        tls_insecure=is_tls,
        tls_resumption=not is_tls,
    )
    # With TLS, only the request log has connect times that include the handshake.
    return AbFrontEnd(spec=spec, needs_request_log=is_tls, flags=flags)


def _choose_step(flags: SimpleNamespace) -> int:
    """Returns the number of requests between two lines of progress; 0 if ab prints no progress."""
    has_progress = not flags.is_quiet and flags.requests > _PROGRESS_FROM
    return max(_LEAST_STEP, flags.requests // _PROGRESS_STEPS) if has_progress else 0


def _build_request(flags: SimpleNamespace) -> tuple[str, str, tuple[tuple[str, str], ...], bytes | None]:
    """Returns the method, the URL, the headers (in ab's order) and the body of the requests."""
    files = {"POST": ("-p", flags.post_file), "PUT": ("-u", flags.put_file), "HEAD": ("-i", flags.is_head)}
    chosen = [method for method, (_, value) in files.items() if value]
    if len(chosen) > 1:
        raise _TABLE.reject(f"found flags for {' and '.join(chosen)}, expected one of -i, -p and -u", code=1)
    body = _TABLE.read_file(*files[chosen[0]]) if chosen and not flags.is_head else None
    url, given = flags.url, {name.lower() for name, _ in flags.headers}
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    authority = host if url.port in (None, 443 if url.scheme == "https" else 80) else f"{host}:{url.port}"
    headers = [("Connection", "Keep-Alive" if flags.keep_alive else "close")] if "connection" not in given else []
    headers += [("Cookie", flags.cookie)] if flags.cookie else []
    if flags.credentials:
        headers.append(("Authorization", f"Basic {b64encode(flags.credentials.encode()).decode()}"))
    if body is not None:
        headers += [("Content-length", str(len(body))), ("Content-type", flags.content_type)]
    usual = ("Host", authority), ("User-Agent", "ApacheBench/2.3"), ("Accept", "*/*")
    headers += [*flags.headers, *((name, value) for name, value in usual if name.lower() not in given)]
    method = flags.method or (chosen or ["GET"])[0]
    return method, f"{url.scheme}://{authority}{format_path(url)}", tuple(headers), body
