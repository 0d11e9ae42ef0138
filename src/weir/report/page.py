"""What the pages of weir are made of: templates that escape all that is put into them, the data of their charts, their script and style.

Everything in a run file is hostile input here: names, error texts and the study's own text come from elsewhere. The templates escape
all of it, the data for the charts is JSON in which no tag can start, and the page's policy lets nothing run but our own script.
"""

import json
import os
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from weir.bundle import load_bundle, policy_hash
from weir.model.errors import WeirError
from weir.report.numbers import interval_text, value_text

_INTERVAL = re.compile(r"\([\d.,]+–[\d.,]+\)")


def write_page(page: str, path: Path) -> None:
    """Write a page to `path`, whole or not at all.

    Raises:
        WeirError: the file cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(page, encoding="utf-8", errors="replace", newline="\n")
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise WeirError(
            f"{path}: cannot write the report: {error.strerror}", hint="check the folder's permissions and its space"
        ) from error


def render_page(template: str, data: str, **values: Any) -> str:
    """A template with the script, the stylesheet and the data of the charts in it.

    Args:
        template: the file of a whole page.
        data: of the charts, as `island` makes it.
        values: what the template asks for.

    Raises:
        WeirError: the web bundle is missing.
    """
    bundle = load_bundle()
    # The policy allows these two texts by their hash, so they must stand in the page byte by byte.
    return template_of(template).render(
        **values,
        script=Markup(bundle.script),
        style=Markup(bundle.style),
        script_hash=policy_hash(bundle.script),
        style_hash=policy_hash(bundle.style),
        data=Markup(data),
    )


def template_of(name: str) -> Template:
    """A template, compiled once: that takes as long as filling it with a thousand trials."""
    return _environment().get_template(name)


def plain(value: Any) -> Any:
    """Dataclasses as mappings, however deep; other than `asdict` it copies no lines of numbers, of which a page has thousands."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple) and value and is_dataclass(value[0]):
        return [plain(one) for one in value]
    return value


def island(data: Any) -> str:
    """`data` as JSON that may stand inside a script element: nothing in it can end the element or start a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A nested mapping as (dotted name, text) rows."""
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            rows += flat(value, f"{name}.")
        elif isinstance(value, list | tuple):
            rows.append((name, ", ".join(str(item) for item in value) or "–"))
        else:
            rows.append(
                (name, "–" if value is None else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
            )
    return rows


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=_Unindented("weir.report", "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(value=value_text, interval=interval_text, when=_when, heading=_heading, whole=_whole)
    return environment


class _Unindented(PackageLoader):
    """Templates without the spaces that lines begin with: they would be a tenth of a page with many points."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool] | None]:
        source, filename, is_current = super().get_source(environment, template)
        return "\n".join(line.lstrip() for line in source.split("\n")), filename, is_current


def _when(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _whole(sentence: str) -> Markup:
    """A sentence whose intervals do not break at the end of a line."""
    return Markup(_INTERVAL.sub(r'<span class="whole">\g<0></span>', str(escape(sentence))))


def _heading(title: str) -> str:
    """A metric's title as a heading; 'p99' stays as it is."""
    return title if title[:1] == "p" and title[1:2].isdigit() else title[:1].upper() + title[1:]
