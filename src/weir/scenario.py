"""Scenarios in Python or TOML. A scenario has the requests of users, in order or by weight. `to_plan` returns the key
`scenario` of the engine's plan.

Example:
    >>> login = Step("POST", "/login", body="{{csv users.name}}", extract={"token": JsonPointer("/token")})
    >>> user = Step("GET", "/user/{{int 1 100}}", headers={"Authorization": "{{token}}"}, check=Check(json={"/id": 1}))
    >>> shop = Scenario(steps=[login, user], feeders={"users": Csv("users.csv", mode="shuffled")})
    >>> shop.to_plan()["steps"][0]["extract"]
    {'token': {'json': '/token'}}
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from weir.model.errors import UsageError
from weir.model.load import Method
from weir.model.template import fill_environment, pieces
from weir.toml_file import Table, read_toml, validate

DEFAULT_CAPTURE_BYTES = 64 * 1024


class Extract(Table):
    """The location of a value in a response: a JSON pointer, a header or a regular expression."""

    json_: str | None = Field(default=None, alias="json")
    header: str | None = None
    regex: str | None = None

    @model_validator(mode="after")
    def _is_one(self) -> "Extract":
        if [self.json_, self.header, self.regex].count(None) != 2:
            raise ValueError("expected exactly one of json, header and regex")
        return self


class JsonPointer(Extract):
    """The location of a value in the body of a response: a JSON pointer (RFC 6901)."""

    def __init__(self, pointer: str) -> None:
        super().__init__(json=pointer)


class Header(Extract):
    """The location of a value in a response: the first header with the given name."""

    def __init__(self, name: str) -> None:
        super().__init__(header=name)


class Regex(Extract):
    """The location of a value in the body: the first group of a regular expression. Without groups: the whole match."""

    def __init__(self, pattern: str) -> None:
        super().__init__(regex=pattern)


class Check(Table):
    """The conditions of a correct response. Without conditions, every status below 400 is correct."""

    status: list[int] | None = None
    body_equals: str | None = None
    body_contains: str | None = None
    body_matches: list[str] = Field(default_factory=list)
    """Regular expressions. Each must match a part of the body."""
    body_lacks: list[str] = Field(default_factory=list)
    """Regular expressions. None may match a part of the body."""
    json_: dict[str, Any] | None = Field(default=None, alias="json")
    """A table from JSON pointers to the expected values in the body."""
    max_body_bytes: int | None = Field(default=None, ge=0)


class Pause(Table):
    """The length of a user's pause: constant, uniform between two lengths, or exponential with a mean."""

    constant_s: float | None = Field(default=None, ge=0)
    uniform_s: list[float] | None = Field(default=None, min_length=2, max_length=2)
    exponential_s: float | None = Field(default=None, ge=0)


class Step(Table):
    """One request of a scenario. Example: `Step("GET", "/path")`."""

    name: str | None = None
    weight: int | None = Field(default=None, ge=1)
    """Relative frequency of this request. Only for `Scenario.requests`, not for `Scenario.steps`."""
    method: Method = "GET"
    path: str
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    think: Pause | None = None
    extract: dict[str, Extract] = Field(default_factory=dict)
    check: Check = Field(default_factory=Check)

    def __init__(self, *request: str, **data: Any) -> None:
        super().__init__(**dict(zip(("method", "path"), request, strict=False)), **data)

    @field_validator("path", "body")
    @classmethod
    def _is_template(cls, text: str | None) -> str | None:
        list(pieces(text or ""))
        return text

    def to_plan(self) -> dict[str, Any]:
        """Returns the step in the form of the engine's plan."""
        plan = self.model_dump(by_alias=True, exclude_none=True, exclude={"check"})
        # `exclude_none` must not remove an expected null.
        plan["check"] = self.check.model_dump(by_alias=True, exclude_defaults=True)
        plan["headers"] = [list(pair) for pair in self.headers.items()]
        return plan


class Feeder(Table):
    """A file with rows of values, and the order in which users receive the rows."""

    format: Literal["csv", "json_lines"]
    file: str
    mode: Literal["sequential", "random", "shuffled"] = "sequential"
    at_end: Literal["wrap", "stop"] = "wrap"


class Csv(Feeder):
    """A file of comma-separated values. The first line names the columns."""

    def __init__(self, file: str, **order: Any) -> None:
        super().__init__(format="csv", file=file, **order)


class JsonLines(Feeder):
    """A file with one JSON value per line."""

    def __init__(self, file: str, **order: Any) -> None:
        super().__init__(format="json_lines", file=file, **order)


class Scenario(Table):
    """The requests of users. A user repeats all `steps` in order, or chooses each request from `requests` by weight."""

    steps: list[Step] = Field(default_factory=list)
    requests: list[Step] = Field(default_factory=list)
    feeders: dict[str, Feeder] = Field(default_factory=dict)
    cookies: Literal["user", "round", "off"] = "user"
    on_failure: Literal["continue", "leave"] = "continue"
    """What a user does after a failed request: `continue` or `leave`."""
    capture_bytes: int = Field(default=DEFAULT_CAPTURE_BYTES, ge=1)

    @model_validator(mode="after")
    def _is_one(self) -> "Scenario":
        if bool(self.steps) == bool(self.requests):
            raise ValueError("expected either steps or requests, with at least one entry")
        return self

    def to_plan(self, folder: Path | None = None) -> dict[str, Any]:
        """Returns the plan's key `scenario`. `folder` contains the feeder files. Default: the current folder."""
        plan = self.model_dump(exclude={"steps", "requests"})
        for feeder in plan["feeders"].values():
            feeder["file"] = str((folder or Path.cwd()).resolve() / feeder["file"])
        key = "steps" if self.steps else "requests"
        plan[key] = [step.to_plan() for step in self.steps or self.requests]
        return plan


def read_scenario(path: Path) -> dict[str, Any]:
    """Reads a scenario from a TOML file. For result and errors, see `parse_scenario`."""
    return parse_scenario(read_toml(path, what="a scenario"), path)


def parse_scenario(content: dict[str, Any], path: Path, *, below: str = "") -> dict[str, Any]:
    """Returns the key `scenario` of the engine's plan. `content`: a table of the TOML file `path`. Feeder files are
    relative to the folder of `path`. Messages show `below` before each key. Raises UsageError if the scenario is not
    valid, a feeder's file does not exist, or an environment variable of `{{env NAME}}` is missing."""
    plan = validate(Scenario, content, path=path, below=below).to_plan(path.parent)
    for name, feeder in plan["feeders"].items():
        if not Path(feeder["file"]).is_file():
            raise UsageError(f"{path}: {below}feeders.{name}.file: found {feeder['file']}, expected a file that exists")
    fill_environment(plan, str(path))
    return plan
