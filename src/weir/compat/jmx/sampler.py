"""HTTP samplers: what one sends, from itself and from the defaults and managers in its scope, as JMeter's HttpClient4 sends it."""

import codecs
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote_plus, urlsplit

from weir.compat.jmx.assertion import read_assertion, right_statuses
from weir.compat.jmx.plan import Assertion, Delay, Sampler
from weir.compat.jmx.scope import Complain, Scope, number
from weir.compat.jmx.tree import Argument, Element, Node, arguments
from weir.compat.jmx.values import Placeholder, Text, written
from weir.model.errors import UsageError

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_IN_QUERY = ("GET", "DELETE", "OPTIONS", "HEAD")
ENCODED = " encoded"
"""Behind the name of a column: its values, percent-encoded for a form."""
_LENGTHS = ("content-length", "transfer-encoding")
_COMPRESSED = re.compile(r"gzip|deflate|\bbr\b")


class Read(NamedTuple):
    """A sampler, and what only its thread group as a whole can have."""

    sampler: Sampler
    keep_alive: bool
    timeout_s: float | None
    """None: it waits for ever."""


def read_sampler(element: Element, scope: Scope, tell: Complain) -> Read | None:
    """The request of a sampler; None where it is none that weir can send.

    Args:
        element: the sampler.
        scope: what applies to it.
        tell: told what is not supported.

    Raises:
        UsageError: it says no server, or something that must be a number is none.
    """
    complain = partial(tell, element)
    nodes = [element.node, *(default.node for default in scope.defaults)]

    def first(name: str) -> str:
        return next((text for node in nodes if (text := node.value(name))), "")

    def fixed(name: str) -> str:
        return scope.values.fixed(first(name), complain).strip()

    def milliseconds(name: str) -> float | None:
        text = fixed(name)
        return number(element, text, name) / 1000 or None if text else None

    _look_for_the_rest(nodes, complain)
    method = fixed("HTTPSampler.method").upper() or "GET"
    if method not in METHODS:
        complain(f"the method {method}, expected one of {', '.join(METHODS)}")
        return None
    encoding = _encoding(fixed("HTTPSampler.contentEncoding"), complain)
    given = [argument for node in nodes for argument in arguments(node.property("HTTPsampler.Arguments"))]
    texts = [_Resolved(argument, *(scope.values.text(part, complain) for part in (argument.name, argument.value))) for argument in given]
    is_raw = element.node.flag("HTTPSampler.postBodyRaw") or bool(given and not any(argument.name for argument in given))
    where = _where(scope.values.text(first("HTTPSampler.path").strip(), complain), fixed, element)
    path = where.path
    if method in _IN_QUERY and not is_raw:
        path = _with_query(path, _pairs([one for one in texts if one.name], encoding, in_form=False))
    headers = _headers(scope, complain)
    body: Text | None = None
    kind = ""
    if is_raw:
        body, kind = _joined(one.value for one in texts), "text/plain"
    elif method not in _IN_QUERY:
        body, kind = _pairs([one for one in texts if one.name], encoding, in_form=True), "application/x-www-form-urlencoded"
    if kind and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", (f"{kind}; charset={encoding.upper()}",)))
    if body is not None and encoding != "utf-8" and not all(isinstance(piece, str) and piece.isascii() for piece in body):
        complain(f"a body in {encoding}, expected UTF-8")
    if any(isinstance(piece, str) and "{{" in piece for text in (path, body or (), *(value for _, value in headers)) for piece in text):
        complain("text with {{, where a placeholder of weir's templates begins")
        return None
    assertions = [read_assertion(one, scope.values, partial(tell, one)) for one in reversed(scope.assertions)]
    kept = tuple(assertion for assertion in assertions if assertion is not None)
    for name, value in headers:
        if name.lower() == "accept-encoding" and _COMPRESSED.search(str(value)) and not all(one.of_status for one in kept):
            complain("an assertion on a body that may come compressed (its header Accept-Encoding), which weir does not unpack")
    sampler = Sampler(
        name=written(scope.values.text(element.name, complain)),
        method=method,
        secure=where.secure,
        host=where.host,
        port=where.port,
        path=path,
        headers=tuple(headers),
        body=body or None,
        delay=_delay(scope, tell),
        assertions=kept,
        statuses=_statuses(kept, complain),
    )
    return Read(sampler, element.node.flag("HTTPSampler.use_keepalive", default=True), milliseconds("HTTPSampler.response_timeout"))


class _Resolved(NamedTuple):
    argument: Argument
    name: Text
    value: Text


class _Where(NamedTuple):
    secure: bool
    host: str
    port: int
    path: Text


def _where(path: Text, fixed: Callable[[str], str], element: Element) -> _Where:
    """Server and path: a path may be a whole URL, which goes before everything else."""
    where = f"line {element.node.line}: sampler {element.name!r}"
    protocol, host, port_text = fixed("HTTPSampler.protocol").lower() or "http", fixed("HTTPSampler.domain"), fixed("HTTPSampler.port")
    if path and isinstance(path[0], str) and re.match(r"https?://", path[0], re.IGNORECASE):
        end = re.search(r"(?<!/)[/?](?!/)", path[0])
        at = len(path[0]) if end is None else end.start()
        try:
            url = urlsplit(path[0][:at])
            protocol, host, port_text = url.scheme.lower(), url.hostname or "", str(url.port or "")
        except ValueError:
            host = ""
        path = (path[0][at:], *path[1:])
    if protocol not in ("http", "https"):
        raise UsageError(f"{where}: found the protocol {protocol!r}, expected http or https")
    if not re.fullmatch(r"[^\s/?#@\[\]]+", host.strip("[]")):
        raise UsageError(f"{where}: found the server {host!r}, expected a host's name or address")
    standard = 443 if protocol == "https" else 80
    port = int(number(element, port_text, "HTTPSampler.port")) if port_text not in ("", "0") else standard
    if not 0 < port < 65536:
        raise UsageError(f"{where}: found the port {port}, expected one from 1 to 65535")
    spaceless = tuple(re.sub(r"\s", lambda found: quote(found[0]), piece) if isinstance(piece, str) else piece for piece in path)
    first = spaceless[0] if spaceless else ""
    # A path that begins with a value of a data set has its slash there, or gets one.
    if not (first.startswith("/") if isinstance(first, str) else first.column is not None):
        spaceless = _joined([("/",), spaceless])
    return _Where(protocol == "https", host.strip("[]"), port, spaceless)


