"""A workload: what one request asks, and what proves that the answer is right. Said once for all stacks, in `workloads/NAME.toml`.

A template holds `{{int LOW HIGH}}` and `{{word LENGTH}}`, drawn anew for every check. In `answer.json` the string `{{body}}` stands for the
JSON value that the request carried, and `{{sha256 TIMES INPUT}}` for a digest of what was drawn for its path, the first input being 1.
`answer.rows` is SQL on the workload's dataset, with a `?` for each of these inputs.
"""

import hashlib
import json
import random
import re
import string
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from weir.model.errors import UsageError
from weir.model.load import Request
from weir.model.template import pieces
from weir.places import data_folder
from weir.services.dataset import truth_of
from weir.stacks.invariant import Invariant
from weir.toml_file import Table, read_toml, validate

_DIGEST = re.compile(r"\{\{sha256 (?P<times>\d+) (?P<input>\d+)\}\}")

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


class RequestTemplate(Table):
    """The request, with random inputs."""

    method: Method = "GET"
    """Its HTTP method."""
    path: str
    """What is asked for, from the / on, with a query if there is one."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Its headers, by name."""
    body: str | None = None
    """What is sent; white space around it is not."""

    @field_validator("path")
    @classmethod
    def _path_is_absolute(cls, path: str) -> str:
        if not path.startswith("/"):
            raise ValueError("expected a path that begins with '/'")
        return path

    @model_validator(mode="after")
    def _templates_render(self) -> "RequestTemplate":
        for text in (self.path, self.body or ""):
            render(text, random.Random(0))
        return self


class Rows(Table):
    """The rows of the dataset that a right answer holds, as JSON objects by column name."""

    sql: str
    match: Literal["all", "one"] = "all"
    """`all`: an array of all these rows, in any order; `one`: one of them, as an object."""
    lists: dict[str, str] = Field(default_factory=dict)
    """What each object holds beside its columns: by key, a query whose rows are an array in their order, alike in all of them."""

    def of(self, dataset_id: str, inputs: Sequence[str]) -> list[dict[str, Any]]:
        """The rows on a dataset, each with its lists.

        Args:
            dataset_id: the dataset.
            inputs: what was drawn for the request's path.

        Raises:
            ValueError: a query is none on this dataset; the message names its key.
        """
        found = {}
        for key, query in {"sql": self.sql, **{f"lists.{name}": query for name, query in self.lists.items()}}.items():
            try:
                found[key] = truth_of(dataset_id).rows(query, inputs)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
        lists = {name: found[f"lists.{name}"] for name in self.lists}
        return [{**row, **lists} for row in found["sql"]]


class Work(Table):
    """What a request should cost the databases. A stack that does otherwise is told so."""

    statements: float | None = Field(default=None, ge=0)
    """Data statements per request."""
    rows: float | None = Field(default=None, ge=0)
    """Rows that they return or change, per request."""
    rows_differ: str = ""
    """Why stacks that do the same may differ in rows. They are then shown and not compared."""

    @model_validator(mode="after")
    def _rows_are_known_or_differ(self) -> "Work":
        if self.rows is not None and self.rows_differ:
            raise ValueError(f"rows_differ: found beside rows = {self.rows:g}, expected one of them")
        return self


class PlainAnswer(Table):
    """What a right answer is, as far as it does not depend on a database. Every key that is given must hold."""

    status: int = 200
    """Its status."""
    text_matches: str | None = None
    """A regular expression that the body, as text, must contain."""
    json_: Any = Field(default=None, alias="json")
    """The value that the body must be, as JSON."""

    @field_validator("text_matches")
    @classmethod
    def _pattern_compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"expected a regular expression: {error}") from None
        return pattern


class Answer(PlainAnswer):
    """What a right answer is. Every key that is given must hold."""

    rows: Rows | None = None


