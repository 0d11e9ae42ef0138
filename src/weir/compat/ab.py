"""ab (ApacheBench): its flags, made into a load, and what it says of one.

ab 2.3 of httpd 2.4 is the arbiter. Its requests are sent as it sends them but for their version, which is HTTP/1.1.
"""

import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir.compat.ab_flags import AbFlags, VersionAskedError, parse
from weir.compat.ab_html import banner_html, report_html
from weir.compat.ab_report import AbResult, Clocks, gnuplot_lines, percentages_csv
from weir.compat.front_end import Asked, Outcome, ToolExit, not_offered, said
from weir.compat.native import command_of
from weir.model.errors import TargetError, WeirError
from weir.model.load import LONGEST_S, LONGEST_TIMEOUT_S, METHODS, ClosedLoad, LoadPlan, Request, Tls

_PROGRESS_FROM, _PROGRESS_STEPS, _LEAST_STEP = 150, 10, 100
_CONNECTION_REFUSED, _CONNECTION_RESET, _TIMED_OUT, _NO_ADDRESS = 111, 104, 70007, 670002
"""Numbers of errors as APR has them; of an exit code they have eight bits."""


def read(argv: Sequence[str]) -> "Ab":
    """The load that `ab ARGV…` asks for.

    Raises:
        ToolExit: wrong flags, in ab's words, or what weir does not do, in weir's; or `-h` and `-V`.
    """
    try:
        flags = parse(argv)
    except VersionAskedError:
        raise ToolExit(out="\n".join([*_banner(), "", ""]), code=0) from None
    if flags.method not in METHODS:
        raise not_offered(f"-m: found {flags.method!r}, expected one of {', '.join(METHODS)}", "weir ab -m GET …", 22)
    if not flags.has_address:
        raise _unknown_host(flags, "")
    if not flags.concurrency:
        raise ToolExit(out=_heading(flags), err=f"{flags.complaint}apr_pollset_poll: Invalid argument (22)\n", code=22)
    certificate = os.path.abspath(flags.certificate) if flags.certificate else None
    request = _request(flags)
    plan = LoadPlan(
        request=request,
        load=ClosedLoad(flags.concurrency),
        requests=flags.requests,
        duration_s=float(flags.time_limit_s) or LONGEST_S,
        timeout_s=min(float(flags.timeout_s), LONGEST_TIMEOUT_S) if flags.timeout_s > 0 else LONGEST_TIMEOUT_S,
        keep_alive=flags.keep_alive,
        local_addresses=(flags.bind,) if flags.bind else (),
        # A connection's handshake is done for each request unless it is kept, and ab resumes no session.
        tls=Tls(certificate=certificate, key=certificate, insecure=True, resumption=False) if flags.is_tls else None,
    )
    # With TLS the log alone says how long a connection took with its handshake.
    needs_requests = bool(flags.gnuplot_file) or flags.is_tls
    return Ab(plan=plan, native=command_of(plan, body_file=flags.body_file or None), needs_requests=needs_requests, flags=flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ab(Asked):
    """A command line of ab."""

    flags: AbFlags

    def heading(self) -> str:
        """The banner, and which host it is."""
        return _heading(self.flags)

    def progress(self, before: int, now: int) -> str:
        """A line for each tenth of the requests, of a hundred at least."""
        step = _step(self.flags)
        told = range(before // step + 1, now // step + 1) if step else ()
        return "".join(f"Completed {number * step} requests\n" for number in told)

    def complaints(self, outcome: Outcome) -> str:
        """That it is done, or the error of a socket that ends ab."""
        if (fatal := self._fatal(outcome)) is not None:
            return self.flags.complaint + fatal[1]
        return self.flags.complaint + (f"Finished {outcome.end.summary.requests.completed} requests\n" if _step(self.flags) else "")

    def report(self, outcome: Outcome) -> str:
        """The report, as text or as an HTML table."""
        result = self._result(outcome)
        done = "" if _step(self.flags) else "..done\n"
        if self.flags.html is not None:
            return done + report_html(result, *self.flags.html)
        return self._request_told() + done + result.text(percentages=self.flags.percentages, confidence=self.flags.confidence)

    def files(self, outcome: Outcome) -> Mapping[str, str]:
        """The percentages of `-e`, the answers of `-g`."""
        found: dict[str, str] = {}
        if not outcome.end.summary.requests.completed:
            return found
        if self.flags.csv_file:
            found[self.flags.csv_file] = percentages_csv(_clocks(outcome).total)
        if self.flags.gnuplot_file and outcome.requests is not None:
            found[self.flags.gnuplot_file] = gnuplot_lines(outcome.requests, outcome.start_unix_ns)
        return found

    def cannot_write(self, path: str, error: OSError) -> ToolExit:
        """As C's `perror` has it."""
        what = "gnuplot" if path == self.flags.gnuplot_file else "CSV"
        return ToolExit(err=f"Cannot open {what} output file: {error.strerror}\n", code=1)

    def notes(self, outcome: Outcome) -> list[str]:
        """What ab would have done otherwise."""
        summary, flags = outcome.end.summary, self.flags
        how = "keep-alive" if flags.keep_alive else "close"
        found = [f"requests are HTTP/1.1 with Connection: {how}, where ab's are HTTP/1.0"]
        unanswered = summary.requests.failed - summary.errors.check
        if unanswered:
            found.append(f"Complete requests are those that were answered; ab counts the {unanswered:,} that were not among them")
        if self._fatal(outcome) is not None:
            found.append("without -r ab ends at the first error of a socket and reports nothing; weir has gone on")
        if flags.verbosity > 1:
            found.append("-v: the request is shown, answers are not")
        return found

    def exit_code(self, outcome: Outcome) -> int:
        """0, 1 after Ctrl-C, or that of the socket's error at which ab ends without `-r`."""
        fatal = self._fatal(outcome)
        return int(outcome.interrupted) if fatal is None else fatal[0]

    def cannot_begin(self, error: WeirError) -> ToolExit:
        """ab ends at its first connection."""
        message = said(error.message, error.hint)
        if isinstance(error, TargetError):
            why = "Connection refused" if "refused" in error.message else error.message
            return ToolExit(out=self.heading(), err=f"apr_socket_recv: {why} ({_CONNECTION_REFUSED})\n{message}", code=_CONNECTION_REFUSED)
        if "key target" in error.message:
            return _unknown_host(self.flags, message)
        return ToolExit(err=message, code=22)

    def _fatal(self, outcome: Outcome) -> tuple[int, str] | None:
        """The exit code and the words with which ab ends at an error of a socket; None where there was none, or `-r`."""
        errors = outcome.end.summary.errors
        was_reset = any(event.kind == "reset" and "reset" in event.detail for event in outcome.events)
        if errors.timeout and not outcome.end.summary.requests.completed:
            return _TIMED_OUT & 255, f"apr_pollset_poll: The timeout specified has expired ({_TIMED_OUT})\n"
        if errors.reset and was_reset and not self.flags.goes_on:
            return _CONNECTION_RESET, f"apr_socket_recv: Connection reset by peer ({_CONNECTION_RESET})\n"
        return None

    def _request_told(self) -> str:
        if self.flags.verbosity < 2:
            return ""
        request = self.plan.request
        head = "\n".join([f"{request.method} {self.flags.path} HTTP/1.1", *(f"{name}: {value}" for name, value in request.headers), "", ""])
        return f"INFO: {request.method} header == \n---\n{head}\n---\n"

    def _result(self, outcome: Outcome) -> AbResult:
        summary, flags = outcome.end.summary, self.flags
        first, errors, clocks = summary.first_answer, summary.errors, _clocks(outcome)
        failures = {
            "Connect": errors.connect,
            "Receive": errors.reset,
            "Length": 0 if flags.any_length else summary.other_length,
            "Exceptions": errors.timeout + errors.protocol,
        }
        return AbResult(
            server=(first.server.split() or [""])[0] if first is not None else "",
            host=flags.host,
            port=flags.port,
            tls=self._tls_lines(),
            path=flags.path,
            document_bytes=None if flags.any_length else first.body_bytes if first is not None else 0,
            concurrency=flags.concurrency,
            taken_s=summary.duration_s,
            complete=summary.requests.completed,
            failures=failures,
            not_2xx=sum(count for status, count in summary.status.items() if not status.startswith("2")),
            keep_alive=_kept(clocks, summary.requests.completed, flags.concurrency) if flags.keep_alive else None,
            received_bytes=summary.bytes.received,
            body_bytes=summary.bytes.received_body,
            sent_bytes=summary.bytes.sent if flags.body is not None else None,
            clocks=clocks,
        )

    def _tls_lines(self) -> list[tuple[str, str]]:
        if not self.flags.is_tls:
            return []
        lines = [("SSL/TLS Protocol:", "not recorded"), ("Server Temp Key:", "not recorded")]
        host = self.flags.host
        return lines if _is_address(host) else [*lines, ("TLS Server Name:", host)]


def _heading(flags: AbFlags) -> str:
    if flags.html is not None:
        return banner_html(_banner())
    end = "\n" if _step(flags) else "..."
    return "\n".join([*_banner(), "", f"Benchmarking {flags.host} (be patient){end}"])


def _step(flags: AbFlags) -> int:
    """Requests from one line of progress to the next; 0 where there are none."""
    return max(_LEAST_STEP, flags.requests // _PROGRESS_STEPS) if flags.progress and flags.requests > _PROGRESS_FROM else 0


def _unknown_host(flags: AbFlags, message: str) -> ToolExit:
    error = f"apr_sockaddr_info_get() for {flags.host}: Name or service not known ({_NO_ADDRESS})\n"
    return ToolExit(out=_heading(flags), err=f"{flags.complaint}{error}{message}", code=_NO_ADDRESS & 255)


def _clocks(outcome: Outcome) -> Clocks:
    return Clocks.of(outcome.end) if outcome.requests is None else Clocks.logged(outcome.requests)


def _kept(clocks: Clocks, answers: int, concurrency: int) -> int:
    """Answers after which the connection was kept: for each of the others one was made in place of it."""
    made = clocks.connect.count - clocks.connect.up_to(0)
    if made >= answers > concurrency:
        # The last ones were closed as all others were, and nothing came in their place.
        return 0
    # Those that took the place of one that failed are among them: there may be more than answers.
    return max(0, answers - max(0, made - concurrency))


def _banner() -> tuple[str, str, str]:
    # Here and not above: the package's metadata take a while to find.
    from weir import __version__

    return (
        f"This is ApacheBench, Version 2.3 <its flags and report as weir {__version__} does them>",
        "Measured by weir-engine, told in the form of ab; what differs is on standard error",
        "Licensed under the Apache License, Version 2.0",
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _request(flags: AbFlags) -> Request:
    """The request with the headers of ab's, in its order."""
    given = {name.lower() for name, _ in flags.headers}
    headers = [("Connection", "Keep-Alive" if flags.keep_alive else "close")] if "connection" not in given else []
    headers += [("Cookie", flags.cookie)] if flags.cookie else []
    headers += flags.authorization
    if flags.body is not None:
        headers += [("Content-length", str(len(flags.body))), ("Content-type", flags.content_type)]
    headers += flags.headers
    usual = ("Host", flags.authority), ("User-Agent", "ApacheBench/2.3"), ("Accept", "*/*")
    headers += [(name, value) for name, value in usual if name.lower() not in given]
    return Request(flags.method, flags.url, tuple(headers), flags.body)
