"""Builds the request of an HTTP sampler from the elements in its scope, as JMeter's HttpClient4 does."""

import codecs
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote_plus, urlsplit

from weir.compat.jmx.assertion import list_right_statuses, read_assertion
from weir.compat.jmx.references import Piece, Placeholder, Text, join_texts, write_original
from weir.compat.jmx.scope import Scope, parse_number
from weir.compat.jmx.test_plan import NO_TIMEOUT_S, Sampler
from weir.compat.jmx.tree import Argument, Element, list_arguments
from weir.model.errors import UsageError
from weir.model.load import Think

ENCODED = " encoded"
"""Suffix for the names of columns whose values are percent-encoded for a form."""
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_METHODS_WITH_QUERY = ("GET", "DELETE", "OPTIONS", "HEAD")
_LENGTHS = ("content-length", "transfer-encoding")
_COMPRESSED = re.compile(r"gzip|deflate|\bbr\b")
_UNSUPPORTED = {
    "HTTPSampler.DO_MULTIPART_POST": "a body in several parts (multipart/form-data)",
    "HTTPSampler.image_parser": "the resources that a page embeds",
    "HTTPSampler.proxyHost": "a proxy",
    "HTTPSampler.ipSource": "an address to connect from",
}
"""Descriptions of unsupported properties. weir reports a property if its value is neither empty nor false."""


class _Parameter(NamedTuple):
    argument: Argument
    name: Text
    value: Text


def read_sampler(element: Element, scope: Scope) -> Sampler | None:
    """Returns the request of a sampler; None if weir cannot send the request. Raises UsageError: the server is missing
    or invalid, or a property is not a number."""
    sources = [element, *scope.find("ConfigTestElement")]

    def first(name: str) -> str:
        return next((text for source in sources if (text := source.value(name))), "")

    def setting(name: str) -> str:
        return scope.resolve_fixed(element, first(name)).strip()

    _report_unsupported(element, sources, scope)
    method = setting("HTTPSampler.method").upper() or "GET"
    if method not in _METHODS:
        scope.report(element, f"found the method {method}, expected one of {', '.join(_METHODS)}")
        return None
    encoding = _find_encoding(element, setting("HTTPSampler.contentEncoding"), scope)
    parameters = [
        _Parameter(argument, scope.resolve(element, argument.name), scope.resolve(element, argument.value))
        for source in sources
        for argument in list_arguments(source.find_property("HTTPsampler.Arguments"))
    ]
    named = [parameter for parameter in parameters if parameter.name]
    is_raw = element.flag("HTTPSampler.postBodyRaw") or (bool(parameters) and not named)
    path = scope.resolve(element, first("HTTPSampler.path").strip())
    origin, path = _split_target(element, path, setting)
    body: Text = ()
    content_type = ""
    if is_raw:
        body, content_type = join_texts(parameter.value for parameter in parameters), "text/plain"
    elif method not in _METHODS_WITH_QUERY:
        body = _write_pairs(named, encoding, in_form=True)
        content_type = "application/x-www-form-urlencoded"
    elif query := _write_pairs(named, encoding, in_form=False):
        has_query = any(isinstance(piece, str) and "?" in piece for piece in path)
        path = join_texts([path, ("&" if has_query else "?",), query])
    headers = _read_headers(scope)
    if content_type:
        headers.setdefault("content-type", ("Content-Type", (f"{content_type}; charset={encoding.upper()}",)))
    is_ascii = all(isinstance(piece, str) and piece.isascii() for piece in body)
    if encoding != "utf-8" and not is_ascii:
        scope.report(element, f"found a body in {encoding}, expected UTF-8")
    texts = (path, body, *(value for _, value in headers.values()))
    if any(isinstance(piece, str) and "{{" in piece for text in texts for piece in text):
        scope.report(element, "found {{, expected none: {{ begins a placeholder in weir's templates")
        return None
    assertions = [
        assertion for one in reversed(scope.find("ResponseAssertion")) if (assertion := read_assertion(one, scope))
    ]
    _, accepted = headers.get("accept-encoding", ("", ()))
    if _COMPRESSED.search(str(accepted)) and not all(assertion.is_for_status for assertion in assertions):
        found = "found an assertion on a body that may be compressed (Accept-Encoding)"
        scope.report(element, f"{found}: weir does not decompress bodies")
    statuses = list_right_statuses(assertions)
    if statuses == ():
        found = "found assertions that no status from 200 to 399 fulfils"
        scope.report(element, f"{found}; Ignore Status also allows 400 to 599")
        statuses = None
    timeout_ms = parse_number(element, setting("HTTPSampler.response_timeout") or "0", "HTTPSampler.response_timeout")
    return Sampler(
        name=write_original(scope.resolve(element, element.name)),
        method=method,
        origin=origin,
        path=path,
        headers=tuple(headers.values()),
        body=body or None,
        delay=_add_timers(scope),
        assertions=tuple(assertions),
        statuses=statuses,
        keep_alive=element.flag("HTTPSampler.use_keepalive", default=True),
        timeout_s=min(timeout_ms / 1000 or NO_TIMEOUT_S, NO_TIMEOUT_S),
    )


