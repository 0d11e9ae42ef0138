"""Converts a recording of a browser or a proxy (a HAR file) into a scenario with the recorded requests in order."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlencode, urljoin

from weir.compat.convert.conversion import ArgumentParser, Conversion
from weir.compat.convert.draft import (
    FORM,
    Draft,
    Field,
    Notes,
    Secrets,
    build_conversion,
    build_multipart,
    choose_origin,
    hide_secrets,
    parse_url,
    split_url,
)
from weir.compat.convert.har_file import Entry, PostData, read_har
from weir.compat.convert.har_values import RecordedResponse, is_id, name_variable
from weir.model.errors import UsageError
from weir.scenario import DEFAULT_CAPTURE_BYTES, Header

_USAGE = "weir convert har shop.har --host shop.example > shop.toml"
_KINDS = ("assets", "failures", "deletes")
_ASSET_TYPE = re.compile(r"(image|font|audio|video)/|text/css|.*(javascript|ecmascript|font-|wasm|manifest\+json)")
_ASSET_END = re.compile(
    r".*\.(js|mjs|css|map|png|jpe?g|gif|webp|avif|svg|ico|bmp|woff2?|ttf|otf|eot|mp[34]|webm|ogg|wasm|webmanifest)",
    re.IGNORECASE,
)
_BEACON_TYPE = re.compile(r"application/(ocsp-|csp-report|reports\+json)|text/ping")
_BEACONS = ("beacon", "ping", "cspviolationreport", "csp-report")
_SHORTEST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 3600.0


def convert(tool: str, words: Sequence[str]) -> Conversion:
    """Returns a recording's requests to one host, as the steps of a scenario."""
    parser = ArgumentParser(tool, _USAGE)
    parser.add_argument("file")
    parser.add_argument("--host")
    parser.add_argument("--with", dest="kinds", action="append", choices=_KINDS, default=[])
    given = parser.parse_args(words)
    entries, notes = read_har(Path(given.file)), Notes()
    if not entries:
        raise UsageError(f"{given.file}: found no requests, expected a recording with at least one")
    first = next((entry for entry in entries if _is_document(entry)), entries[0])
    origins = [split_url(entry.request.url)[0] for entry in entries]
    origin = choose_origin(origins, given.host, split_url(first.request.url)[0], given.file)
    if given.host is None and len(set(origins)) > 1:
        notes.other.append("weir converts only requests to the host of the first page; --host chooses another host")
    pages = list(dict.fromkeys(entry.page for entry in entries))
    taken: list[tuple[Draft, Entry]] = []
    for number, entry in enumerate(entries, 1):
        request = entry.request
        where = f"request {number} {request.method} {parse_url(request.url).path[:60]}"
        if reason := _find_reason(entry, origin, given.kinds):
            notes.leave_out(*reason)
        elif draft := _read_draft(entry, where, notes):
            draft.group = f"page {pages.index(entry.page) + 1}" if len(pages) > 1 else ""
            taken.append((draft, entry))
    _add_pauses(taken, entries, notes)
    secrets = Secrets()
    drafts, capture_bytes = _replace_values(taken, secrets, notes)
    counted = Counter(draft.method for draft in drafts if draft.method not in ("GET", "HEAD", "OPTIONS"))
    if counted:
        notes.other.append(f"each round of a user repeats the recorded {', '.join(counted)} requests: they write data")
    return build_conversion(drafts, notes, secrets, source=given.file, total=len(entries), capture_bytes=capture_bytes)


