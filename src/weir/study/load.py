"""Defines the table `[load]` of a study file. The keys of `[load]` are settings of `LoadSpec` that a study may set."""

import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, create_model

from weir.load_spec import MAX_PIPELINE, SETTINGS, LoadSpec
from weir.model.load import Arrivals, Profile
from weir.parsing import parse_count, parse_duration, parse_pem_path, parse_think_time
from weir.services.dataset import render
from weir.toml_file import Table

_TABLE = "load."
_DEFAULTS: Mapping[str, Any] = {"duration_s": ..., "timeout_s": 20}
"""Defaults that differ from those of `weir load`. The reference lists these keys first."""


class _LoadTable(Table):
    """Load of each trial. Connections, users and rates are in `[matrix]`."""

    script: str | None = Field(
        None,
        description="Script for the generators jmeter, k6 or locust (`matrix.generators`), and arguments of the "
        "tool. The load ends with the script, at the latest after `duration_s`. Example: 'plan.jmx -Jloops=50'.",
    )

    def to_spec(
        self, amount: Mapping[str, Profile | int] | None = None, scenario: dict[str, Any] | None = None
    ) -> LoadSpec:
        """Returns the load of a cell. `amount` is an item of `Matrix.amounts`; `scenario` is a parsed scenario."""
        values = {name: getattr(self, name) for name in type(self).model_fields if name != "script"} | dict(
            amount or {}
        )
        if values["think"] is not None:
            values["think"] = parse_think_time(values["think"])
        file = self.scenario_source if isinstance(self.scenario_source, str) else None
        return LoadSpec(**values | {"scenario": scenario, "scenario_file": file})

    @property
    def scenario_source(self) -> str | dict[str, Any] | None:
        """Value of `scenario` in the study file: a file name, a table, or None."""
        source: str | dict[str, Any] | None = self.__dict__["scenario"]
        return source


def write_load_table(spec: LoadSpec) -> dict[str, Any]:
    """Returns the table `[load]` for a load, without the scenario and without keys that have default values."""
    table: dict[str, Any] = {}
    for name, one in LoadTable.model_fields.items():
        value = getattr(spec, name, None)
        if name != "scenario" and value is not None and value != one.default:
            is_pause = SETTINGS[name].read is parse_think_time
            table[name] = SETTINGS[name].write(value) if is_pause else drop_decimal_point(value)
    return table


def list_request_obstacles(spec: LoadSpec) -> Iterator[str]:
    """Yields each reason why a study file cannot express the request of a load."""
    names = [name.lower() for name, _ in spec.headers]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield f"headers: found {twice[0]!r} twice, expected every header once in a study"
    for what, text in (("URL", spec.urls[0].encode()), ("body", spec.body or b"")):
        try:
            is_plain = render(text.decode(), random.Random(0)).encode() == text
        except ValueError:
            is_plain = False
        if not is_plain:
            yield f"{what}: found {text[:40]!r}, expected text without {{{{ in a study"


def drop_decimal_point(value: Any) -> Any:
    """Returns an int if the value is a float without a fraction, otherwise the unchanged value."""
    return int(value) if isinstance(value, float) and value == int(value) else value


def _check_pause(text: str) -> str:
    parse_think_time(text)
    return text


_TYPES_BY_NAME: Mapping[str, Any] = {
    "scenario": str | dict[str, Any],
    "arrivals": Arrivals,
    "pipeline": Annotated[int, Field(ge=1, le=MAX_PIPELINE)],
}
_TYPES_BY_READER: Mapping[Any, Any] = {
    parse_count: Annotated[int, Field(ge=1)],
    parse_duration: Annotated[float, Field(gt=0)],
    parse_think_time: Annotated[str, AfterValidator(_check_pause)],
    parse_pem_path: str,
    str: str,
}
"""A dict from a setting's parser to the type of the setting's key. A flag without a value is a `bool`."""


def _build_fields() -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for name in sorted(SETTINGS, key=lambda name: name not in _DEFAULTS):
        setting = SETTINGS[name]
        if setting.key.startswith(_TABLE):
            type_ = _TYPES_BY_NAME.get(name) or (_TYPES_BY_READER[setting.read] if setting.metavar else bool)
            default = _DEFAULTS.get(name, getattr(LoadSpec(), name))
            help_ = setting.key_help or setting.help
            keys[name] = (type_ | None if default is None else type_, Field(default, description=help_))
    return keys


if TYPE_CHECKING:
    LoadTable = _LoadTable
else:
    LoadTable = create_model("LoadTable", __base__=_LoadTable, __doc__=_LoadTable.__doc__, **_build_fields())
