"""Builds the request of an HTTP sampler from the elements in scope. The request is that of JMeter's HttpClient4."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote_plus, unquote_plus, urlsplit

from weir.compat.jmx.assertion import list_right_statuses, read_assertion
from weir.compat.jmx.references import Piece, Placeholder, Text, join_texts
from weir.compat.jmx.scope import Scope
from weir.compat.jmx.test_plan import NO_TIMEOUT_S, Sampler
from weir.compat.jmx.tree import Argument, Element, list_arguments
from weir.model.load import Think

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_METHODS_WITH_QUERY = ("GET", "DELETE", "OPTIONS")
_METHODS_WITHOUT_BODY = ("HEAD", "OPTIONS")
_LENGTHS = ("content-length", "transfer-encoding")
_COMPRESSED = re.compile(r"gzip|deflate|\bbr\b")
_UNSUPPORTED = {
    "HTTPSampler.DO_MULTIPART_POST": "a body in several parts (multipart/form-data)",
    "HTTPSampler.image_parser": "the resources that a page embeds",
    "HTTPSampler.proxyHost": "a proxy",
    "HTTPSampler.ipSource": "an address to connect from",
    "HTTPSampler.md5": "an MD5 hash instead of the response",
}
"""Descriptions of unsupported properties. weir reports a property if its value is neither empty nor false."""
_NOT_IN_URL: Final = re.compile(r"[^\w\-.~:/?@!$&'()*+,;=%\u00a1-\U0010ffff]|%(?![0-9A-Fa-f]{2})")
"""Matches a character that makes JMeter reject the URL and send no request."""
_MARKS = range(0xE000, 0xF900)
"""Private Unicode characters in place of the placeholders in a path."""
# The engine and JMeter write the same bytes for these values of a data set. The engine percent-encodes other values.
_URL = r"(?:[\w.~:@,!$&'()*+;=-]|%[0-9A-Fa-f]{2})"
_WHOLE_PATH: Final = re.compile(rf"/?(?:{_URL}+(?:/{_URL}+)*/?)?(?:\?(?:{_URL}|[/?])*)?", re.ASCII)
_IN_PATH: Final = re.compile(r"[\w.~:@,-]+(?:/[\w.~:@,-]+)*", re.ASCII)
_IN_QUERY: Final = re.compile(r"[\w.~:@,/-]*", re.ASCII)
_IN_ENCODED_QUERY: Final = re.compile(r"[\w.-]*", re.ASCII)
_IN_HEADER: Final = re.compile(r"[ -~]*")
_IN_FORM: Final = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)


class _Parameter(NamedTuple):
    argument: Argument
    name: Text
    value: Text


def read_sampler(element: Element, scope: Scope) -> Sampler | None:
    """Returns the request of a sampler; None without a valid method or server. Reports unsupported settings."""
    sources = [element, *scope.find("ConfigTestElement")]

    def first(name: str) -> str:
        return next((text for source in sources if (text := source.value(name))), "")

    def setting(name: str) -> str:
        return scope.resolve_fixed(element, first(name)).strip()

    _report_unsupported(element, sources, setting, scope)
    method = setting("HTTPSampler.method") or "GET"
    if method not in _METHODS:
        scope.report(element, f"found the method {method}, expected one of {', '.join(_METHODS)}")
    parameters = [
        _Parameter(argument, scope.resolve(element, argument.name), scope.resolve(element, argument.value))
        for source in sources
        for argument in list_arguments(source.find_property("HTTPsampler.Arguments"))
    ]
    named = [parameter for parameter in parameters if parameter.name]
    is_raw = element.flag("HTTPSampler.postBodyRaw") or (bool(parameters) and not named)
    origin, path = _split_target(element, scope, scope.resolve(element, first("HTTPSampler.path").strip()), setting)
    body: Text = ()
    content_type = ""
    if method in _METHODS_WITHOUT_BODY:
        pass
    elif is_raw:
        body, content_type = join_texts(parameter.value for parameter in parameters), "text/plain"
    elif method != "GET":
        body = _write_pairs(element, scope, named, in_form=True)
        content_type = "application/x-www-form-urlencoded"
    if not is_raw and method in _METHODS_WITH_QUERY and (query := _write_pairs(element, scope, named, in_form=False)):
        has_query = any(isinstance(piece, str) and "?" in piece for piece in path)
        path = join_texts([path, ("&" if has_query else "?",), query])
    path = _normalize(element, scope, path)
    headers, closes = _read_headers(scope)
    if (host := headers.pop("host", None)) and host[1] != (origin.partition("://")[2],):
        scope.report(element, f"found a header Host of another server than {origin}, expected none")
    if content_type:
        headers.setdefault("content-type", ("Content-Type", (f"{content_type}; charset=UTF-8",)))
    texts = (path, body, *(value for _, value in headers.values()))
    if any(isinstance(piece, str) and "{{" in piece for text in texts for piece in text):
        scope.report(element, "found {{, expected none: {{ begins a placeholder in the engine's templates")
    assertions = [
        assertion for one in reversed(scope.find("ResponseAssertion")) if (assertion := read_assertion(one, scope))
    ]
    _, accepted = headers.get("accept-encoding", ("", ()))
    if _COMPRESSED.search(str(accepted)) and not all(assertion.is_for_status for assertion in assertions):
        found = "found an assertion on a body that may be compressed (Accept-Encoding)"
        scope.report(element, f"{found}: the engine does not decompress bodies")
    statuses = list_right_statuses(assertions)
    if statuses == ():
        found = "found assertions that no status from 200 to 399 fulfils"
        scope.report(element, f"{found}; Ignore Status also allows 400 to 599")
        statuses = None
    timeout_ms = scope.parse_number(element, "HTTPSampler.response_timeout", setting("HTTPSampler.response_timeout"))
    name = scope.resolve_fixed(element, element.name)
    if not origin or method not in _METHODS:
        return None
    return Sampler(
        name=name,
        method=method,
        origin=origin,
        path=path,
        headers=tuple(headers.values()),
        # With an empty body, the engine writes a length of 0, as JMeter does.
        body=body if content_type else None,
        delay=_add_timers(scope),
        assertions=tuple(assertions),
        statuses=statuses,
        keep_alive=element.flag("HTTPSampler.use_keepalive", default=True) and not closes,
        timeout_s=min(timeout_ms / 1000 or NO_TIMEOUT_S, NO_TIMEOUT_S),
        follows_redirects=any(element.flag(f"HTTPSampler.{how}_redirects") for how in ("follow", "auto")),
    )


def _report_unsupported(
    element: Element, sources: Sequence[Element], setting: Callable[[str], str], scope: Scope
) -> None:
    for name, what in _UNSUPPORTED.items():
        if any(source.value(name).strip().lower() not in ("", "false") for source in sources):
            scope.report(element, f"found {what} ({name}), expected none")
    files = (source.find_property("HTTPsampler.Files") for source in sources)
    if any(one is not None and one.items("HTTPFileArgs.files") for one in files):
        scope.report(element, "found files to send (HTTPsampler.Files), expected none")
    if (client := setting("HTTPSampler.implementation")) not in ("", "HttpClient4"):
        scope.report(element, f"found the implementation {client}, expected HttpClient4")
    if (encoding := setting("HTTPSampler.contentEncoding")).upper() not in ("", "UTF-8"):
        scope.report(element, f"found the encoding {encoding}, expected UTF-8")


def _split_target(element: Element, scope: Scope, path: Text, setting: Callable[[str], str]) -> tuple[str, Text]:
    """Returns the origin and the path. A path that is a whole URL overrides protocol, server and port. Reports an
    invalid origin, and then returns '' for the origin."""
    protocol = setting("HTTPSampler.protocol").lower() or "http"
    host, port_text = setting("HTTPSampler.domain"), setting("HTTPSampler.port")
    if path and isinstance(path[0], str) and re.match(r"https?://", path[0], re.IGNORECASE):
        end = re.search(r"(?<!/)[/?](?!/)|(?<=[^/:])//", path[0])
        at = len(path[0]) if end is None else end.start()
        try:
            url = urlsplit(path[0][:at])
            protocol, host, port_text = url.scheme.lower(), url.hostname or "", str(url.port or "")
        except ValueError:
            host = ""
        path = (path[0][at:], *path[1:])
    host = host.strip("[]")
    port = scope.parse_number(element, "HTTPSampler.port", port_text) or (443 if protocol == "https" else 80)
    problem = ""
    if protocol not in ("http", "https"):
        problem = f"found the protocol {protocol!r}, expected http or https"
    elif not re.fullmatch(r"[^\s/?#@\[\]]+", host):
        problem = f"found the server {host!r}, expected a host name or address"
    elif not 0 < port < 65536:
        problem = f"found the port {port}, expected a port from 1 to 65535"
    if problem and "${" not in problem:
        scope.report(element, problem)
    authority = f"[{host}]" if ":" in host else host
    first = path[0] if path else ""
    # If a path begins with a value from a data set, the value contains the slash.
    if not (first.startswith("/") if isinstance(first, str) else first.column is not None):
        path = ("/", *path)
    path = tuple(piece.replace(" ", "%20") if isinstance(piece, str) else piece for piece in path)
    is_standard = (protocol, port) in (("http", 80), ("https", 443))
    return "" if problem else f"{protocol}://{authority}" + ("" if is_standard else f":{port}"), join_texts([path])


def _normalize(element: Element, scope: Scope, target: Text) -> Text:
    """Returns path and query without fragment and without empty segments. Reports values that the engine would send
    in other bytes than JMeter. Reports characters with which JMeter sends no request."""
    placeholders = {chr(_MARKS[at]): piece for at, piece in enumerate(target) if isinstance(piece, Placeholder)}
    text = "".join(piece if isinstance(piece, str) else chr(_MARKS[at]) for at, piece in enumerate(target))
    text, _, _ = unicodedata.normalize("NFC", text).partition("#")
    path, mark, query = text.partition("?")
    # JMeter accepts brackets in a query.
    found = _NOT_IN_URL.search(path + re.sub(r"[\[\]]", "0", query))
    if found and "${" not in text:
        scope.report(element, f"found {found[0]!r} in the URL, with which JMeter sends no request")
    for piece in (placeholders[one] for one in path if one in placeholders):
        if text in placeholders:
            _check_values(element, scope, piece, _WHOLE_PATH)
        else:
            _check_values(element, scope, piece, _IN_PATH, strip="/" if piece is target[0] else "")
    for piece in (placeholders[one] for one in query if one in placeholders):
        _check_values(element, scope, piece, _IN_QUERY)
    parts = re.split("([\ue000-\uf8ff])", re.sub("/+", "/", path) + mark + query)
    return join_texts([[placeholders.get(part, part) for part in parts]])


def _check_values(element: Element, scope: Scope, piece: Piece, allowed: re.Pattern[str], *, strip: str = "") -> None:
    """Reports a text, or a placeholder's column, that does not match `allowed`. A value may begin with `strip`."""
    if isinstance(piece, Placeholder):
        written, values = piece.written, scope.list_values(piece.column) if piece.column else []
    else:
        written, values = "", [piece]
    if wrong := [value for value in values if not allowed.fullmatch(value.removeprefix(strip))]:
        problem = f"{len(wrong)} of {len(values)} values, such as {wrong[0]!r}"
        scope.report(element, f"{problem}: JMeter sends other bytes for these values, or nothing", written)