def _report_unsupported(element: Element, sources: Sequence[Element], scope: Scope) -> None:
    for name, what in _UNSUPPORTED.items():
        if any(source.value(name).strip().lower() not in ("", "false") for source in sources):
            scope.report(element, f"found {what} ({name}), expected none")
    files = (source.find_property("HTTPsampler.Files") for source in sources)
    if any(one is not None and one.items("HTTPFileArgs.files") for one in files):
        scope.report(element, "found files to send (HTTPsampler.Files), expected none")


def _split_target(element: Element, path: Text, setting: Callable[[str], str]) -> tuple[str, Text]:
    """Returns the origin and the path. If the path is a whole URL, the URL overrides protocol, server and port."""
    where = f"line {element.line}: sampler {element.name!r}"
    protocol = setting("HTTPSampler.protocol").lower() or "http"
    host, port_text = setting("HTTPSampler.domain"), setting("HTTPSampler.port")
    if path and isinstance(path[0], str) and re.match(r"https?://", path[0], re.IGNORECASE):
        end = re.search(r"(?<!/)[/?](?!/)", path[0])
        at = len(path[0]) if end is None else end.start()
        try:
            url = urlsplit(path[0][:at])
            protocol, host, port_text = url.scheme.lower(), url.hostname or "", str(url.port or "")
        except ValueError:
            host = ""
        path = (path[0][at:], *path[1:])
    host = host.strip("[]")
    if protocol not in ("http", "https"):
        raise UsageError(f"{where}: found the protocol {protocol!r}, expected http or https")
    if not re.fullmatch(r"[^\s/?#@\[\]]+", host):
        raise UsageError(f"{where}: found the server {host!r}, expected a host name or address")
    standard = 443 if protocol == "https" else 80
    port = int(parse_number(element, port_text or "0", "HTTPSampler.port")) or standard
    if not 0 < port < 65536:
        raise UsageError(f"{where}: found the port {port}, expected a port from 1 to 65535")
    authority = f"[{host}]" if ":" in host else host
    first = path[0] if path else ""
    # If a path begins with a value from a data set, the value contains the slash.
    if not (first.startswith("/") if isinstance(first, str) else first.column is not None):
        path = ("/", *path)
    path = join_texts([[_quote_space(piece) if isinstance(piece, str) else piece for piece in path]])
    return f"{protocol}://{authority}" + ("" if port == standard else f":{port}"), path


def _quote_space(text: str) -> str:
    return re.sub(r"\s", lambda found: quote(found[0]), text)


def _write_pairs(parameters: Sequence[_Parameter], encoding: str, *, in_form: bool) -> Text:
    """Returns `name=value&name=value`. As in JMeter, forms first decode text that is already encoded."""
    texts: list[Text] = []
    for argument, name, value in parameters:
        encoded = [
            tuple(_encode(piece, argument.is_encoded, encoding, in_form=in_form) for piece in text)
            for text in (name, value)
        ]
        texts += [("&",)] if texts else []
        texts += [encoded[0], (argument.equals or ("=" if value else ""),), encoded[1]]
    return join_texts(texts)


def _encode(piece: Piece, is_encoded: bool, encoding: str, *, in_form: bool) -> Piece:
    if isinstance(piece, Placeholder):
        if piece.column is None or not in_form:
            # The engine encodes values in a path. Numbers and UUIDs need no encoding.
            return piece
        data_set, column = piece.column
        return Placeholder(f"csv {data_set}.{column}{ENCODED}", piece.written, (data_set, column + ENCODED))
    if not is_encoded and not in_form:
        return _quote_space(piece)
    return encode_for_form(piece if is_encoded else unquote_plus(piece, encoding), encoding)


def encode_for_form(text: str, encoding: str = "utf-8") -> str:
    """Encodes text for a form as Java's URLEncoder does."""
    return quote_plus(text, safe="*", encoding=encoding, errors="replace").replace("~", "%7E")


def _find_encoding(element: Element, name: str, scope: Scope) -> str:
    try:
        return codecs.lookup(name or "utf-8").name
    except LookupError:
        scope.report(element, f"found the encoding {name!r}, expected an encoding that Python knows")
        return "utf-8"


def _read_headers(scope: Scope) -> dict[str, tuple[str, Text]]:
    """Returns name and value of each header, by lower-case name. As in JMeter, the nearest header manager wins."""
    headers: dict[str, tuple[str, Text]] = {}
    for manager in scope.find("HeaderManager"):
        own = {}
        for item in manager.items("HeaderManager.headers"):
            name = scope.resolve_fixed(manager, item.value("Header.name")).strip()
            if name and name.lower() not in _LENGTHS:
                value = " ".join(item.value("Header.value").splitlines()).strip()
                own[name.lower()] = (name, scope.resolve(manager, value))
        headers = own | headers
    return headers


def _add_timers(scope: Scope) -> Think:
    """Returns the sum of the delays of all timers in scope."""
    shortest_s = longest_s = 0.0
    for timer in scope.find("ConstantTimer", "UniformRandomTimer"):
        constant_s = max(0.0, scope.number(timer, "ConstantTimer.delay", "0")) / 1000
        range_s = 0.0
        if timer.kind == "UniformRandomTimer":
            range_s = max(0.0, scope.number(timer, "RandomTimer.range", "0")) / 1000
        if longest_s > shortest_s and range_s:
            scope.report(
                timer, "found a second random timer for a request, expected one: the sum of two is not uniform"
            )
            constant_s, range_s = constant_s + range_s / 2, 0.0
        shortest_s += constant_s
        longest_s += constant_s + range_s
    return Think(shortest_s, longest_s)
