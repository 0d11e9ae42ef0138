"""Builds HTML pages from templates, charts' data, script and style. A run file may contain harmful text, because other
people write names, error texts and studies. So templates escape every text, the charts' JSON contains no tags, and the
page's policy allows only weir's own script."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from weir.findings.formatting import milliseconds, significant, trial_numbers
from weir.findings.metrics import BY_KEY
from weir.model.errors import WeirError
from weir.paths import find_cache_folder
from weir.report import load_tables, number_format, sentences
from weir.report.number_format import display, interval_text, value_text
from weir.web_assets import hash_for_policy, load_web_assets

_INTERVAL = re.compile(r"\([\d.,]+–[\d.,]+\)")


def write_page(page: str, path: Path) -> None:
    """Writes a page to `path`, completely or not at all. Raises WeirError if the file cannot be written."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(page, encoding="utf-8", errors="replace", newline="\n")
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        problem = f"{path}: cannot write the report: {error.strerror}"
        raise WeirError(problem, hint="check the folder's permissions and the space left on the disk") from error


def render_page(template: str, data: str, **values: Any) -> str:
    """Returns the page of a template. `data`: the charts' data as JSON. `values`: the template's variables. Raises
    WeirError if the web bundle is missing."""
    bundle = load_web_assets()
    # The page's policy allows script and style by their hashes. The page must contain exactly the hashed bytes.
    return get_template(template).render(
        **values,
        script=Markup(bundle.script),
        style=Markup(bundle.style),
        script_hash=hash_for_policy(bundle.script),
        style_hash=hash_for_policy(bundle.style),
        data=Markup(data),
    )


def get_template(name: str) -> Template:
    """Returns a template. Two caches keep compiled templates, because compilation is slow: in this process and on disk."""
    return _environment().get_template(name)


def read_fields(record: Any) -> dict[str, Any]:
    """Returns the fields of a dataclass as a dict. Unlike `asdict`, this function does not copy the charts' numbers."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def embed_json(data: Any) -> str:
    """Returns `data` (also dataclasses) as JSON that is safe inside a script element: escapes `<`, `>` and `&`."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, default=read_fields)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def flatten(values: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Returns (name, text) for each value in a nested mapping. The name joins the keys with dots."""
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            rows += flatten(value, f"{name}.")
        elif isinstance(value, list | tuple):
            rows.append((name, ", ".join(str(item) for item in value) or "–"))
        elif isinstance(value, int) and not isinstance(value, bool):
            rows.append((name, f"{value:,}"))
        else:
            rows.append((name, "–" if value is None else str(value)))
    return rows


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=_Unindented("weir.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=open_bytecode_cache(),
    )
    environment.filters.update(
        value=value_text, interval=interval_text, when=_when, flatten=flatten, heading=_heading, whole=_whole
    )
    environment.globals.update(
        display=display,
        metrics=BY_KEY,
        milliseconds=milliseconds,
        load_tables=load_tables,
        sentences=sentences,
        significant=significant,
        trial_numbers=trial_numbers,
        found_text=number_format.found_text,
        size_text=number_format.size_text,
        size_ratio_text=number_format.size_ratio_text,
        table_metrics=[(BY_KEY[metric], display(metric)) for metric in number_format.TABLE_METRICS],
    )
    return environment


def open_bytecode_cache() -> FileSystemBytecodeCache | None:
    """Returns the cache of compiled templates in weir's cache folder. None if weir may not write there."""
    folder = find_cache_folder() / "templates"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return FileSystemBytecodeCache(str(folder)) if os.access(folder, os.W_OK) else None


class _Unindented(PackageLoader):
    """A template loader that removes indentation, which is a tenth of a page with many points."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool] | None]:
        source, filename, is_current = super().get_source(environment, template)
        return "\n".join(line.lstrip() for line in source.split("\n")), filename, is_current


def _when(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _whole(sentence: str) -> Markup:
    """Returns a sentence as HTML. Browsers do not break a line inside an interval of this sentence."""
    return Markup(_INTERVAL.sub(r'<span class="whole">\g<0></span>', str(escape(sentence))))


def _heading(title: str) -> str:
    """Returns a metric's title with a capital letter, for a heading. A title such as 'p99' stays unchanged."""
    return title if title[:1] == "p" and title[1:2].isdigit() else title[:1].upper() + title[1:]
