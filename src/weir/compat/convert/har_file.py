"""Reads HAR files (HTTP Archive 1.2) of Chrome, Firefox, Safari and mitmproxy. The types have only the used fields."""

import base64
import binascii
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from weir.compat.convert.documents import LooseTable, read_json
from weir.model.errors import UsageError
from weir.toml_file import validate

_MAX_ERRORS = 5


class NameValue(LooseTable):
    """A header, or a field of a form."""

    name: str
    value: str | None = None
    file_name: str | None = Field(default=None, alias="fileName")


class PostData(LooseTable):
    """The body of a request, as text or as the fields of a form."""

    mime_type: str | None = Field(default=None, alias="mimeType")
    text: str | None = None
    params: list[NameValue] | None = None


class Request(LooseTable):
    """A request. HTTP/2 adds headers such as `:authority`."""

    method: str
    url: str
    headers: list[NameValue] = Field(default_factory=list)
    post_data: PostData | None = Field(default=None, alias="postData")
    body_size: float | None = Field(default=None, alias="bodySize")


class Content(LooseTable):
    """The body of a response."""

    mime_type: str | None = Field(default=None, alias="mimeType")
    text: str | None = None
    encoding: str | None = None

    def decode(self) -> str:
        """Returns the text. Empty if the file lacks the body or the body is binary."""
        if self.text is None or self.encoding != "base64":
            return self.text or ""
        try:
            return base64.b64decode(self.text).decode()
        except (binascii.Error, UnicodeDecodeError):
            return ""


class Response(LooseTable):
    """A response. Status 0: no response came."""

    status: int = 0
    headers: list[NameValue] = Field(default_factory=list)
    content: Content = Field(default_factory=Content)

    @field_validator("status", mode="before")
    @classmethod
    def _without_null(cls, value: Any) -> Any:
        return value or 0


class Entry(LooseTable):
    """A request with its response."""

    started: datetime = Field(alias="startedDateTime")
    time_ms: float | None = Field(default=None, alias="time")
    page: str | None = Field(default=None, alias="pageref")
    request: Request
    response: Response
    cache: str | None = Field(default=None, alias="_fromCache")
    fetch_type: str | None = Field(default=None, alias="_fetchType")
    resource_type: str | None = Field(default=None, alias="_resourceType")

    @property
    def begins_s(self) -> float:
        return self.started.timestamp()

    @property
    def ends_s(self) -> float:
        return self.begins_s + max(0.0, self.time_ms or 0.0) / 1000


class _Log(LooseTable):
    entries: list[Entry]


class _File(LooseTable):
    log: _Log


def read_har(path: Path) -> list[Entry]:
    """Returns the requests of a HAR file in the order of their start. Raises UsageError if the file is no HAR file."""
    content = read_json(path, "a HAR file")
    try:
        entries = validate(_File, content, path=path).log.entries
    except UsageError as error:
        lines = error.message.splitlines()
        more = [f"and {len(lines) - _MAX_ERRORS} more problems"] if len(lines) > _MAX_ERRORS else []
        raise UsageError("\n".join([*lines[:_MAX_ERRORS], *more])) from None
    return sorted(entries, key=lambda entry: entry.begins_s)