def _find_reason(entry: Entry, origin: str, kinds: Sequence[str]) -> tuple[str, str] | None:
    """Returns the reason to leave a request out (a plural), and an example for the note; None to keep the request."""
    request, status, url = entry.request, entry.response.status, parse_url(entry.request.url)
    answer_type = (entry.response.content.mime_type or "").lower()
    names = {header.name.lower(): header.value or "" for header in request.headers}
    kind = (entry.resource_type or "").lower()
    place = f"{request.method} {url.path[:60]}"
    if url.scheme.lower() not in ("http", "https"):
        return "requests with another scheme than HTTP", f"{url.scheme}:"
    if split_url(request.url)[0] != origin:
        return "requests to other hosts", split_url(request.url)[0]
    if status == 0:
        return "requests without a response", place
    if status == 101:
        return "WebSockets", place
    if entry.cache or "cache" in (entry.fetch_type or "").lower():
        return "responses from the browser's cache", ""
    if request.method == "OPTIONS" and "access-control-request-method" in names:
        return "preflight requests", ""
    if kind in _BEACONS or any(map(_BEACON_TYPE.match, (answer_type, names.get("content-type", "")))):
        return "beacons and certificate checks", place
    if "assets" not in kinds and (_ASSET_TYPE.match(answer_type) or (end := _ASSET_END.fullmatch(url.path))):
        found = answer_type.split(";")[0] or (end[1] if end else "")
        return "assets such as images, styles and scripts (--with assets includes them)", found
    if request.method == "DELETE" and "deletes" not in kinds:
        return "DELETE requests (--with deletes includes them)", place
    if status >= 400 and "failures" not in kinds:
        return "requests with a status of 400 or more (--with failures includes them)", f"{status} {place}"
    return None


def _read_draft(entry: Entry, where: str, notes: Notes) -> Draft | None:
    """Returns the request of an entry. Returns None, and adds a note, if a scenario cannot express the request."""
    request, status = entry.request, entry.response.status
    headers = [(one.name, (one.value or "").strip()) for one in request.headers]
    # Without the conditional headers of the recording, the server answers with the whole resource.
    draft = Draft(where, request.method, *split_url(request.url), headers, status=[200 if status == 304 else status])
    body = request.post_data
    if body is not None and request.method in ("GET", "HEAD"):
        if body.text or body.params:
            notes.leave_out("bodies of GET and HEAD requests", where)
    elif body is not None and (body.text or body.params):
        if (reason := _read_body(draft, body)) is not None:
            notes.leave_out(reason, where)
            return None
    elif (request.body_size or 0) > 0:
        notes.leave_out("requests whose body is not in the recording", where)
        return None
    if "{{" in "".join([request.url, draft.body or "", *(value for _, value in headers)]):
        notes.leave_out("requests with {{, which begins a placeholder of weir", where)
        return None
    return draft


def _read_body(draft: Draft, body: PostData) -> str | None:
    """Adds the body to the draft. Returns a reason if the recording lacks the content of a file."""
    media_type = (body.mime_type or draft.media_type).lower()
    is_multipart = media_type.startswith("multipart/")
    fields = [(one.name, one.value or "") for one in body.params or []]
    if is_multipart and (any(one.file_name for one in body.params or []) or "filename=" in (body.text or "")):
        return "requests with files, because a recording holds no reliable content of files"
    draft.body = body.text or None
    if body.mime_type:
        draft.set_default_header("Content-Type", body.mime_type)
    if draft.body is None and is_multipart:
        content_type, draft.body = build_multipart(fields)
        draft.set_header("Content-Type", content_type)
    elif draft.body is None:
        draft.set_default_header("Content-Type", FORM)
        # Chrome records the fields percent-encoded, Firefox and Safari decoded.
        is_encoded = any("%" in value or "+" in value for _, value in fields)
        draft.body = "&".join(f"{name}={value}" for name, value in fields) if is_encoded else urlencode(fields)
    return None


def _is_document(entry: Entry) -> bool:
    return "html" in (entry.response.content.mime_type or "") and entry.response.status < 300


def _add_pauses(taken: Sequence[tuple[Draft, Entry]], entries: Sequence[Entry], notes: Notes) -> None:
    """Stores each pause of the recorded user in the request before the pause. The user pauses before a new page. In a
    recording without pages, a pause is a second or more without a request in flight."""
    has_pages = len({entry.page for entry in entries}) > 1
    places = {id(entry): index for index, entry in enumerate(entries)}
    busy_until, quiet = 0.0, []
    for entry in entries:
        quiet.append(entry.begins_s - busy_until)
        busy_until = max(busy_until, entry.ends_s)
    pauses = []
    for (draft, before), (_, entry) in pairwise(taken):
        between = range(places[id(before)] + 1, places[id(entry)] + 1)
        found = max((quiet[at] for at in between if not has_pages or entries[at].page != before.page), default=0.0)
        if found >= (0.001 if has_pages else _SHORTEST_PAUSE_S):
            draft.think_s = round(min(found, _LONGEST_PAUSE_S), 3)
            pauses.append(draft.think_s)
    if pauses:
        notes.other.append(f"the recorded user's pauses: {len(pauses)} per round, {sum(pauses):.4g} s in total")


