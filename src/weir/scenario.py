"""A scenario: what users do, as weighted requests or ordered steps. In Python or TOML; both become the plan's `scenario`.

Example:
    >>> login = Step("POST", "/login", body="{{csv users.name}}", extract={"token": JsonPointer("/token")})
    >>> user = Step("GET", "/user/{{int 1 100}}", headers={"Authorization": "{{token}}"}, check=Check(status=[200], json={"/id": 1}))
    >>> shop = Scenario(steps=[login, user], feeders={"users": Csv("users.csv", mode="shuffled")})
    >>> shop.to_plan()["steps"][0]["extract"]
    {'token': {'json': '/token'}}
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from weir.model.errors import UsageError
from weir.model.template import pieces
from weir.toml_file import Table, read_toml, validate

DEFAULT_CAPTURE_BYTES = 64 * 1024
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


class Extract(Table):
    """Where in an answer a value is: one of a JSON pointer, a header and a regular expression."""

    json_: str | None = Field(default=None, alias="json")
    header: str | None = None
    regex: str | None = None

    @model_validator(mode="after")
    def _is_one(self) -> "Extract":
        if [self.json_, self.header, self.regex].count(None) != 2:
            raise ValueError("expected one of json, header and regex")
        return self


class JsonPointer(Extract):
    """The value at a JSON pointer (RFC 6901) of the body."""

    def __init__(self, pointer: str) -> None:
        super().__init__(json=pointer)


class Header(Extract):
    """The first header of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(header=name)


class Regex(Extract):
    """The first group of a regular expression on the body, or all of its match."""

    def __init__(self, pattern: str) -> None:
        super().__init__(regex=pattern)


class Check(Table):
    """What a right answer is. Every key that is given must hold; without a status, every status below 400 is right."""

    status: list[int] | None = None
    body_equals: str | None = None
    body_contains: str | None = None
    body_matches: list[str] = Field(default_factory=list)
    """Regular expressions, each of which is found in the body."""
    body_lacks: list[str] = Field(default_factory=list)
    """Regular expressions, none of which is found in the body."""
    json_: dict[str, Any] | None = Field(default=None, alias="json")
    """JSON pointers, and the values that must be there."""
    max_body_bytes: int | None = Field(default=None, ge=0)


class Pause(Table):
    """How long a user pauses: always as long, between two lengths, or exponential with a mean."""

    constant_s: float | None = Field(default=None, ge=0)
    uniform_s: list[float] | None = Field(default=None, min_length=2, max_length=2)
    exponential_s: float | None = Field(default=None, ge=0)


class Step(Table):
    """One request: `Step("GET", "/path")`, or with names."""

    name: str | None = None
    weight: int | None = Field(default=None, ge=1)
    """How often it is chosen; only among `requests`."""
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
        """The plan's form of this step."""
        plan = self.model_dump(by_alias=True, exclude_none=True, exclude={"check"})
        if self.check.json_ is not None:
            plan["check"] = {"json": self.check.json_}
        plan["check"] = plan.get("check", {}) | self.check.model_dump(exclude_defaults=True, exclude={"json_"})
        plan["headers"] = [list(pair) for pair in self.headers.items()]
        return plan


class Feeder(Table):
    """A file of rows, and the order in which they are given out."""

    format: Literal["csv", "json_lines"]
    file: str
    mode: Literal["sequential", "random", "shuffled"] = "sequential"
    at_end: Literal["wrap", "stop"] = "wrap"


class Csv(Feeder):
    """Comma-separated values; the first line names the columns."""

    def __init__(self, file: str, **order: Any) -> None:
        super().__init__(format="csv", file=file, **order)


class JsonLines(Feeder):
    """A JSON value a line."""

    def __init__(self, file: str, **order: Any) -> None:
        super().__init__(format="json_lines", file=file, **order)


class Scenario(Table):
    """Exactly one of `steps` (in order, over and over) and `requests` (one each time, by weight), and what they need."""

    steps: list[Step] = Field(default_factory=list)
    requests: list[Step] = Field(default_factory=list)
    feeders: dict[str, Feeder] = Field(default_factory=dict)
    cookies: Literal["user", "round", "off"] = "user"
    on_failure: Literal["continue", "leave"] = "continue"
    """Whether a user whose request has failed goes on, or leaves as after its last one."""
    capture_bytes: int = Field(default=DEFAULT_CAPTURE_BYTES, ge=1)

    @model_validator(mode="after")
    def _is_one(self) -> "Scenario":
        if bool(self.steps) == bool(self.requests):
            raise ValueError("expected either steps or requests, at least one of them")
        return self

    def to_plan(self, folder: Path | None = None) -> dict[str, Any]:
        """The plan's value of `scenario`.

        Args:
            folder: what the files of feeders are relative to; the current folder unless given.
        """
        plan = self.model_dump(exclude={"steps", "requests"})
        for feeder in plan["feeders"].values():
            feeder["file"] = str((folder or Path.cwd()).resolve() / feeder["file"])
        key = "steps" if self.steps else "requests"
        plan[key] = [step.to_plan() for step in self.steps or self.requests]
        return plan


def read_scenario(path: Path) -> dict[str, Any]:
    """The plan's `scenario` from a TOML file; files of feeders are relative to its folder.

    Raises:
        UsageError: the file is not valid, or a feeder's file is not there.
    """
    return scenario_plan(read_toml(path, what="a scenario"), path)


def scenario_plan(content: dict[str, Any], path: Path, *, below: str = "") -> dict[str, Any]:
    """The plan's `scenario` from what stands in a TOML file.

    Args:
        content: the scenario's table.
        path: the file: messages name it, and files of feeders are relative to its folder.
        below: what stands before the scenario's keys in that file.

    Raises:
        UsageError: the scenario is not valid, or a feeder's file is not there.
    """
    plan = validate(Scenario, content, path=path, below=below).to_plan(path.parent)
    for name, feeder in plan["feeders"].items():
        if not Path(feeder["file"]).is_file():
            raise UsageError(f"{path}: {below}feeders.{name}.file: found {feeder['file']}, expected a file")
    return plan
