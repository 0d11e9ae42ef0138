"""Converts a Postman collection (version 2) into a scenario: the requests of all folders in order. Scripts do not run."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from weir.compat.convert.conversion import ArgumentParser, Conversion
from weir.compat.convert.documents import read_json
from weir.compat.convert.draft import (
    FORM,
    Bill,
    Draft,
    Secrets,
    build_conversion,
    build_multipart,
    choose_origin,
    hide_secrets,
    is_host,
    is_secret_name,
    parse_pair,
    split_url,
)
from weir.compat.convert.har_values import name_variable
from weir.compat.convert.postman_script import Script, read_script
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
    """Raised for a request that a scenario cannot express. The message is the reason, as a plural."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A request of the collection, with what its folders give it."""

    name: str
    content: Mapping[str, Any]
    auth: Mapping[str, Any] | None
    variables: Mapping[str, Any]


@dataclass(slots=True)
class _Scope:
    """The variables that a request can use."""

    given: Mapping[str, str]
    """The values of --var."""
    environment: Mapping[str, str]
    secret_names: frozenset[str]
    """The variables that the environment file marks as secret."""
    extracted: dict[str, str] = field(default_factory=dict)
    """A dict from a variable that a script sets to the text that stands for the variable."""
    script_only: dict[str, str] = field(default_factory=dict)
    """A dict from a variable whose value only a script knows to the name of the script's request."""
    needed: dict[str, str] = field(default_factory=dict)
    """The part of `script_only` that requests need."""
    missing: dict[str, list[str]] = field(default_factory=dict)
    """A dict from a variable without a value to the names of the requests that use the variable."""


def convert(tool: str, words: Sequence[str]) -> Conversion:
    """Returns the requests of a collection as the steps of a scenario."""
    parser = ArgumentParser(tool, _USAGE)
    parser.add_argument("file")
    parser.add_argument("-e", "--environment")
    parser.add_argument("--var", dest="values", action="append", type=parse_pair("--var"), default=[])
    parser.add_argument("--host")
    parser.add_argument("--with", dest="kinds", action="append", choices=("deletes",), default=[])
    given = parser.parse_args(words)
    content = read_json(Path(given.file), "a Postman collection")
    content = content.get("collection", content)
    if not isinstance(content.get("item"), list):
        problem = f"{given.file}: found no list item, expected a Postman collection of version 2.1"
        raise UsageError(problem, hint="export the collection from Postman again, as Collection v2.1")
    environment, secret_names = _read_environment(given.environment)
    scope = _Scope(dict(given.values), environment, secret_names)
    reader = _Reader(content, Path(given.file).parent, scope, given.kinds, given.host)
    drafts = reader.read_items()
    if scope.missing:
        lines = [f"  {name}: {_shorten(places)}" for name, places in scope.missing.items()]
        lines += [f"  {name}: only the script of {place!r} sets it" for name, place in scope.needed.items()]
        names = " ".join(f"--var {name}=..." for name in [*scope.missing, *scope.needed][:3])
        problem = f"{given.file}: found {len(lines)} variables without a value:\n" + "\n".join(lines)
        raise UsageError(problem, hint=f"add {names} or -e ENVIRONMENT.json")
    bill, secrets = reader.bill, reader.secrets
    if given.host is not None and not drafts and reader.origins:
        choose_origin(reader.origins, given.host, None, given.file)
    drafts = [hide_secrets(draft, secrets, bill) for draft in drafts]
    return build_conversion(drafts, bill, secrets, source=given.file, total=reader.total)