def _replace_values(taken: Sequence[tuple[Draft, Entry]], secrets: Secrets, notes: Notes) -> tuple[list[Draft], int]:
    """Returns the drafts with placeholders for secrets and for values of earlier responses. Also returns the number of
    bytes that a user must capture of a response."""
    for _, entry in taken:
        for header in entry.request.headers:
            for cookie in (header.value or "").split(";") if header.name.lower() == "cookie" else ():
                name, _, value = cookie.strip().partition("=")
                if len(value) >= 16 and any(map(str.isdigit, value)):
                    secrets.add(name, value)
    done: list[RecordedResponse] = []
    variables: dict[str, str] = {}
    lines: Counter[str] = Counter()
    capture_bytes = DEFAULT_CAPTURE_BYTES

    def find_earlier(found: Field) -> str | None:
        nonlocal capture_bytes
        if not found.value or not (found.is_secret or is_id(found.value)):
            return None
        holders = [one for one in reversed(done) if one.has(found.value)]
        for earlier in holders:
            if (place := earlier.find(found.value)) is None:
                continue
            source = earlier.draft
            known = next((name for name, one in source.extract.items() if one == place), None)
            name = known or name_variable(found.name or "id", variables)
            source.extract[name] = place
            variables[name] = found.value
            if not isinstance(place, Header):
                capture_bytes = max(capture_bytes, len(earlier.text.encode()))
            lines[f"{{{{{name}}}}} comes from the response of {source.where}; {draft.where} sends it"] += 1
            return f"{{{{{name}}}}}"
        if holders:
            at = holders[0].draft.where
            lines[f"{draft.where} sends a {found.place} value that weir cannot read from the response of {at}"] += 1
        return None

    for draft, entry in taken:
        hidden = hide_secrets(draft, secrets, notes, find_earlier)
        if variable := _find_location(draft, done):
            hidden.target = f"{{{{{variable}}}}}"
            lines[f"{hidden.target} is the Location of an earlier response; {draft.where} requests it"] += 1
        done.append(RecordedResponse(hidden, entry.response))
    for draft, entry in taken:
        lines.update(_list_cookie_copies(draft, entry))
    if lines:
        notes.other += [
            "weir reads these values from earlier responses in each round. Check that each value is the right one:",
            *(f"  {line}" for line in lines),
        ]
    return [one.draft for one in done], capture_bytes


def _find_location(draft: Draft, done: Sequence[RecordedResponse]) -> str | None:
    """Returns the variable for the Location of the last response. Returns None if the draft requests another URL, or if
    no part of the URL looks like an ID. Also adds the extraction to the step of the response."""
    if not done or not any(is_id(part) for part in draft.target.partition("?")[0].split("/")):
        return None
    earlier = done[-1]
    value = next((value for value, name in earlier.headers.items() if name.lower() == "location"), None)
    if (
        value is None
        or not parse_url(value).path
        or split_url(urljoin(earlier.draft.origin + earlier.draft.target, value))[1] != draft.target
    ):
        return None
    variable = f"location_{len(done)}"
    earlier.draft.extract[variable] = Header("Location")
    return variable


def _list_cookie_copies(draft: Draft, entry: Entry) -> Iterator[str]:
    """Yields a note for each header that repeats a cookie, as protection against forged requests (CSRF) requires."""
    headers = [(one.name, unquote(one.value or "")) for one in entry.request.headers]
    cookies = [
        part.strip().partition("=") for name, value in headers if name.lower() == "cookie" for part in value.split(";")
    ]
    for name, value in headers:
        if same := next((cookie for cookie, _, known in cookies if len(value) >= 8 and known == value), None):
            yield f"header {name} repeats the cookie {same}; a scenario cannot copy a cookie ({draft.where})"
