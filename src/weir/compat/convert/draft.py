"""Turns requests of a recording, an API description or a collection into steps of a scenario.

`Draft` is one request, `Notes` lists the left-out parts, and `Secrets` replaces secret values. A secret value
never gets into a scenario: `{{env NAME}}` stands in its place, and weir reads the environment variable at run time.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import SplitResult, quote, unquote_plus, urlsplit

from pydantic import ValidationError

from weir.compat.convert.conversion import Conversion
from weir.load_spec import LoadSpec
from weir.model.errors import UsageError
from weir.model.load import METHODS
from weir.model.template import pieces
from weir.scenario import DEFAULT_CAPTURE_BYTES, Check, Extract, Feeder, Pause, Scenario, Step

FORM = "application/x-www-form-urlencoded"
_BOUNDARY = "weir-boundary"
_DURATION_S = 10.0
_LISTED = 5
_SECRET_NAME = re.compile(
    r"authorization|cookie|token|secret|passw|passphrase|pwd|api[-_]?key|access[-_]?key|private[-_]?key|credential"
    r"|csrf|xsrf|sess(ion)?[-_]?(id|key)|signature|^(x-)?auth([-_]?key)?$|^(sid|sig|otp|pin|jwt|code_verifier)$",
    re.IGNORECASE,
)
_PUBLIC_NAME = re.compile(r"max_?tokens|token_?type|tokenizer|cookie_?(consent|policy)", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"eyJ[\w-]{6,}\.[\w-]+\.[\w-]*|(?:sk|pk|rk)_(?:live|test)_\w+|gh[pousr]_\w{20,}|xox[abpr]-[\w-]+|AKIA\w{16}"
)
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|Digest|ApiKey|JWT) +", re.IGNORECASE)
_LEFT_OUT_HEADERS = re.compile(
    r"host|content-length|connection|keep-alive|transfer-encoding|te|upgrade(-insecure-requests)?|accept-encoding"
    r"|if-(none-)?match|if-(un)?modified-since|if-range|proxy-.*|sec-.*|priority|alt-used|:.*",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"(\{\{[^{}]*\}\})")
_NAMED_VALUES = (
    re.compile(r'"(?P<name>[^"\\\n]+)"\s*:\s*"(?P<value>(?:[^"\\]|\\.)*)"'),
    re.compile(r"<(?:\w+:)?(?P<name>[\w.-]+)>(?P<value>[^<]+)</"),
    re.compile(r'name="(?P<name>[^"]+)"\r?\n\r?\n(?P<value>.*?)\r?\n--', re.DOTALL),
)
_SHORTEST_SECRET = 8
"""Minimum characters of a secret that weir also replaces inside longer texts. The secret must contain a digit."""


class Notes:
    """Collects notes on a conversion: the left-out parts, and remarks. The scenario file begins with these notes."""

    def __init__(self) -> None:
        self._left_out: dict[str, Counter[str]] = {}
        self.other: list[str] = []

    def leave_out(self, reason: str, what: str = "") -> None:
        """Counts a left-out part under `reason`, a plural such as "requests to other hosts". `what`: a name or ""."""
        self._left_out.setdefault(reason, Counter())[what] += 1

    def lines(self) -> list[str]:
        """Returns one line for each reason to leave parts out, then the other notes."""
        lines = []
        for reason, parts in self._left_out.items():
            shown = [f"{what} ({count})" if count > 1 else what for what, count in parts.most_common(_LISTED)]
            more = f" and {len(parts) - _LISTED} others" if len(parts) > _LISTED else ""
            listed = f": {', '.join(shown)}{more}" if any(parts) else ""
            lines.append(f"left out {parts.total()}: {reason}{listed}")
        return lines + self.other


def parse_url(url: str) -> SplitResult:
    """Returns the parts of a URL. A text that is no URL has no parts."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def split_url(url: str) -> tuple[str, str]:
    """Returns the origin of a URL, without user and password, and the target: path and query without a fragment.

    >>> split_url("HTTPS://ann:pw@Shop.Example:443/a?b=1#top")
    ('https://shop.example', '/a?b=1')
    """
    parts = parse_url(url)
    host = parts.netloc.rpartition("@")[2].lower()
    usual = {"http": ":80", "https": ":443"}.get(parts.scheme.lower(), "")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return f"{parts.scheme.lower()}://{host.removesuffix(usual) if usual else host}", target