def _write_pairs(element: Element, scope: Scope, parameters: Sequence[_Parameter], *, in_form: bool) -> Text:
    """Returns `name=value&name=value` for a query or a form. In a form, decodes encoded texts first, as JMeter does."""

    def encode(piece: Piece, is_encoded: bool) -> Piece:
        if is_encoded and not in_form and isinstance(piece, Placeholder):
            _check_values(element, scope, piece, _IN_ENCODED_QUERY)
        elif in_form and not is_encoded:
            _check_values(element, scope, piece, _IN_FORM)
        ending = " encoded" if is_encoded else " encoded again" if in_form else ""
        if isinstance(piece, str):
            return encode_column(ending, piece)
        if piece.column is None or not in_form:
            # Numbers and UUIDs need no encoding.
            return piece
        data_set, column = piece.column
        return Placeholder(f"csv {data_set}.{column}{ending}", piece.written, (data_set, column + ending))

    texts: list[Text] = []
    for argument, *pair in parameters:
        name, value = (tuple(encode(piece, argument.is_encoded) for piece in text) for text in pair)
        texts += [("&",)] if texts else []
        texts += [name, ("=" if in_form else argument.equals,), value]
    return join_texts(texts)


def encode_column(name: str, value: str) -> str:
    """Returns a value for the column `name` of a data set. Encodes the value for a form, as Java's URLEncoder does, if
    the name ends with ` encoded` or ` encoded again`."""
    if name.endswith(" encoded again"):
        value = unquote_plus(value, errors="replace")
    elif not name.endswith(" encoded"):
        return value
    return quote_plus(value, safe="*", errors="replace").replace("~", "%7E")


