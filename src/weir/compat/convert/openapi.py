"""Converts an OpenAPI file (2, 3.0 or 3.1) into a scenario whose users choose among the operations."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from weir.compat.convert.conversion import ArgumentParser, Conversion
from weir.compat.convert.documents import is_url, read_document, read_text
from weir.compat.convert.draft import (
    FORM,
    Draft,
    Notes,
    Secrets,
    build_conversion,
    build_multipart,
    hide_secrets,
    is_secret_name,
    parse_pair,
    parse_url,
    split_url,
)
from weir.compat.convert.openapi_values import (
    MISSING,
    Document,
    Placeholder,
    as_list,
    as_table,
    flatten,
    has_file,
    write_path,
    write_query,
    write_text,
)
from weir.model.errors import UsageError
from weir.scenario import Csv

_USAGE = "weir convert openapi openapi.yaml --host http://127.0.0.1:8000 --set id=1 > api.toml"
_KINDS = ("writes", "deletes", "deprecated")
_WRITES = ("post", "put", "patch")
_METHODS = ("get", "head", *_WRITES, "delete", "options", "trace")
_FEEDER = "values"
_BY_SCHEME = {"bearer": "Bearer ", "basic": "Basic "}


def convert(tool: str, words: Sequence[str]) -> Conversion:
    """Returns the operations of an OpenAPI file as the requests of a scenario."""
    parser = ArgumentParser(tool, _USAGE)
    parser.add_argument("file")
    parser.add_argument("--host")
    parser.add_argument("--set", dest="values", action="append", type=parse_pair("--set"), default=[])
    parser.add_argument("--csv")
    parser.add_argument("--with", dest="kinds", action="append", choices=_KINDS, default=[])
    given = parser.parse_args(words)
    content = read_document(given.file, "an OpenAPI file")
    if not (version := str(content.get("openapi") or content.get("swagger") or "")).startswith(("2.", "3.")):
        found = f"found {version!r}" if version else "found no key openapi or swagger"
        raise UsageError(f"{given.file}: {found}, expected an OpenAPI file of version 2 or 3")
    columns = _read_columns(Path(given.csv)) if given.csv else []
    values = {name: Placeholder(f"{{{{csv {_FEEDER}.{name}}}}}") for name in columns} | dict(given.values)
    reader = _Reader(Document(content), given.file, given.host, values, given.kinds)
    drafts = list(reader.read_operations())
    if unknown := [name for name, _ in given.values if name not in reader.used]:
        raise UsageError(f"--set: found {unknown[0]!r}, expected the name of a parameter in {given.file}")
    feeders = {_FEEDER: Csv(str(Path(given.csv).resolve()))} if given.csv and reader.used & set(columns) else {}
    reader.add_missing()
    notes, secrets = reader.notes, reader.secrets
    drafts = [hide_secrets(draft, secrets, notes) for draft in drafts]
    return build_conversion(
        drafts, notes, secrets, source=given.file, total=reader.total, key="requests", feeders=feeders
    )


class _Reader:
    """Reads the operations of one file. `values`: the values from --set and --csv."""

    def __init__(
        self, document: Document, source: str, host: str | None, values: Mapping[str, str], kinds: Sequence[str]
    ) -> None:
        self._document, self._values, self._kinds = document, values, kinds
        self._content = document.content
        self._is_old = "swagger" in self._content
        self.used: set[str] = set()
        """The names of `values` that a request uses."""
        self.total = 0
        """The number of operations in the file."""
        self.notes, self.secrets = Notes(), Secrets()
        self._missing: Counter[str] = Counter()
        self._base = self._choose_base(source, host)

    def read_operations(self) -> Iterator[Draft]:
        """Yields the operations that weir can request, and lists the others in the notes."""
        for path, item in self._list_paths().items():
            item = self._document.resolve(item)
            for method in _METHODS:
                operation = item.get(method)
                if not isinstance(operation, dict):
                    continue
                self.total += 1
                name = str(operation.get("operationId") or f"{method.upper()} {path}")
                if operation.get("callbacks"):
                    self.notes.leave_out("callbacks, which the server sends", name)
                if reason := self._find_reason(method, operation):
                    self.notes.leave_out(reason, name)
                elif self._find_base(operation, item) is None:
                    servers = operation.get("servers") or item.get("servers")
                    origin = split_url(urljoin(self._url, self._read_server(servers)))[0]
                    self.notes.leave_out("operations of other hosts (--host URL chooses a host)", origin)
                elif draft := self._read_operation(path, method, item, operation, name):
                    yield draft

    def add_missing(self) -> None:
        """Adds notes about the parameters without a value, and about references to other files."""
        for reference in self._document.other_files:
            self.notes.leave_out("references to other files", reference)
        if self._missing:
            names = ", ".join(f"{name} ({count})" for name, count in self._missing.most_common())
            self.notes.other.append(f"parameters without a value in the file: {names}")

    def _find_reason(self, method: str, operation: Mapping[str, Any]) -> str | None:
        if method in _WRITES and "writes" not in self._kinds:
            return "operations that write: POST, PUT and PATCH (--with writes includes them)"
        if method == "delete" and "deletes" not in self._kinds:
            return "DELETE operations (--with deletes includes them)"
        if method in ("options", "trace"):
            return "OPTIONS and TRACE operations"
        if operation.get("deprecated") and "deprecated" not in self._kinds:
            return "deprecated operations (--with deprecated includes them)"
        return None

    def _find_base(self, operation: Mapping[str, Any], item: Mapping[str, Any]) -> str | None:
        """Returns the base path of an operation. Returns None if the operation has another host."""
        if not (servers := operation.get("servers") or item.get("servers")):
            return split_url(self._base)[1].rstrip("/")
        origin, base_path = split_url(urljoin(self._url, self._read_server(servers)))
        return base_path.rstrip("/") if origin in (split_url(self._url)[0], split_url(self._base)[0]) else None

    def _read_operation(
        self, path: str, method: str, item: Mapping[str, Any], operation: Mapping[str, Any], name: str
    ) -> Draft | None:
        resolve = self._document.resolve
        listed = [resolve(one) for holder in (item, operation) for one in as_list(holder.get("parameters"))]
        parameters = {(str(one.get("in")), one["name"]): one for one in listed if isinstance(one.get("name"), str)}
        declared = {key[1] for key in parameters if key[0] == "path"}
        for extra in re.findall(r"\{([^{}]+)\}", path):
            if extra not in declared:
                parameters["path", extra] = {"in": "path", "name": extra, "required": True}
        draft = Draft(name, method.upper(), split_url(self._base)[0], "", name=name, status=_list_statuses(operation))
        missing: list[str] = []
        query: list[str] = []
        form: dict[str, Any] = {}
        for (place, label), parameter in parameters.items():
            if place == "body" or (place == "header" and label.lower() in ("accept", "content-type", "authorization")):
                continue
            if (value := self._choose_value(parameter, name)) is None:
                continue
            if value is MISSING:
                missing.append(label)
            elif place == "path":
                path = path.replace(f"{{{label}}}", write_path(parameter, value))
            elif place == "query":
                query.append(write_query(parameter, value))
            elif place == "formData":
                form[label] = value
            elif place == "header":
                draft.headers.append((label, write_text(value)))
        if missing:
            self._missing.update(missing)
            reason = "operations whose required parameters have no value (--set NAME=VALUE or --csv FILE gives values)"
            self.notes.leave_out(reason, f"{name} needs {', '.join(missing)}")
            return None
        if problem := self._add_body(draft, operation, parameters, form):
            self.notes.leave_out(problem, name)
            return None
        query += self._add_security(draft, operation)
        joined = "?" if "?" not in path else "&"
        path, query_text = path.partition("#")[0], "&".join(query)
        draft.target = (self._find_base(operation, item) or "") + path + (f"{joined}{query_text}" if query else "")
        return draft

    def _choose_value(self, parameter: Mapping[str, Any], name: str) -> Any:
        """Returns the value of a parameter, `MISSING`, or None to omit an optional parameter."""
        label = parameter["name"]
        for key in (f"{name}.{label}", label):
            if key in self._values:
                self.used.add(key)
                return self._values[key]
        if not parameter.get("required") and parameter.get("in") != "path":
            return None
        if is_secret_name(label) and parameter.get("in") != "path":
            return Placeholder(self.secrets.hide(label, None, name))
        found = self._document.find_value(parameter)
        return MISSING if found is None else found

    def _add_body(
        self, draft: Draft, operation: Mapping[str, Any], parameters: Mapping[Any, Any], form: Mapping[str, Any]
    ) -> str | None:
        """Adds the body to the draft. Returns a reason if weir cannot send a body."""
        resolve = self._document.resolve
        if self._is_old:
            types = as_list(operation.get("consumes") or self._content.get("consumes")) or ["application/json"]
            fields = [one for (place, _), one in parameters.items() if place == "formData"]
            if any(one.get("type") == "file" for one in fields):
                return "requests with files"
            body = next((one for (place, _), one in parameters.items() if place == "body"), None)
            is_needed = bool(body and body.get("required"))
            media = dict.fromkeys(types, body) if body else {}
            if form:
                kind = "multipart/form-data" if FORM not in types and "multipart/form-data" in types else FORM
                _write_body(draft, kind, form)
                return None
        else:
            body = resolve(operation.get("requestBody"))
            is_needed, media = bool(body.get("required")), as_table(body.get("content"))
        for media_type in sorted(media, key=_rank):
            if media_type.startswith("multipart/") and has_file(
                self._document, resolve(media[media_type]).get("schema")
            ):
                return "requests with files"
            value = self._document.find_value(media[media_type])
            if value is not MISSING and _write_body(draft, media_type, value):
                return None
        return "operations whose required body has no example in the file" if is_needed else None

    def _add_security(self, draft: Draft, operation: Mapping[str, Any]) -> Iterator[str]:
        """Adds the headers of the first security scheme, and yields that scheme's query parameters."""
        needs = as_list(operation.get("security", self._content.get("security"))) or [{}]
        holder = self._content if self._is_old else self._document.resolve(self._content.get("components"))
        schemes = as_table(holder.get("securityDefinitions" if self._is_old else "securitySchemes"))
        for scheme_name in {} if {} in needs else as_table(needs[0]):
            scheme = self._document.resolve(schemes.get(scheme_name))
            kind, label = scheme.get("type"), str(scheme.get("name", scheme_name))
            way = "basic" if kind == "basic" else str(scheme.get("scheme", "bearer")).lower()
            secret_name = f"{scheme_name}_base64" if way == "basic" else scheme_name
            secret = self.secrets.hide(secret_name, None, draft.where)
            if kind == "apiKey" and scheme.get("in") == "query":
                yield f"{label}={secret}"
            elif kind == "apiKey" and scheme.get("in") == "cookie":
                draft.headers.append(("Cookie", f"{label}={secret}"))
            elif kind == "apiKey":
                draft.headers.append((label, secret))
            else:
                draft.headers.append(("Authorization", f"{_BY_SCHEME.get(way, f'{way} ')}{secret}"))

    def _choose_base(self, source: str, host: str | None) -> str:
        """Returns the base URL. --host replaces its scheme and host, and a path in --host replaces the base path."""
        content = self._content
        if self._is_old:
            scheme = next(iter(as_list(content.get("schemes"))), "https")
            url = f"{scheme}://{content['host']}" if content.get("host") else ""
            url += str(content.get("basePath") or "/")
        else:
            url = self._read_server(content.get("servers") or self._choose_servers())
        url = urljoin(source, url) if is_url(source) else url
        self._url = url
        if host is not None:
            if not is_url(host):
                raise UsageError(f"--host: found {host!r}, expected a URL such as http://127.0.0.1:8000")
            url = host if parse_url(host).path.strip("/") else host.rstrip("/") + split_url(url)[1]
        if not is_url(url) or not parse_url(url).netloc or "{" in url:
            place = "host" if self._is_old else "servers"
            problem = f"{source}: {place}: found {url!r}, expected a URL with a host"
            raise UsageError(problem, hint="add --host http://127.0.0.1:8000")
        return url

    def _choose_servers(self) -> Any:
        """Returns the most frequent `servers` of the operations. Some files have `servers` only in operations."""
        found = []
        for item in map(self._document.resolve, self._list_paths().values()):
            holders = [item, *(item[method] for method in _METHODS if isinstance(item.get(method), dict))]
            found += [json.dumps(holder["servers"]) for holder in holders if holder.get("servers")]
        return json.loads(Counter(found).most_common(1)[0][0]) if found else [{"url": "/"}]

    def _list_paths(self) -> Mapping[str, Any]:
        return as_table(self._content.get("paths"))

    def _read_server(self, servers: Any) -> str:
        server = as_table(next(iter(as_list(servers)), None))
        url = str(server.get("url") or "/")
        for name, variable in as_table(server.get("variables")).items():
            value = self._values.get(name, self._document.resolve(variable).get("default"))
            self.used.add(name)
            url = url if value is None else url.replace(f"{{{name}}}", str(value))
        # `urljoin` raises an exception for a text that is no URL.
        return url if parse_url(url).path or parse_url(url).netloc else "/"