class Workload(Table):
    """The file `workloads/ID.toml`."""

    schema_number: Literal[1] = Field(alias="schema")
    id: str
    title: str
    description: str = ""
    dataset: str | None = None
    """What must be in the stack's database."""
    services: list[str] = Field(default_factory=list)
    """Upstreams that the stack asks for it: they are started for such workloads alone."""
    request: RequestTemplate
    answer: Answer
    work: Work = Field(default_factory=Work)
    invariant: dict[str, Invariant] = Field(default_factory=dict)
    """What must hold in the database after a trial, by name."""

    @model_validator(mode="after")
    def _answers_can_be_told(self) -> "Workload":
        asking = [name for name, asked in (("answer.rows", self.answer.rows), ("invariant", self.invariant)) if asked]
        if asking and self.dataset is None:
            raise ValueError(f"{asking[0]}: expected 'dataset' beside it")
        try:
            _expected(self.answer.json_, b"null", self.inputs(render(self.request.path, random.Random(0))))
        except ValueError as error:
            raise ValueError(f"answer.json: {error}") from None
        if self.answer.rows is not None and self.dataset is not None:
            inputs = self.inputs(render(self.request.path, random.Random(0)))
            try:
                self.answer.rows.of(self.dataset, inputs)
            except ValueError as error:
                raise ValueError(f"answer.rows.{error}") from None
        return self

    def draw(self, base_url: str, inputs: random.Random, *, path: str | None = None) -> Request:
        """A request of this workload with inputs drawn from `inputs`.

        Args:
            base_url: scheme, host and port.
            inputs: the source of the random inputs; the same seed draws the same request.
            path: the stack's own path, where it differs from the workload's.
        """
        body = None if self.request.body is None else render(self.request.body, inputs).strip()
        return Request(
            method=self.request.method,
            target=base_url + render(path or self.request.path, inputs),
            headers=tuple(self.request.headers.items()),
            body=None if body is None else body.encode(),
        )

    def inputs(self, path: str, template: str | None = None) -> list[str]:
        """What was drawn for a request's path.

        Args:
            path: the path, as it was asked for.
            template: the stack's own, where it differs from the workload's.
        """
        pattern = "".join(re.escape(piece) if isinstance(piece, str) else "(.+?)" for piece in pieces(template or self.request.path))
        match = re.fullmatch(pattern, path)
        return list(match.groups()) if match else []

    def step(self, request: Request, *, path: str | None = None) -> dict[str, Any]:
        """`request`, which was drawn for `path`, as a step of a plan's scenario, where the generator itself looks at every answer.

        Where several values are right, it looks for a column's name alone: `why_wrong` sees more.
        """
        url = urlsplit(request.target)
        asked = f"{url.path}?{url.query}" if url.query else url.path
        inputs = self.inputs(asked, path)
        check: dict[str, Any] = {"status": [self.answer.status]}
        if self.answer.json_ is not None:
            check["json"] = {"": _expected(self.answer.json_, request.body, inputs)}
        elif self.answer.rows is not None and self.dataset is not None and (rows := self.answer.rows.of(self.dataset, inputs)):
            if len(rows) == 1 and self.answer.rows.match == "one":
                check["json"] = {"": rows[0]}
            else:
                check["body_contains"] = json.dumps(list(rows[0])[-1])
        body = {} if request.body is None else {"body": request.body.decode()}
        return {"method": request.method, "path": asked, "headers": [list(pair) for pair in request.headers], "check": check, **body}

    def why_wrong(self, request: Request, status: int, body: bytes, *, path: str | None = None) -> str | None:
        """What is wrong with an answer to `request`, which was drawn for `path`; None where it is right."""
        url = urlsplit(request.target)
        inputs = self.inputs(f"{url.path}?{url.query}" if url.query else url.path, path)
        if status != self.answer.status:
            return f"status: found {status}, expected {self.answer.status}; body {_excerpt(body)}"
        if self.answer.text_matches is not None and not re.search(self.answer.text_matches, body.decode("utf-8", "replace")):
            return f"body: found {_excerpt(body)}, expected text that matches {self.answer.text_matches!r}"
        if self.answer.json_ is not None:
            try:
                found = json.loads(body)
            except ValueError:
                return f"body: found {_excerpt(body)}, expected JSON"
            expected = _expected(self.answer.json_, request.body, inputs)
            if not _same_json(found, expected):
                return f"body: found {_excerpt(body)}, expected {_excerpt(json.dumps(expected).encode())}"
        if self.answer.rows is not None and self.dataset is not None:
            return _why_not_rows(body, self.answer.rows.of(self.dataset, inputs), self.answer.rows.match)
        return None


