"""Converts a Postman collection (version 2) into a scenario: the requests of all folders in order. Scripts do not run."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from weir.compat.convert.conversion import ArgumentParser, Conversion
from weir.compat.convert.draft import (
    FORM,
    Draft,
    Notes,
    Secrets,
    build_conversion,
    build_multipart,
    choose_origin,
    hide_secrets,
    is_host,
    is_secret_name,
    parse_pair,
    parse_url,
    split_url,
)
from weir.compat.convert.har_values import name_variable
from weir.compat.convert.postman_file import Auth, Body, Item, Pair, Url, read_collection, read_environment
from weir.compat.convert.postman_script import read_script
from weir.model.errors import UsageError
from weir.scenario import JsonPointer

_USAGE = "weir convert postman shop.postman_collection.json -e local.postman_environment.json > shop.toml"
_VARIABLE = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
_DEEPEST = 10
_DYNAMIC = {
    "$guid": "{{uuid}}",
    "$randomUUID": "{{uuid}}",
    "$timestamp": "{{int 1000000000 1999999999}}",
    "$randomInt": "{{int 0 1000}}",
    "$randomBoolean": "true",
}
_LANGUAGES = {"json": "application/json", "xml": "application/xml", "html": "text/html", "text": "text/plain"}


class _Refused(Exception):  # noqa: N818 - a request that weir leaves out is no error
    """Raised for a request that a scenario cannot express. The message is a plural: "requests without a URL"."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A request of the collection, with the login and the variables of its folders."""

    name: str
    """The names of the folders and of the request."""
    item: Item
    auth: Auth | None
    variables: Mapping[str, Pair]


@dataclass(slots=True)
class _Scope:
    """The variables that a request can use."""

    given: Mapping[str, str]
    """The values of --var."""
    environment: Mapping[str, str]
    secret_names: frozenset[str]
    """The variables that the environment file marks as secret."""
    extracted: dict[str, str] = field(default_factory=dict)
    """A dict from variable to placeholder, for variables that a script sets and weir extracts."""
    script_only: dict[str, str] = field(default_factory=dict)
    """A dict from variable to request. The variable's value is known only to a script of that request."""
    needed: dict[str, str] = field(default_factory=dict)
    """The entries of `script_only` that the requests need."""
    missing: dict[str, list[str]] = field(default_factory=dict)
    """A dict from each variable without a value to the names of the requests with that variable."""


def convert(tool: str, words: Sequence[str]) -> Conversion:
    """Returns the requests of a collection as the steps of a scenario."""
    parser = ArgumentParser(tool, _USAGE)
    parser.add_argument("file")
    parser.add_argument("-e", "--environment")
    parser.add_argument("--var", dest="values", action="append", type=parse_pair("--var"), default=[])
    parser.add_argument("--host")
    parser.add_argument("--with", dest="kinds", action="append", choices=("deletes",), default=[])
    given = parser.parse_args(words)
    collection = read_collection(Path(given.file))
    variables = read_environment(Path(given.environment)) if given.environment else []
    environment = {one.name: str(one.value or "") for one in variables}
    secret_names = frozenset(one.name for one in variables if one.type == "secret")
    scope = _Scope(dict(given.values), environment, secret_names)
    reader = _Reader(collection, Path(given.file).parent, scope, given.kinds, given.host)
    drafts = reader.read_items()
    if scope.missing:
        lines = [f"  {name}: {_shorten(places)}" for name, places in scope.missing.items()]
        lines += [f"  {name}: only the script of {place!r} sets it" for name, place in scope.needed.items()]
        names = " ".join(f"--var {name}=..." for name in [*scope.missing, *scope.needed][:3])
        problem = f"{given.file}: found {len(lines)} variables without a value:\n" + "\n".join(lines)
        raise UsageError(problem, hint=f"add {names} or -e ENVIRONMENT.json")
    notes, secrets = reader.notes, reader.secrets
    if given.host is not None and not drafts and reader.origins:
        choose_origin(reader.origins, given.host, None, given.file)
    drafts = [hide_secrets(draft, secrets, notes) for draft in drafts]
    return build_conversion(drafts, notes, secrets, source=given.file, total=reader.total)