def _list_statuses(operation: Mapping[str, Any]) -> list[int]:
    """Returns the statuses from 200 to 299 of an operation. YAML may read a status as a number."""
    found = list(map(str, as_table(operation.get("responses"))))
    return [] if "2XX" in map(str.upper, found) else [int(one) for one in found if re.fullmatch(r"2\d\d", one)]


def _rank(media_type: str) -> int:
    """Returns the rank of a media type: weir prefers the lowest rank."""
    kinds = (r"application/(.*\+)?json\b", FORM, "multipart/form-data", "text/")
    return next((place for place, kind in enumerate(kinds) if re.match(kind, media_type)), len(kinds))


def _write_body(draft: Draft, media_type: str, value: Any) -> bool:
    """Adds a body and its Content-Type. Returns False if weir cannot write the value in this media type."""
    if media_type == FORM and isinstance(value, dict):
        draft.body = "&".join(write_query({"name": name, "style": "deepObject"}, one) for name, one in value.items())
    elif media_type == "multipart/form-data" and isinstance(value, dict):
        media_type, draft.body = build_multipart([(name, write_text(one)) for name, one in flatten("", value)])
    elif re.search(r"[/+]json\b", media_type):
        is_written = isinstance(value, str) and value.lstrip()[:1] in ("{", "[")
        draft.body = value if is_written else json.dumps(value, ensure_ascii=False)
    elif isinstance(value, str):
        draft.body = value
    else:
        return False
    draft.headers.append(("Content-Type", media_type))
    return True


def _read_columns(path: Path) -> list[str]:
    first = next(csv.reader(read_text(path, "a CSV file").splitlines()), [])
    if not first:
        raise UsageError(f"--csv: {path}: found no line, expected the names of the columns in the first line")
    return first