def read_workload(workload_id: str) -> Workload:
    """The workload of that name.

    Raises:
        UsageError: there is no such workload, or its file is not valid.
    """
    folder = data_folder("workloads")
    path = folder / f"{workload_id}.toml"
    known = ", ".join(sorted(p.stem for p in folder.glob("*.toml")))
    workload = validate(Workload, read_toml(path, what="a workload", hint=f"known workloads: {known}"), path=path)
    if workload.id != path.stem:
        raise UsageError(f"{path}: id: found {workload.id!r}, expected {path.stem!r}, the file's name")
    return workload


def render(template: str, inputs: random.Random) -> str:
    """`template` with its placeholders drawn from `inputs`.

    Raises:
        ValueError: a placeholder is not known or has wrong arguments.
    """

    def draw(piece: str | list[str]) -> str:
        match piece:
            case str(text):
                return text
            case ["int", low, high]:
                return str(inputs.randint(int(low), int(high)))
            case ["word", length]:
                return "".join(inputs.choices(string.ascii_letters, k=int(length)))
        raise ValueError(f"unknown placeholder {{{{{' '.join(piece)}}}}}; expected {{{{int LOW HIGH}}}} or {{{{word LENGTH}}}}")

    return "".join(map(draw, pieces(template)))


def workload_files() -> list[Path]:
    """All workload files that travel with this weir."""
    return sorted(data_folder("workloads").glob("*.toml"))


def _expected(template: Any, body: bytes | None, inputs: list[str]) -> Any:
    """The JSON that an answer must be.

    Args:
        template: `answer.json`.
        body: of the request.
        inputs: what was drawn for its path.

    Raises:
        ValueError: a digest is asked of an input that there is not.
    """
    if isinstance(template, dict):
        return {key: _expected(value, body, inputs) for key, value in template.items()}
    if isinstance(template, list):
        return [_expected(value, body, inputs) for value in template]
    if template == "{{body}}":
        return json.loads(body or b"null")
    asked = _DIGEST.fullmatch(template) if isinstance(template, str) else None
    if asked is None:
        return template
    times, number = int(asked["times"]), int(asked["input"])
    if not 1 <= number <= len(inputs) or not times:
        raise ValueError(
            f"{template}: expected {{{{sha256 TIMES INPUT}}}} with the number of one of {len(inputs)} random inputs of the path"
        )
    return _repeated_sha256(inputs[number - 1], times)


def _repeated_sha256(text: str, times: int) -> str:
    """The SHA-256 of a text's bytes, of that digest's bytes, and so on."""
    digest = text.encode()
    for _ in range(times):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


def _why_not_rows(body: bytes, rows: list[dict[str, Any]], match: Literal["all", "one"]) -> str | None:
    try:
        found = json.loads(body)
    except ValueError:
        return f"body: found {_excerpt(body)}, expected JSON"
    if match == "one":
        if any(_same_json(found, row) for row in rows):
            return None
        expected = f"the row {_excerpt(json.dumps(rows[0]).encode())}" if len(rows) == 1 else f"one of {len(rows)} rows of the dataset"
        return f"body: found {_excerpt(body)}, expected {expected}"
    if not isinstance(found, list):
        return f"body: found {_excerpt(body)}, expected an array of {len(rows)} rows"
    missing = _less(rows, found)
    surplus = _less(found, rows)
    if not missing and not surplus:
        return None
    told = [f"without {json.dumps(missing[0])}"] if missing else []
    told += [f"with {_excerpt(json.dumps(surplus[0]).encode())}, which is not among them"] if surplus else []
    return f"body: found {len(found)} rows {' and '.join(told)}; expected the {len(rows)} rows of the dataset"


def _less(rows: list[Any], others: list[Any]) -> list[Any]:
    """Those of `rows` that `others` lacks, as often as it lacks them."""
    left = Counter(json.dumps(other, sort_keys=True) for other in others)
    missing = []
    for row in rows:
        key = json.dumps(row, sort_keys=True)
        if left[key] > 0:
            left[key] -= 1
        else:
            missing.append(row)
    return missing


def _same_json(found: Any, expected: Any) -> bool:
    """Equality of JSON values. Python holds True == 1, JSON does not."""
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(_same_json(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(_same_json, found, expected))
    return bool(found == expected)


def _excerpt(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    return repr(text if len(text) <= 120 else text[:117] + "...")