class _Reader:
    """Reads the requests of a collection in order. `folder`: the folder with the files for request bodies."""

    def __init__(self, collection: Item, folder: Path, scope: _Scope, kinds: Sequence[str], host: str | None) -> None:
        self._collection, self._folder, self._scope, self._kinds = collection, folder, scope, kinds
        self._host = host
        self.origins: list[str] = []
        """The scheme and host of each request, including requests to other hosts."""
        self.notes, self.secrets = Notes(), Secrets()
        self.total = 0

    def read_items(self) -> list[Draft]:
        """Returns the requests that weir can send. Stops before the first request that needs a value from a script."""
        drafts: list[Draft] = []
        places = list(self._list_places(self._collection, "", None, {}))
        self.total = len(places)
        stopped: list[str] = []
        for place in places:
            try:
                draft = self._read_item(place)
            except _Refused as refused:
                if not stopped:
                    self.notes.leave_out(str(refused), place.name)
                    self._note_scripts(place.item, place.name, None)
                    continue
            if stopped or self._scope.needed:
                # After the stop, weir reads the other requests only to find all variables without a value.
                stopped.append(place.name)
                continue
            self.origins.append(draft.origin)
            is_taken = is_host(draft.origin, self._host or self.origins[0])
            if is_taken:
                drafts.append(draft)
            else:
                self.notes.leave_out("requests to other hosts (--host chooses another host)", draft.origin)
            self._note_scripts(place.item, place.name, draft if is_taken else None)
        if stopped:
            needed = [f"{{{{{variable}}}}} (script of {name!r})" for variable, name in self._scope.needed.items()]
            reason = f"requests, {stopped[0]!r} and all later ones, because only scripts set {', '.join(needed)}"
            for _ in stopped:
                self.notes.leave_out(f"{reason} (--var NAME=VALUE gives a value)")
        return drafts

    def _list_places(
        self, folder: Item, path: str, auth: Auth | None, variables: Mapping[str, Pair]
    ) -> Iterator[_Place]:
        auth = folder.auth or auth
        variables = {**variables, **{one.name: one for one in folder.variable if one.is_used}}
        self._note_scripts(folder, path.rstrip(" /") or "the collection", None)
        for one in folder.item or ():
            name = f"{path}{one.name or 'request'}"
            if one.item is not None:
                yield from self._list_places(one, f"{name} / ", auth, variables)
            elif one.request is not None:
                yield _Place(name, one, one.request.auth or auth, variables)

    def _note_scripts(self, item: Item, name: str, draft: Draft | None) -> None:
        """Adds to the scope the variables that scripts set, and adds extractions to the draft."""
        scope = self._scope
        for event in item.event:
            script = read_script(event.text)
            if script.does_more:
                self.notes.leave_out("scripts, which weir does not run", f"{name} ({event.listen})")
            for variable, pointer in script.pointers.items():
                if draft is None or event.listen != "test":
                    scope.script_only[variable] = name
                    continue
                known = scope.extracted.get(variable, "")[2:-2]
                safe = known if known.isidentifier() else name_variable(variable, draft.extract)
                draft.extract[safe] = JsonPointer(pointer)
                scope.extracted[variable] = f"{{{{{safe}}}}}"
                where = pointer or "the body"
                self.notes.other.append(f"{{{{{safe}}}}} comes from {where} in the response of {name!r}")
            for variable, text in script.constants.items():
                scope.extracted.setdefault(variable, text)
            for variable in script.unknown:
                scope.script_only.setdefault(variable, name)

    def _read_item(self, place: _Place) -> Draft:
        request = place.item.request
        assert request is not None
        for event in place.item.event:
            if event.listen == "prerequest":
                script = read_script(event.text)
                self._scope.extracted.update(script.constants)
                self._scope.script_only.update(dict.fromkeys(script.unknown, place.name))
        method = (request.method or "GET").upper()
        if method == "DELETE" and "deletes" not in self._kinds:
            raise _Refused("DELETE requests (--with deletes includes them)")
        origin, target = self._read_url(place, request.url)
        draft = Draft(place.name, method, origin, target, name=_VARIABLE.sub(r"\1", place.name))
        for header in request.header:
            name, value = self._fill(header.key, place).strip(), self._fill(header.value, place).strip()
            draft.headers += [(name, value)] if name and header.is_used else []
        saved = {response.code for response in place.item.response if response.code is not None}
        draft.status = sorted(code for code in saved if 200 <= code < 400)
        if request.body is not None and not request.body.disabled and method not in ("GET", "HEAD"):
            self._add_body(draft, request.body, place)
        self._add_auth(draft, place)
        return draft

    def _read_url(self, place: _Place, url: Url) -> tuple[str, str]:
        if not (raw := url.join()):
            raise _Refused("requests without a URL")
        before, mark, query = raw.partition("?")
        if url.query:
            pairs = [(one.key or "", one.value) for one in url.query if one.is_used]
            query = "&".join(name if value is None else f"{name}={value}" for name, value in pairs)
            mark = "?" if query else ""
        for variable in url.variable:
            given = self._scope.given.get(variable.name) or variable.value
            if given in (None, "") and f"/:{variable.name}" in before:
                self._scope.missing.setdefault(variable.name, []).append(place.name)
            new = str(given or "").replace("\\", r"\\")
            before = re.sub(rf"(?<=/):{re.escape(variable.name)}(?=/|$)", new, before)
        filled = self._fill(before + mark + query, place)
        filled = filled if "://" in filled else f"http://{filled}"
        if not (host := parse_url(filled).netloc):
            raise _Refused("requests whose URL has no valid host")
        if "{{" in host:
            raise _Refused("requests to a host that only a script sets")
        return split_url(filled)

    def _add_body(self, draft: Draft, body: Body, place: _Place) -> None:
        match body.mode:
            case None:
                return
            case "raw":
                draft.body = self._fill(body.raw, place) or None
                is_json = (draft.body or "").lstrip()[:1] in ("{", "[")
                if draft.body:
                    media_type = _LANGUAGES.get("json" if is_json else body.language, "text/plain")
                    draft.set_default_header("Content-Type", media_type)
            case "urlencoded":
                pairs = [
                    (self._fill(one.key, place), self._fill(one.value, place)) for one in body.urlencoded if one.is_used
                ]
                draft.body = "&".join(f"{_quote(name)}={_quote(value)}" for name, value in pairs)
                draft.set_default_header("Content-Type", FORM)
            case "formdata":
                fields = [one for one in body.formdata if one.is_used]
                if any(one.type == "file" or one.src for one in fields):
                    raise _Refused("requests with files in a form")
                filled = [(self._fill(one.key, place), self._fill(one.value, place)) for one in fields]
                content_type, draft.body = build_multipart(filled)
                draft.set_header("Content-Type", content_type)
            case "graphql" if body.graphql is not None:
                given = body.graphql.variables or "{}"
                variables = self._fill(given, place).strip() or "{}"
                query = json.dumps(self._fill(body.graphql.query, place))
                draft.body = f'{{"query": {query}, "variables": {variables}}}'
                draft.set_default_header("Content-Type", "application/json")
            case "file":
                draft.body = self._read_file(body.file.get("src") if isinstance(body.file, dict) else body.file)
            case other:
                raise _Refused(f"requests with a body of the kind {other}")

    def _read_file(self, name: Any) -> str:
        try:
            return (self._folder / str(name)).read_text()
        except (OSError, ValueError):
            raise _Refused("requests with a body in a missing file, or in a file that is no text") from None

    def _add_auth(self, draft: Draft, place: _Place) -> None:
        auth = place.auth or Auth()
        kind, values = auth.type, auth.settings
        match kind:
            case "noauth":
                return
            case "bearer" | "oauth2":
                token = self._hide("bearer_token", values.get("token") or values.get("accessToken"), place)
                draft.set_header("Authorization", f"Bearer {token}")
            case "basic":
                pair = ":".join(self._fill(values.get(key), place) for key in ("username", "password"))
                draft.set_header("Authorization", f"Basic {self.secrets.hide('basic_base64', pair, place.name)}")
            case "apikey":
                name, secret = str(values.get("key") or "key"), self._hide("api_key", values.get("value"), place)
                if values.get("in") == "query":
                    draft.target += f"{'&' if '?' in draft.target else '?'}{quote(name)}={secret}"
                else:
                    draft.set_header(name, secret)
            case _:
                raise _Refused(f"requests with {kind} authentication, which weir cannot make")

    def _hide(self, name: str, value: Any, place: _Place) -> str:
        """Returns a placeholder for the secret in `value`. A value that consists only of variables stays unchanged."""
        text = self._fill(value, place)
        return (
            text if text and not _VARIABLE.sub("", text).strip() else self.secrets.hide(name, text or None, place.name)
        )

    def _fill(self, text: Any, place: _Place, depth: int = 0) -> str:
        text = "" if text is None else text if isinstance(text, str) else json.dumps(text)
        return _VARIABLE.sub(lambda match: self._find(match[1], place, depth), text)

    def _find(self, name: str, place: _Place, depth: int) -> str:
        scope = self._scope
        if name in _DYNAMIC or name.startswith("$random"):
            if name not in ("$guid", "$randomUUID", "$randomInt"):
                self.notes.leave_out("generated values, which weir replaces by other values", name)
            return _DYNAMIC.get(name, "{{word 8}}")
        if name in scope.extracted:
            return scope.extracted[name]
        own = place.variables.get(name) or Pair()
        known = scope.given.get(name) or scope.environment.get(name) or own.value
        if (name in scope.secret_names or is_secret_name(name) or own.type == "secret") and (
            known or name not in scope.script_only
        ):
            return self.secrets.hide(name, str(known) if known and "{{" not in str(known) else None, place.name)
        if known not in (None, "") and depth < _DEEPEST:
            return self._fill(known, place, depth + 1)
        if name in scope.script_only:
            scope.needed[name] = scope.script_only[name]
            return ""
        places = scope.missing.setdefault(name, [])
        if place.name not in places:
            places.append(place.name)
        # weir rejects the whole collection later, so any text is fine here.
        return "missing"


def _quote(text: str) -> str:
    """Percent-encodes a text for a form. Placeholders stay unchanged."""
    parts = re.split(r"(\{\{[^{}]*\}\})", text)
    return "".join(part if index % 2 else quote(part, safe="") for index, part in enumerate(parts))


def _shorten(places: Sequence[str]) -> str:
    more = f" and {len(places) - 3} others" if len(places) > 3 else ""
    return ", ".join(places[:3]) + more
