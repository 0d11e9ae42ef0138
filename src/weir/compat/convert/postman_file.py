"""Reads Postman collections of version 2. The types have only the fields that weir uses."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, field_validator

from weir.compat.convert.documents import LooseTable, read_json
from weir.model.errors import UsageError
from weir.toml_file import validate

T = TypeVar("T")
Many = Annotated[list[T], BeforeValidator(lambda value: [] if value is None else value)]
"""A list. Postman may write null in its place."""


class Pair(LooseTable):
    """A variable, a header, a field of a form or a part of a query."""

    key: str | None = None
    id: str | None = None
    value: Any = None
    type: str | None = None
    src: Any = None
    disabled: bool | None = None
    enabled: bool | None = None

    @property
    def name(self) -> str:
        """The key, or the id in older collections."""
        return self.key or self.id or ""

    @property
    def is_used(self) -> bool:
        """Whether this entry is switched on."""
        return not self.disabled and self.enabled is not False


class Url(LooseTable):
    """The URL of a request, as one text and in parts."""

    raw: str | None = None
    protocol: str | None = None
    host: str | Many[str] = ""
    port: str | None = None
    path: str | Many[Any] = ""
    query: Many[Pair] = Field(default_factory=list)
    variable: Many[Pair] = Field(default_factory=list)

    def join(self) -> str:
        """Returns the URL in one text, without a query."""
        if self.raw:
            return self.raw
        host = self.host if isinstance(self.host, str) else ".".join(self.host)
        path = self.path if isinstance(self.path, str) else "/".join(map(str, self.path))
        scheme, port = (f"{self.protocol}://" if self.protocol else "", f":{self.port}" if self.port else "")
        return f"{scheme}{host}{port}/{path}" if host else ""


class GraphQl(LooseTable):
    """The body of a GraphQL request."""

    query: str | None = None
    variables: Any = None


class Body(LooseTable):
    """The body of a request in one of several modes."""

    mode: str | None = None
    disabled: bool | None = None
    raw: str | None = None
    urlencoded: Many[Pair] = Field(default_factory=list)
    formdata: Many[Pair] = Field(default_factory=list)
    graphql: GraphQl | None = None
    file: Any = None
    options: Any = None

    @property
    def language(self) -> str:
        """The language of a raw body, such as `json`."""
        found = self.options
        for key in ("raw", "language"):
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, str) else "text"


class Auth(LooseTable):
    """The authentication of a request. For the type `basic`, the settings are below the key `basic`."""

    model_config = ConfigDict(extra="allow")

    type: str = "noauth"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by name. Version 2.1 has a list of settings, version 2.0 an object."""
        found = (self.model_extra or {}).get(self.type)
        if isinstance(found, list):
            return {str(one.get("key")): one.get("value") for one in found if isinstance(one, dict)}
        return found if isinstance(found, dict) else {}


class Event(LooseTable):
    """A script, and the time at which Postman runs the script: `prerequest` or `test`."""

    listen: str | None = "test"
    script: Any = None

    @property
    def text(self) -> str:
        lines = self.script.get("exec") if isinstance(self.script, dict) else self.script
        return "\n".join(map(str, lines)) if isinstance(lines, list) else str(lines or "")


class Request(LooseTable):
    """A request of a collection."""

    method: str | None = None
    url: Url = Field(default_factory=Url)
    header: Many[Pair] = Field(default_factory=list)
    body: Body | None = None
    auth: Auth | None = None

    @field_validator("url", mode="before")
    @classmethod
    def _read_url(cls, value: Any) -> Any:
        return {"raw": value} if isinstance(value, str) else value or {}

    @field_validator("header", mode="before")
    @classmethod
    def _read_header(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        pairs = [line.partition(":") for line in value.splitlines()]
        return [{"key": key.strip(), "value": text.strip()} for key, _, text in pairs if key.strip()]


class SavedResponse(LooseTable):
    """A response that the user saved as an example."""

    code: int | None = None


class Item(LooseTable):
    """A folder or a request. The collection itself is a folder."""

    name: str | None = None
    item: "list[Item] | None" = None
    request: Request | None = None
    response: Many[SavedResponse] = Field(default_factory=list)
    event: Many[Event] = Field(default_factory=list)
    auth: Auth | None = None
    variable: Many[Pair] = Field(default_factory=list)

    @field_validator("request", mode="before")
    @classmethod
    def _read_request(cls, value: Any) -> Any:
        return {"url": value} if isinstance(value, str) else value


class _Environment(LooseTable):
    values: list[Pair]


def read_collection(path: Path) -> Item:
    """Returns a collection. Raises UsageError if the file is no collection."""
    content = read_json(path, "a Postman collection")
    content = content.get("collection", content)
    if not isinstance(content, dict) or not isinstance(content.get("item"), list):
        problem = f"{path}: found no list with the key 'item', expected a Postman collection of version 2.1"
        raise UsageError(problem, hint="export the collection from Postman again, as Collection v2.1")
    return validate(Item, content, path=path)


def read_environment(path: Path) -> list[Pair]:
    """Returns the active variables of an environment file."""
    content = read_json(path, "a Postman environment")
    if not isinstance(content.get("values"), list):
        raise UsageError(f"-e: {path}: found no list with the key 'values', expected a Postman environment")
    return [one for one in validate(_Environment, content, path=path).values if one.is_used]
