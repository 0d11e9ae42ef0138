"""ab's flags as its `apr_getopt` reads them, one after the other, each checked as it comes."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weir.compat.front_end import ToolExit, not_offered

_WITH_TEXT = frozenset("nctsbTpuvxyzCHPAgXeBmZfE")
_ALONE = frozenset("lrkVhwiIdSq")
_EINVAL = 22
_TIMED_REQUESTS = 50_000
_MOST_CONCURRENT = 200_000
_PORTS = 65535
_USAGE = """Usage: ab [options] [http[s]://]hostname[:port]/path
Options are (of ab, done by weir):
    -n requests     How many requests in all. 1, or 50000 with -t
    -c concurrency  How many at a time. 1
    -t timelimit    Seconds after which to end; sets -n to 50000
    -s timeout      Seconds that an answer may take. 30
    -b windowsize   Buffer of the sockets; not offered
    -B address      Address of this machine to connect from
    -p postfile     File to POST
    -u putfile      File to PUT
    -T content-type Content-type of what is sent. text/plain
    -v verbosity    From 2 on the request is printed
    -w              The report as an HTML table
    -i              HEAD instead of GET
    -x attributes   Attributes of that table
    -y attributes   Attributes of its rows
    -z attributes   Attributes of its cells
    -C attribute    A cookie, NAME=VALUE; the last one counts
    -H attribute    A header, NAME: VALUE; may be repeated
    -A attribute    Basic authentication, USER:PASSWORD
    -P attribute    The same for a proxy
    -X proxy:port   Proxy; not offered
    -V              Print the version and exit
    -k              Several requests on a connection
    -d              Without the table of percentages
    -S              Without medians, deviations and warnings
    -q              Without progress, which is told from 151 requests on
    -l              Answers may differ in length
    -g filename     Write a line for each answer, for gnuplot
    -e filename     Write the percentages as CSV
    -r              Go on after errors of sockets, as weir always does
    -m method       Another method
    -h              Print this
    -I              Without server name indication; not offered
    -Z ciphersuite  Ciphers of TLS; not offered
    -f protocol     Versions of TLS; ALL alone is offered
    -E certfile     Certificate to show to the server, with its key
"""


def usage(complaint: str = "") -> ToolExit:
    """The usage, behind a complaint if there is one."""
    return ToolExit(err=complaint + _USAGE, code=_EINVAL)


def fatal(message: str) -> ToolExit:
    """A value that ends ab at once."""
    return ToolExit(err=f"{message}\n", code=1)


@dataclass(slots=True)
class AbFlags:
    """What was asked for; as ab has it where it was not."""

    is_tls: bool = False
    host: str = ""
    port: int = 80
    authority: str = ""
    """Of the URL: its host, and its port unless it is its scheme's."""
    path: str = ""
    """With its query, as it was given."""
    has_address: bool = True
    """Whether the host can be one: not where it has a colon, and is no IPv6 address in brackets."""
    requests: int = 1
    concurrency: int = 1
    time_limit_s: int = 0
    timeout_s: int = 30
    method: str = ""
    body: bytes | None = None
    body_file: str = ""
    content_type: str = "text/plain"
    cookie: str = ""
    authorization: list[tuple[str, str]] = field(default_factory=list)
    headers: list[tuple[str, str]] = field(default_factory=list)
    bind: str = ""
    certificate: str = ""
    keep_alive: bool = False
    any_length: bool = False
    goes_on: bool = False
    """Whether an error of a socket is no reason to end."""
    progress: bool = True
    percentages: bool = True
    confidence: bool = True
    verbosity: int = 0
    html: tuple[str, str, str] | None = None
    """Attributes of the table, its rows and its cells."""
    complaint: str = ""
    """Of a wrong flag that is no reason to end: where the URL stands right behind it."""
    csv_file: str = ""
    gnuplot_file: str = ""

    @property
    def url(self) -> str:
        """Where the requests go."""
        return f"{'https' if self.is_tls else 'http'}://{self.authority}{self.path}"


class VersionAskedError(Exception):
    """`-V`: the banner is all that is wanted."""


def parse(argv: Sequence[str]) -> AbFlags:
    """The flags and the URL in `argv`.

    Raises:
        ToolExit: in ab's words where they are wrong, in weir's where weir does not do it.
        VersionAskedError: `-V` came first.
    """
    flags = AbFlags()
    words = _Words(argv)
    for name, text in words:
        _take(flags, name, text)
    if words.index != len(argv) - 1:
        raise usage(f"{words.complaint}ab: wrong number of arguments\n")
    flags.complaint = words.complaint
    _take_url(flags, argv[-1])
    if not 0 <= flags.concurrency <= _MOST_CONCURRENT:
        raise usage(f"{words.complaint}ab: Invalid Concurrency [Range 0..{_MOST_CONCURRENT}]\n")
    if flags.concurrency > flags.requests:
        raise usage(f"{words.complaint}ab: Cannot use concurrency level greater than total number of requests\n")
    flags.method = flags.method or "GET"
    return flags


class _Words:
    """Flags and their texts, until the first word that is none. A wrong one ends them, with a complaint, and leaves the index behind it."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        self.index = 0
        self.complaint = ""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        while self.index < len(self._argv) and self._argv[self.index].startswith("-") and self._argv[self.index] != "-":
            word = self._argv[self.index]
            if word.startswith("--"):
                # Whatever follows the two, as with "--" alone.
                self.index += 1
                return
            for place, name in enumerate(word[1:], start=2):
                is_last = place == len(word)
                if name in _WITH_TEXT:
                    text = word[place:]
                    self.index += 1
                    if is_last:
                        if self.index == len(self._argv):
                            self.complaint = f"ab: option requires an argument -- {name}\n"
                            return
                        text = self._argv[self.index]
                        self.index += 1
                    yield name, text
                    break
                self.index += is_last
                if name not in _ALONE:
                    self.complaint = f"ab: illegal option -- {name}\n"
                    return
                yield name, ""


def _take(flags: AbFlags, name: str, text: str) -> None:
    match name:
        case "n":
            flags.requests = _number(text)
            if flags.requests <= 0:
                raise fatal("Invalid number of requests\n")
        case "c":
            flags.concurrency = _number(text)
        case "t":
            flags.time_limit_s = _number(text)
            flags.requests = _TIMED_REQUESTS
        case "s":
            flags.timeout_s = _number(text)
        case "v":
            flags.verbosity = _number(text)
        case "i":
            _set_method(flags, "HEAD")
        case "p":
            _set_method(flags, "POST", text)
        case "u":
            _set_method(flags, "PUT", text)
        case "m":
            flags.method = text
        case "k" | "l" | "r" | "q" | "d" | "S":
            attribute, value = _SWITCHES[name]
            setattr(flags, attribute, value)
        case "T":
            flags.content_type = text
        case "C":
            flags.cookie = text
        case "A" | "P":
            credentials = b64encode(text.lstrip().encode()).decode()
            flags.authorization.append(("Authorization" if name == "A" else "Proxy-Authorization", f"Basic {credentials}"))
        case "H":
            flags.headers.append(_header(text))
        case "B":
            flags.bind = text
        case "E":
            flags.certificate = text
        case "e":
            flags.csv_file = text
        case "g":
            flags.gnuplot_file = text
        case "w" | "x" | "y" | "z":
            table, row, cell = flags.html or ("", "", "bgcolor=white")
            flags.html = {"w": (table, row, cell), "x": (text, row, cell), "y": (table, text, cell), "z": (table, row, text)}[name]
        case "h":
            raise usage()
        case "V":
            raise VersionAskedError
        case _:
            _check_offered(name, text)


_SWITCHES = {
    "k": ("keep_alive", True),
    "l": ("any_length", True),
    "r": ("goes_on", True),
    "q": ("progress", False),
    "d": ("percentages", False),
    "S": ("confidence", False),
}


def _check_offered(name: str, text: str) -> None:
    if name == "f" and text.upper().startswith("ALL"):
        return
    instead = {
        "X": (
            f"found {text!r}, and weir sends through no proxy",
            "weir load --connect-to HOST:PORT URL reaches the URL at another address",
        ),
        "b": (f"found {text!r}, and weir leaves the buffers of sockets to the kernel", "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem"),
        "f": (f"found {text!r}, and weir speaks TLS 1.2 and 1.3, whichever the server prefers", "leave out -f"),
        "Z": (f"found {text!r}, and weir offers the ciphers of its TLS library, which are not chosen from", "leave out -Z"),
        "I": ("weir always asks for the name in the URL", "an IP address in the URL: no name is asked for then"),
    }
    what, hint = instead[name]
    raise not_offered(f"-{name}: {what}", hint, _EINVAL)


def _set_method(flags: AbFlags, method: str, body_file: str = "") -> None:
    if flags.method:
        raise fatal(f"Cannot mix {method} with other methods\n")
    flags.method = method
    if not body_file and method == "HEAD":
        return
    try:
        flags.body = Path(body_file).read_bytes()
    except OSError as error:
        raise ToolExit(err=f"ab: Could not open POST data file ({body_file}): {error.strerror}\n", code=1) from None
    flags.body_file = body_file


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or "\n" in text:
        raise not_offered(f"-H: found {text!r}, which no server reads as a header", "-H 'NAME: VALUE'", _EINVAL)
    return name, value.strip()


def _number(text: str) -> int:
    """The number that a text begins with; 0 where it begins with none (C's `atoi`)."""
    text = text.lstrip()
    end = 1 if text[:1] in ("+", "-") else 0
    while text[end : end + 1].isdecimal() and text[end].isascii():
        end += 1
    try:
        return int(text[:end])
    except ValueError:
        return 0


def _take_url(flags: AbFlags, text: str) -> None:
    flags.is_tls = text.startswith("https://") and text != "https://"
    if flags.is_tls or (text.startswith("http://") and text != "http://"):
        text = text.partition("://")[2]
    authority, slash, path = text.partition("/")
    # A port is the digits behind the last colon; anything else is the host's.
    parts = re.fullmatch(r"(?:\[([^\]]+)\]|(.*?))(?::(\d+))?", authority)
    assert parts is not None
    usual_port = 443 if flags.is_tls else 80
    flags.host, flags.path, flags.port = parts[1] or parts[2], f"/{path}", usual_port if parts[3] is None else int(parts[3])
    flags.authority = (f"[{flags.host}]" if parts[1] else flags.host) + (f":{flags.port}" if flags.port != usual_port else "")
    flags.has_address = parts[1] is not None or ":" not in flags.host
    if not slash or not flags.host or not 0 < flags.port <= _PORTS:
        raise usage(f"{flags.complaint}ab: invalid URL\n")