def _joined(texts: Iterable[Text]) -> Text:
    """Texts behind one another."""
    pieces: list[str | Placeholder] = []
    for text in texts:
        for piece in text:
            if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            else:
                pieces.append(piece)
    return tuple(pieces)


def _with_query(path: Text, query: Text) -> Text:
    if not query:
        return path
    has_one = any(isinstance(piece, str) and "?" in piece for piece in path)
    return _joined([path, ("&" if has_one else "?",), query])


def _pairs(given: Sequence[_Resolved], encoding: str, *, in_form: bool) -> Text:
    """`name=value&name=value`. In a form, what is said to be encoded is decoded and encoded again, which is what JMeter does."""
    texts: list[Text] = []
    for argument, name, value in given:

        def sent(text: Text, is_encoded: bool = argument.is_encoded) -> Text:
            return tuple(_sent(piece, is_encoded, encoding, in_form=in_form) for piece in text)

        texts += [("&",)] if texts else []
        texts += [sent(name), (argument.equals or ("=" if value else ""),), sent(value)]
    return _joined(texts)


def _sent(piece: str | Placeholder, is_encoded: bool, encoding: str, *, in_form: bool) -> str | Placeholder:
    if isinstance(piece, Placeholder):
        if piece.column is None or not in_form:
            # In a path the engine encodes them; numbers and UUIDs need none.
            return piece
        data_set, column = piece.column
        return Placeholder(f"csv {data_set}.{column}{ENCODED}", piece.written, (data_set, column + ENCODED))
    if not is_encoded and not in_form:
        return re.sub(r"\s", lambda found: quote(found[0]), piece)
    return form_encoded(piece if is_encoded else unquote_plus(piece, encoding), encoding)


def form_encoded(text: str, encoding: str = "utf-8") -> str:
    """Text as a form holds it, the way of Java's URLEncoder."""
    return quote_plus(text, safe="*", encoding=encoding, errors="replace").replace("~", "%7E")


def _encoding(name: str, complain: Callable[[str], None]) -> str:
    try:
        return codecs.lookup(name or "utf-8").name
    except LookupError:
        complain(f"the encoding {name!r}, which Python does not know")
        return "utf-8"


def _headers(scope: Scope, complain: Callable[[str], None]) -> list[tuple[str, Text]]:
    """What header managers say: of one name the nearest manager's, as JMeter merges them."""
    found: dict[str, tuple[str, Text]] = {}
    for manager in scope.headers:
        own = {}
        for item in manager.node.items("HeaderManager.headers"):
            name = scope.values.fixed(item.value("Header.name"), complain).strip()
            if name and name.lower() not in _LENGTHS:
                own[name.lower()] = (name, scope.values.text(" ".join(item.value("Header.value").splitlines()).strip(), complain))
        found = own | found
    return list(found.values())


def _statuses(assertions: Sequence[Assertion], complain: Callable[[str], None]) -> tuple[int, ...] | None:
    statuses = right_statuses(assertions)
    if statuses == ():
        complain("assertions that no status from 200 to 399 holds: nothing would be right (Ignore Status allows others)")
        return None
    return statuses


def _delay(scope: Scope, tell: Complain) -> Delay:
    """All timers in scope, one after the other."""
    shortest_s = longest_s = 0.0
    spread = False
    for timer in scope.timers:
        constant_s = _milliseconds(timer, "ConstantTimer.delay", scope, tell)
        range_s = _milliseconds(timer, "RandomTimer.range", scope, tell) if timer.kind == "UniformRandomTimer" else 0.0
        if spread and range_s:
            tell(timer, "a second random timer for the same request: the sum of two is not uniform")
            constant_s, range_s = constant_s + range_s / 2, 0.0
        spread = spread or range_s > 0
        shortest_s += constant_s
        longest_s += constant_s + range_s
    return Delay(shortest_s, longest_s)


def _milliseconds(timer: Element, name: str, scope: Scope, tell: Complain) -> float:
    text = scope.values.fixed(timer.node.value(name, "0"), partial(tell, timer)).strip()
    return max(0.0, number(timer, text or "0", name)) / 1000


def _look_for_the_rest(nodes: Sequence[Node], complain: Callable[[str], None]) -> None:
    """What a sampler or its defaults ask for and weir does not do."""
    for name, what in (
        ("HTTPSampler.DO_MULTIPART_POST", "a body in several parts (multipart/form-data)"),
        ("HTTPSampler.image_parser", "the resources that a page embeds"),
    ):
        if any(node.flag(name) for node in nodes):
            complain(f"{what} ({name})")
    for name, what in (("HTTPSampler.proxyHost", "a proxy"), ("HTTPSampler.ipSource", "an address to connect from")):
        if any(node.value(name).strip() for node in nodes):
            complain(f"{what} ({name})")
    for node in nodes:
        files = node.property("HTTPsampler.Files")
        if files is not None and files.items("HTTPFileArgs.files"):
            complain("files to be sent (HTTPsampler.Files)")