def _read_headers(scope: Scope) -> tuple[dict[str, tuple[str, Text]], bool]:
    """Returns name and value of each header, by lower-case name. Also returns whether the headers close the connection.
    As in JMeter, the nearest header manager wins."""
    headers: dict[str, tuple[str, Text]] = {}
    for manager in scope.find("HeaderManager"):
        own: dict[str, tuple[str, Text]] = {}
        for item in manager.items("HeaderManager.headers"):
            name = scope.resolve_fixed(manager, item.value("Header.name")).strip()
            if not name or name.lower() in _LENGTHS:
                continue
            value = scope.resolve(manager, " ".join(item.value("Header.value").splitlines()))
            if name.lower() in own:
                scope.report(manager, f"found two headers {name}, expected one")
            for piece in value:
                _check_values(manager, scope, piece, _IN_HEADER)
            own[name.lower()] = (name, value)
        headers = own | headers
    _, connection = headers.get("connection", ("", ()))
    closes = [piece.strip().lower() for piece in connection if isinstance(piece, str)] == ["close"]
    if closes:
        # The engine writes this header itself, and then closes the connection.
        del headers["connection"]
    return headers, closes


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
                timer, "found a second random timer for a request, expected one: the sum of the two is not uniform"
            )
            constant_s, range_s = constant_s + range_s / 2, 0.0
        shortest_s += constant_s
        longest_s += constant_s + range_s
    return Think(shortest_s, longest_s)