@dataclass(slots=True)
class Draft:
    """One request before it becomes a step."""

    where: str
    """The name of the request in messages, such as `request 3 GET /cart`."""
    method: str
    origin: str
    """The scheme, host and port, such as `https://shop.example`."""
    target: str
    """The path and the query."""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: str | None = None
    name: str = ""
    """The step's name. Empty: the method and the path."""
    group: str = ""
    """The page that sent the request. weir uses the page in the step's name if `name` is empty."""
    status: Sequence[int] = ()
    """The expected statuses. Empty: every status below 400."""
    think_s: float = 0.0
    extract: dict[str, Extract] = field(default_factory=dict)

    @property
    def media_type(self) -> str:
        """The value of Content-Type, without parameters."""
        return next((value for name, value in self.headers if name.lower() == "content-type"), "").split(";")[0].strip()

    def set_header(self, name: str, value: str) -> None:
        """Sets a header in place of all headers of this name."""
        self.headers = [*(one for one in self.headers if one[0].lower() != name.lower()), (name, value)]

    def set_default_header(self, name: str, value: str) -> None:
        """Adds a header if the draft has no header of this name."""
        if name.lower() not in {one.lower() for one, _ in self.headers}:
            self.headers.append((name, value))


@dataclass(frozen=True, slots=True)
class Field:
    """A named value in a request."""

    place: str
    """`path`, `query`, `header`, `form` or `body`."""
    name: str
    value: str

    @property
    def is_secret(self) -> bool:
        """Whether the name or the form of the value suggests a secret."""
        if not self.value or self.value in ("true", "false"):
            return False
        return bool((self.place != "path" and is_secret_name(self.name)) or _SECRET_VALUE.search(self.value))


def is_secret_name(name: str) -> bool:
    """Returns whether a value of this name is probably a secret."""
    return bool(_SECRET_NAME.search(name)) and not _PUBLIC_NAME.search(name)


class Secrets:
    """Replaces secret values by `{{env NAME}}`."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        """A dict from each secret value to the name of its environment variable."""
        self._places: dict[str, dict[str, None]] = {}
        """A dict from each name of an environment variable to the places that use the variable."""

    def add(self, name: str, value: str) -> str:
        """Returns the name of the environment variable for a secret. `name`: the secret's name in the source."""
        if value not in self._names:
            base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").upper() or "SECRET"
            base = f"_{base}" if base[0].isdigit() else base
            taken = set(self._names.values())
            free = (one for one in [base, *(f"{base}_{n}" for n in range(2, 10_000))] if one not in taken)
            self._names[value] = next(free)
        return self._names[value]

    def hide(self, name: str, value: str | None, where: str) -> str:
        """Returns the placeholder for a secret. `value`: None if the source has the secret's name without a value."""
        variable = self.add(name, f"\0{name}" if value is None else value)
        self._places.setdefault(variable, {})[where] = None
        return f"{{{{env {variable}}}}}"

    def clean(self, text: str, where: str | None) -> str:
        """Replaces each known secret, and each value that looks like a secret, anywhere in a text. `where`: the
        request that contains the text. None: the text is a comment, and contains `...` in place of secrets."""

        def write(name: str, value: str) -> str:
            return "..." if where is None else self.hide(name, value, where)

        parts = _PLACEHOLDER.split(text)
        for index in range(0, len(parts), 2):
            for value, name in self._names.items():
                if len(value) >= _SHORTEST_SECRET and any(map(str.isdigit, value)):
                    for form in dict.fromkeys((value, quote(value, safe=""), json.dumps(value)[1:-1])):
                        if form in parts[index]:
                            parts[index] = parts[index].replace(form, write(name, value))
            parts[index] = _SECRET_VALUE.sub(lambda match: write("secret", match[0]), parts[index])
        return "".join(parts)

    def lines(self) -> Iterator[str]:
        """If the conversion has secrets, yields a note that lists the environment variables and the places of their use."""
        if self._places:
            names = (f"{name} ({_shorten(list(places))})" for name, places in self._places.items())
            yield f"secrets are left out: set these environment variables: {', '.join(names)}"


Choose = Callable[[Field], str | None]
"""A function that returns a placeholder for a field, or None to keep the field's value."""