class _Reader:
    """Reads the requests of a collection in order. `folder`: the folder of files that bodies name."""

    def __init__(
        self, collection: Mapping[str, Any], folder: Path, scope: _Scope, kinds: Sequence[str], host: str | None
    ) -> None:
        self._collection, self._folder, self._scope, self._kinds = collection, folder, scope, kinds
        self._host = host
        self.origins: list[str] = []
        """The scheme and host of each request, those to other hosts included."""
        self.bill, self.secrets = Bill(), Secrets()
        self.total = 0

    def read_items(self) -> list[Draft]:
        """Returns the requests that weir can send. Ends before a request that needs a value from a script."""
        drafts: list[Draft] = []
        items = list(self._list_items(self._collection, "", None, {}))
        self.total = len(items)
        stopped: list[str] = []
        for item in items:
            try:
                draft = self._read_item(item)
            except _Refused as refused:
                if not stopped:
                    self.bill.leave_out(str(refused), item.name)
                    self._note_script(item.content, item.name, None)
                    continue
            if stopped or self._scope.needed:
                # weir reads the requests behind it only to find all variables without a value.
                stopped.append(item.name)
                continue
            self.origins.append(draft.origin)
            is_taken = is_host(draft.origin, self._host or self.origins[0])
            if is_taken:
                drafts.append(draft)
            else:
                self.bill.leave_out("requests to other hosts (--host chooses another)", draft.origin)
            self._note_script(item.content, item.name, draft if is_taken else None)
        if stopped:
            needed = [f"{{{{{variable}}}}} of {name!r}" for variable, name in self._scope.needed.items()]
            reason = f"requests, {stopped[0]!r} and those behind it, because only scripts set {', '.join(needed)}"
            for _ in stopped:
                self.bill.leave_out(f"{reason} (--var NAME=VALUE gives a value)")
        return drafts

    def _list_items(
        self, holder: Mapping[str, Any], path: str, auth: Mapping[str, Any] | None, variables: Mapping[str, Any]
    ) -> Iterator[_Item]:
        auth = holder.get("auth") or auth
        own = {one.get("key", one.get("id")): one for one in holder.get("variable") or () if not one.get("disabled")}
        variables = {**variables, **own}
        if holder.get("event"):
            self._note_script(holder, path.rstrip(" /") or "the collection", None)
        for one in holder["item"]:
            name = f"{path}{one.get('name') or 'request'}"
            if isinstance(one.get("item"), list):
                yield from self._list_items(one, f"{name} / ", auth, variables)
            elif one.get("request"):
                request = one["request"]
                request = {"method": "GET", "url": request} if isinstance(request, str) else request
                yield _Item(name, {**one, "request": request}, request.get("auth") or auth, variables)

    def _note_script(self, holder: Mapping[str, Any], name: str, draft: Draft | None) -> None:
        """Adds the variables of scripts to the scope, and the extractions to the draft."""
        scope = self._scope
        for event in holder.get("event") or ():
            script: Script = read_script(event)
            if script.does_more:
                self.bill.leave_out("scripts, which weir does not run", f"{name} ({event.get('listen', 'test')})")
            for variable, pointer in script.pointers.items():
                if draft is None or event.get("listen") != "test":
                    scope.script_only[variable] = name
                    continue
                known = scope.extracted.get(variable, "")[2:-2]
                safe = known if known.isidentifier() else name_variable(variable, draft.extract)
                draft.extract[safe] = JsonPointer(pointer)
                scope.extracted[variable] = f"{{{{{safe}}}}}"
                self.bill.notes.append(f"{{{{{safe}}}}} comes from {pointer or 'the body'} in the response of {name!r}")
            for variable, text in script.constants.items():
                scope.extracted.setdefault(variable, text)
            for variable in script.unknown:
                scope.script_only.setdefault(variable, name)

    def _read_item(self, item: _Item) -> Draft:
        for event in item.content.get("event") or ():
            if event.get("listen") == "prerequest":
                script = read_script(event)
                self._scope.extracted.update(script.constants)
                self._scope.script_only.update(dict.fromkeys(script.unknown, item.name))
        request = item.content["request"]
        method = str(request.get("method") or "GET").upper()
        if method == "DELETE" and "deletes" not in self._kinds:
            raise _Refused("DELETE requests (--with deletes takes them)")
        origin, target = self._read_url(item, request.get("url"))
        draft = Draft(item.name, method, origin, target, name=_VARIABLE.sub(r"\1", item.name))
        for header in _list_enabled(request.get("header")):
            name, value = (self._fill(header.get(key), item).strip() for key in ("key", "value"))
            draft.headers += [(name, value)] if name else []
        saved = {response.get("code") for response in item.content.get("response") or ()}
        draft.status = sorted(code for code in saved if isinstance(code, int) and code < 400)
        self._add_body(draft, request.get("body"), item)
        self._add_auth(draft, item)
        return draft

    def _read_url(self, item: _Item, url: Any) -> tuple[str, str]:
        url = {"raw": url} if isinstance(url, str) else url or {}
        raw = str(url.get("raw") or "")
        if not raw:
            host, path = (url.get(key) or [] for key in ("host", "path"))
            host = host if isinstance(host, str) else ".".join(host)
            path = path if isinstance(path, str) else "/".join(str(part) for part in path)
            port = f":{url['port']}" if url.get("port") else ""
            scheme = f"{url['protocol']}://" if url.get("protocol") else ""
            raw = f"{scheme}{host}{port}/{path}" if host else ""
        before, mark, query = raw.partition("?")
        if url.get("query"):
            pairs = [(one.get("key") or "", one.get("value")) for one in _list_enabled(url["query"])]
            query = "&".join(name if value is None else f"{name}={value}" for name, value in pairs)
            mark = "?" if query else ""
        for variable in url.get("variable") or ():
            key, value = variable.get("key") or variable.get("id"), variable.get("value")
            given = self._scope.given.get(key) or value
            if given in (None, "") and f"/:{key}" in before:
                self._scope.missing.setdefault(str(key), []).append(item.name)
            new = str(given or "").replace("\\", r"\\")
            before = re.sub(rf"(?<=/):{re.escape(str(key))}(?=/|$)", new, before)
        if not raw:
            raise _Refused("requests without a URL")
        filled = self._fill(before + mark + query, item)
        filled = filled if "://" in filled else f"http://{filled}"
        if "{{" in urlsplit(filled).netloc:
            raise _Refused("requests to a host that is known only at run time")
        return split_url(filled)

    def _add_body(self, draft: Draft, body: Any, item: _Item) -> None:
        body = body if isinstance(body, dict) and not body.get("disabled") else {}
        mode = body.get("mode")
        content = body.get(mode) if mode else None
        if not content or draft.method in ("GET", "HEAD"):
            return
        match mode:
            case "raw":
                draft.body = self._fill(content, item)
                language = ((body.get("options") or {}).get("raw") or {}).get("language", "text")
                is_json = draft.body.lstrip()[:1] in ("{", "[")
                draft.set_default_header("Content-Type", _LANGUAGES["json" if is_json else language])
            case "urlencoded":
                pairs = [(one.get("key") or "", self._fill(one.get("value"), item)) for one in _list_enabled(content)]
                draft.body = "&".join(f"{_quote(self._fill(name, item))}={_quote(value)}" for name, value in pairs)
                draft.set_default_header("Content-Type", FORM)
            case "formdata":
                fields = []
                for one in _list_enabled(content):
                    if one.get("type") == "file" or one.get("src"):
                        raise _Refused("requests with files in a form")
                    fields.append((self._fill(one.get("key"), item), self._fill(one.get("value"), item)))
                content_type, draft.body = build_multipart(fields)
                draft.set_header("Content-Type", content_type)
            case "graphql":
                variables = content.get("variables") or "{}"
                variables = variables if isinstance(variables, str) else json.dumps(variables)
                query = json.dumps(self._fill(content.get("query"), item))
                draft.body = f'{{"query": {query}, "variables": {self._fill(variables, item).strip() or "{}"}}}'
                draft.set_default_header("Content-Type", "application/json")
            case "file":
                draft.body = self._read_file(content.get("src"))
            case _:
                raise _Refused(f"requests with a body of the kind {mode}")

    def _read_file(self, name: Any) -> str:
        try:
            return (self._folder / str(name)).read_text()
        except (OSError, ValueError):
            raise _Refused("requests whose body is a file that is missing or no text") from None

    def _add_auth(self, draft: Draft, item: _Item) -> None:
        auth = item.auth or {}
        kind = auth.get("type", "noauth")
        found = auth.get(kind) or {}
        values = {one.get("key"): one.get("value") for one in found} if isinstance(found, list) else found
        match kind:
            case "noauth":
                return
            case "bearer" | "oauth2":
                token = self._hide("bearer_token", values.get("token") or values.get("accessToken"), item)
                draft.set_header("Authorization", f"Bearer {token}")
            case "basic":
                pair = ":".join(self._fill(values.get(key), item) for key in ("username", "password"))
                draft.set_header("Authorization", f"Basic {self.secrets.hide('basic_base64', pair, item.name)}")
            case "apikey":
                name, secret = str(values.get("key") or "key"), self._hide("api_key", values.get("value"), item)
                if values.get("in") == "query":
                    draft.target += f"{'&' if '?' in draft.target else '?'}{quote(name)}={secret}"
                else:
                    draft.set_header(name, secret)
            case _:
                raise _Refused(f"requests with {kind} authentication, which weir cannot make")

    def _hide(self, name: str, value: Any, item: _Item) -> str:
        """Returns a placeholder for the secret of an authentication. A variable stays the variable."""
        text = self._fill(value, item)
        return (
            text if text and not _VARIABLE.sub("", text).strip() else self.secrets.hide(name, text or None, item.name)
        )

    def _fill(self, text: Any, item: _Item, depth: int = 0) -> str:
        """Returns a text with the values of its variables."""
        text = "" if text is None else text if isinstance(text, str) else json.dumps(text)
        return _VARIABLE.sub(lambda match: self._find(match[1], item, depth), text)

    def _find(self, name: str, item: _Item, depth: int) -> str:
        scope = self._scope
        if name in _DYNAMIC or name.startswith("$random"):
            if name not in ("$guid", "$randomUUID", "$randomInt"):
                self.bill.leave_out("generated values, with a random value in their place", name)
            return _DYNAMIC.get(name, "{{word 8}}")
        if name in scope.extracted:
            return scope.extracted[name]
        own = item.variables.get(name) or {}
        known = scope.given.get(name) or scope.environment.get(name) or own.get("value")
        if (name in scope.secret_names or is_secret_name(name) or own.get("type") == "secret") and (
            known or name not in scope.script_only
        ):
            return self.secrets.hide(name, str(known) if known and "{{" not in str(known) else None, item.name)
        if known not in (None, "") and depth < _DEEPEST:
            return self._fill(known, item, depth + 1)
        if name in scope.script_only:
            scope.needed[name] = scope.script_only[name]
            return ""
        places = scope.missing.setdefault(name, [])
        if item.name not in places:
            places.append(item.name)
        return ""


def _read_environment(file: str | None) -> tuple[dict[str, str], frozenset[str]]:
    """Returns the variables of an environment file, and the names of the secret ones."""
    if file is None:
        return {}, frozenset()
    listed = read_json(Path(file), "a Postman environment").get("values")
    if not isinstance(listed, list):
        raise UsageError(f"-e: {file}: found no list values, expected a Postman environment")
    enabled = [one for one in listed if isinstance(one, dict) and one.get("enabled", True)]
    values = {str(one.get("key")): str(one.get("value") or "") for one in enabled}
    return values, frozenset(str(one.get("key")) for one in enabled if one.get("type") == "secret")


def _list_enabled(parts: Any) -> list[Mapping[str, Any]]:
    return [one for one in parts or () if isinstance(one, dict) and not one.get("disabled")]


def _quote(text: str) -> str:
    """Percent-encodes a text for a form, but not the placeholders in it."""
    parts = re.split(r"(\{\{[^{}]*\}\})", text)
    return "".join(part if index % 2 else quote(part, safe="") for index, part in enumerate(parts))


def _shorten(places: Sequence[str]) -> str:
    more = f" and {len(places) - 3} others" if len(places) > 3 else ""
    return ", ".join(places[:3]) + more
