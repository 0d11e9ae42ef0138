"""Reads text, JSON and YAML files of other tools. Raises UsageError for a file that cannot be read."""

import json
import re
import urllib.request
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import ConfigDict

from weir.model.errors import UsageError
from weir.toml_file import Table

_LARGEST = 512 << 20
_TIMEOUT_S = 30.0


class LooseTable(Table):
    """Base class of tables in other tools' files. Accepts unknown keys, and numbers in place of texts."""

    model_config = ConfigDict(extra="ignore", strict=False, coerce_numbers_to_str=True)


def read_text(path: Path, what: str) -> str:
    """Returns the text of a file in UTF-8, with or without a byte order mark. `what`: the kind of file."""
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path}: found {path.stat().st_size:,} bytes, expected {what} of at most {_LARGEST:,}")
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; expected {what}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: found bytes that are no UTF-8, expected {what}") from None


def read_json(path: Path, what: str) -> dict[str, Any]:
    """Returns the object in a JSON file."""
    try:
        content = json.loads(read_text(path, what))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: found no JSON ({error}), expected {what}") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path}: found no JSON object, expected {what}")
    return content


def read_document(source: str, what: str) -> dict[str, Any]:
    """Returns the object in a JSON or YAML file, or behind a URL."""
    text = _fetch(source, what) if is_url(source) else read_text(Path(source), what)
    try:
        try:
            content = json.loads(text)
        except ValueError:
            content = yaml.load(text, _YamlLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        found = " ".join(str(error).split())
        raise UsageError(f"{source}: found neither JSON nor YAML ({found}), expected {what}") from None
    if not isinstance(content, dict):
        raise UsageError(f"{source}: found no object, expected {what}")
    return content


def is_url(source: str) -> bool:
    """Returns whether the source of a document is a URL instead of a file."""
    return source.lower().startswith(("http://", "https://"))


def _fetch(url: str, what: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:
            content: bytes = response.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{url}: cannot be fetched: {error}; expected {what}") from None
    if len(content) > _LARGEST:
        raise UsageError(f"{url}: found more than {_LARGEST:,} bytes, expected {what}")
    return content.decode("utf-8-sig", "replace")


class _YamlLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads YAML 1.2, which OpenAPI requires: `NO`, `12:30` and `2026-01-01` are texts."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"0|[-+]?[1-9][0-9]*", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
):
    _YamlLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)