def rewrite(draft: Draft, choose: Choose) -> Draft:
    """Returns the draft with the placeholders that `choose` returns. Fields are parts of the path, the query, the
    headers and the body."""
    path, mark, query = draft.target.partition("?")
    segments = [choose(Field("path", "", unquote_plus(one.replace("+", "%2B")))) or one for one in path.split("/")]
    target = "/".join(segments) + (f"?{_rewrite_pairs(query, 'query', choose)}" if mark else "")
    headers = []
    for name, value in draft.headers:
        scheme = match[0] if (match := _SCHEME.match(value)) else ""
        found = choose(Field("header", name, value.removeprefix(scheme)))
        headers.append((name, value if found is None else scheme + found))
    body = draft.body
    if body and draft.media_type == FORM:
        body = _rewrite_pairs(body, "form", choose)
    elif body:
        body = _rewrite_text(body, choose)
    return replace(draft, target=target, headers=headers, body=body)


def _rewrite_pairs(text: str, place: str, choose: Choose) -> str:
    pairs = []
    for pair in text.split("&"):
        name, equals, value = pair.partition("=")
        found = choose(Field(place, unquote_plus(name), unquote_plus(value))) if equals else None
        pairs.append(pair if found is None else f"{name}={found}")
    return "&".join(pairs)


def _rewrite_text(text: str, choose: Choose) -> str:
    """Returns a body with placeholders: JSON, multipart, XML, or text with parts like JSON."""
    if (found := _rewrite_json(text, choose)) is not None:
        return found
    for pattern in _NAMED_VALUES:
        for match in reversed(list(pattern.finditer(text))):
            chosen = choose(Field("body", match["name"], match["value"]))
            start, end = match.span("value")
            text = text if chosen is None else text[:start] + chosen + text[end:]
    return text


def _rewrite_json(text: str, choose: Choose) -> str | None:
    """Returns JSON with placeholders for some strings and numbers. None if the text is no JSON."""
    numbers: list[str] = []

    def walk(value: Any, name: str) -> Any:
        match value:
            case dict():
                return {key: walk(one, key) for key, one in value.items()}
            case list():
                return [walk(one, name) for one in value]
            case str() | int() if not isinstance(value, bool):
                found = choose(Field("body", name if isinstance(value, str) else "", str(value)))
                if found is not None and not isinstance(value, str):
                    numbers.append(found)
                return value if found is None else found
        return value

    try:
        before = json.loads(text)
        after = walk(before, "")
    except (ValueError, RecursionError):
        return None
    if after == before:
        return text
    written = json.dumps(after, ensure_ascii=False)
    for found in numbers:
        written = written.replace(f'"{found}"', found)
    return written


def hide_secrets(draft: Draft, secrets: Secrets, notes: Notes, choose: Choose = lambda _: None) -> Draft:
    """Returns the draft without secrets, and without the headers that weir or the connection sets. `choose` may return
    a better placeholder than an environment variable. Counts left-out cookies in `notes`."""
    kept = []
    for name, value in draft.headers:
        if name.lower() == "cookie":
            ours = [one.strip() for one in value.split(";") if re.fullmatch(r"[^={}]+=\{\{[^{}]*\}\}", one.strip())]
            if ours:
                kept.append((name, "; ".join(ours)))
            else:
                notes.leave_out("Cookie headers, because each user of the load keeps its own cookies")
        elif not _LEFT_OUT_HEADERS.fullmatch(name):
            kept.append((name, value))

    def replace_value(found: Field) -> str | None:
        if (chosen := choose(found)) is not None:
            return chosen
        is_hidden = found.is_secret and found.name.lower() != "cookie" and _PLACEHOLDER.sub("", found.value).strip()
        return secrets.hide(found.name or "secret", found.value, draft.where) if is_hidden else None

    draft = rewrite(replace(draft, headers=kept), replace_value)
    return replace(
        draft,
        target=secrets.clean(draft.target, draft.where),
        headers=[(name, secrets.clean(value, draft.where)) for name, value in draft.headers],
        body=None if draft.body is None else secrets.clean(draft.body, draft.where),
    )


def is_host(origin: str, wanted: str) -> bool:
    """Returns whether `wanted`, a value of --host with or without a scheme, is the host of `origin`."""
    return wanted.rstrip("/").lower() in (origin, origin.partition("://")[2])


def choose_origin(origins: Sequence[str], wanted: str | None, usual: str | None, source: str) -> str:
    """Chooses the origin to convert: `wanted`, the value of --host, or `usual` if `wanted` is None. `origins`: the
    origin of each request in `source`. Raises UsageError if no request goes to `wanted`."""
    counts = Counter(origins).most_common()
    if wanted is None:
        return usual or counts[0][0]
    for origin, _ in counts:
        if is_host(origin, wanted):
            return origin
    known = ", ".join(f"{one} ({count})" for one, count in counts[:10])
    raise UsageError(f"--host: found {wanted!r}, expected one of the hosts in {source}: {known}")


def build_conversion(
    drafts: Sequence[Draft],
    notes: Notes,
    secrets: Secrets,
    *,
    source: str,
    total: int,
    key: Literal["steps", "requests"] = "steps",
    feeders: Mapping[str, Feeder] | None = None,
    capture_bytes: int = DEFAULT_CAPTURE_BYTES,
) -> Conversion:
    """Returns the drafts as a scenario. `source`: the file. `total`: the number of requests in the file. Raises
    UsageError if the converter left out every request."""
    steps: list[Step] = []
    names: Counter[str] = Counter()
    for draft in drafts:
        group = f"{draft.group} / " if draft.group else ""
        name = draft.name or f"{group}{draft.method} {draft.target.partition('?')[0]}"
        names[name] += 1
        try:
            list(pieces("".join(value for _, value in draft.headers)))
            step = Step(
                draft.method,
                draft.target,
                name=name if names[name] == 1 else f"{name} ({names[name]})",
                headers=_merge(draft.headers),
                body=draft.body,
                check=Check(status=list(draft.status) or None),
                think=Pause(constant_s=draft.think_s) if draft.think_s else None,
                extract=draft.extract,
            )
        except (ValidationError, ValueError):
            expected = f"one of {', '.join(METHODS)}" if draft.method not in METHODS else "no {{ in the text"
            notes.leave_out(f"requests that a scenario cannot express (expected {expected})", draft.where)
        else:
            steps.append(step)
    if not steps:
        listed = "\n".join(f"  {secrets.clean(line, None)}" for line in notes.lines())
        raise UsageError(f"{source}: found no request that weir can send, expected one\n{listed}")
    origin = f"{drafts[0].origin}/"
    methods = ", ".join(f"{method} {count}" for method, count in Counter(one.method for one in steps).items())
    lines = [secrets.clean(line, None) for line in [*notes.lines(), *secrets.lines()]]
    lines = [f"host: {origin}", f"converted: {len(steps)} of {total} requests ({methods})", *lines]
    content = {key: steps, "feeders": dict(feeders or {}), "capture_bytes": capture_bytes}
    scenario = Scenario.model_validate(content)
    spec = LoadSpec(urls=(origin,), duration_s=_DURATION_S)
    return Conversion(spec=spec, scenario=scenario, notes=lines)


def build_multipart(fields: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Returns the Content-Type and the body of a multipart form without files."""
    parts = "".join(
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields
    )
    return f"multipart/form-data; boundary={_BOUNDARY}", f"{parts}--{_BOUNDARY}--\r\n"


def _merge(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Returns headers as a dict. A header that comes twice gets both values in one line (RFC 9110, section 5.3)."""
    merged: dict[str, str] = {}
    for name, value in headers:
        same = next((one for one in merged if one.lower() == name.lower()), name)
        merged[same] = f"{merged[same]}, {value}" if same in merged else value
    return merged


def _shorten(places: Sequence[str]) -> str:
    more = f" and {len(places) - 2} others" if len(places) > 2 else ""
    return ", ".join(places[:2]) + more


def parse_pair(flag: str) -> Callable[[str], tuple[str, str]]:
    """Returns a parser for `NAME=VALUE`, the value of `flag`."""

    def parse(text: str) -> tuple[str, str]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag}: found {text!r}, expected NAME=VALUE")
        return name, value

    return parse


def hide_in_words(words: Sequence[str]) -> list[str]:
    """Returns the words of a command line without secrets, such as VALUE in `--var token=VALUE`."""

    def hide(match: re.Match[str]) -> str:
        return f"{match[1]}=..." if is_secret_name(match[1]) else match[0]

    hidden = [re.sub(r"([\w.-]+)=([^&]*)", hide, word) for word in words]
    return [re.sub(r"//[^/@]*@", "//", _SECRET_VALUE.sub("...", word)) for word in hidden]
