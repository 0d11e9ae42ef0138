"""Defines the table `[matrix]` of a study file: the factors. Each combination of their values is a cell."""

from itertools import product
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from weir.generators.registry import GENERATORS
from weir.load_spec import DEFAULT_CONNECTIONS
from weir.model.load import Profile
from weir.model.run_types import WEIR
from weir.parsing import MAX_NUMBERS, parse_numbers, parse_profile
from weir.toml_file import Table


def _parse_counts(value: Any) -> list[int]:
    found = _parse_list(value)
    for one in found:
        if isinstance(one, bool) or not isinstance(one, int | float) or one != int(one) or one < 1:
            raise ValueError(f"expected whole numbers of at least 1, not {one!r}")
    return [int(one) for one in _check_unique(found)]


def _parse_levels(value: Any) -> list[Profile]:
    levels: list[Profile] = []
    for one in _parse_list(value):
        if isinstance(one, str):
            one = parse_profile(one)
        elif isinstance(one, bool) or not isinstance(one, int | float) or one <= 0:
            raise ValueError(f"expected numbers above 0 or profiles such as '0s:10,30s:100', not {one!r}")
        levels.append(one if isinstance(one, tuple) else float(one))
    return _check_unique(levels)


def _parse_list(value: Any) -> list[Any]:
    if isinstance(value, str):
        if ":" in value:
            raise ValueError(f"expected a list that contains the profile: [{value!r}]")
        return list(parse_numbers(value))
    found = value if isinstance(value, list) else [value]
    if not found:
        raise ValueError("expected at least one value")
    if len(found) > MAX_NUMBERS:
        raise ValueError(f"expected at most {MAX_NUMBERS:,} numbers")
    return found


def _check_unique(found: list[Any]) -> list[Any]:
    twice = next((one for index, one in enumerate(found) if one in found[:index]), None)
    if twice is not None:
        raise ValueError(f"expected every value only once, found {twice!r} twice")
    return found


def _schema(item: dict[str, Any]) -> WithJsonSchema:
    items = {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}
    text = {"type": "string", "description": "Numbers and ranges: 4, 50..500 step 50"}
    return WithJsonSchema({"anyOf": [item, items, text]})


_PROFILE = {"type": "string", "description": "A profile: 0s:10,30s:100"}
Counts = Annotated[list[int], BeforeValidator(_parse_counts), _schema({"type": "integer", "minimum": 1})]
"""Whole numbers from 1: one number, a list, or a text with numbers and ranges. Example: `"4, 50..500 step 50"`."""
Levels = Annotated[
    list[Any],
    BeforeValidator(_parse_levels),
    _schema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _PROFILE]}),
]
"""Numbers above 0, and profiles over time. Example: `["0s:10,30s:100"]`. Each item is a `Profile`."""

DEFAULT_VARIANT = "default"
"""Name of the unchanged stack in `variants`."""


class Matrix(Table):
    """Factors of the study. Every combination of their values is a cell."""

    stacks: list[str] = Field(min_length=1)
    """Stacks, as `ID` or `ID[VARIANT]`, and names from `[external]` and `[server]`."""
    variants: list[str] = Field(default_factory=list)
    """Variants of each stack. `default`: the stack itself. A stack without any of these variants runs unchanged."""
    workloads: list[str] = Field(min_length=1)
    """Names of workloads. Every stack must serve each workload."""
    connections: Counts | None = None
    """Closed load: numbers of connections. Each connection has one request at a time. With `rate_rps`: the maximum
    number of connections. Default with `rate_rps`: 64."""
    users: Levels | None = None
    """Closed load: numbers of users, or profiles over time. Example: `"0s:0,30s:500"`. Each user has a connection.
    `load.think` sets the think time of users."""
    rate_rps: Levels | None = None
    """Open load: arrivals per second, as numbers or as profiles over time. Arrivals do not wait for responses."""
    generators: list[str] = Field(
        default=[WEIR],
        min_length=1,
        json_schema_extra={"items": {"type": "string", "enum": list(GENERATORS)}, "uniqueItems": True},
    )
    """Load generators: `weir` (weir's own engine) and other tools. Each tool supports only some loads
    (docs/guides/generators.md). weir compares stacks under the same generator, and generators on the same stack."""
    replicas: Counts = Field(default=[1])
    """Numbers of processes of the stack. Each process has its own port. All processes share the load's connections."""
    limits: dict[str, Counts] = Field(default_factory=dict)
    """Values of the stacks' settings. The keys are the names under `[limits]` in the manifests. Example: `threads =
    [50, 200]`. A stack without the setting runs once; weir compares it with other stacks at each value."""
    services: dict[str, list[str]] = Field(default_factory=dict)
    """Values of the services' settings. The keys are `SERVICE.SETTING`. Example: `services."delay.delay" = ["50ms",
    "2s"]`. A stack without the service runs once; weir compares it with other stacks at each value."""
    cpus: Counts | None = None
    """Numbers of CPUs of the stack. Default: `cpus.stack`."""

    @field_validator("generators")
    @classmethod
    def _are_generators(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in GENERATORS:
                raise ValueError(f"expected names among {', '.join(GENERATORS)}, not {name!r}")
        return names

    @model_validator(mode="after")
    def _values_make_sense(self) -> "Matrix":
        for key in ("stacks", "variants", "workloads", "generators"):
            names = getattr(self, key)
            if len(set(names)) != len(names):
                raise ValueError(f"{key}: expected every name only once")
        for name, values in self.services.items():
            if not values or len(set(values)) != len(values):
                raise ValueError(f"services.{name}: expected at least one value, and every value only once")
        if self.users is not None:
            for name, other in (("connections", self.connections), ("rate_rps", self.rate_rps)):
                if other is not None:
                    raise ValueError(f"users: found together with {name}, expected only one of the two")
        elif self.connections is None and self.rate_rps is None:
            raise ValueError("expected one of connections, users and rate_rps")
        return self

    def amounts(self) -> list[dict[str, Profile | int]]:
        """Returns keys of `[matrix]` for each load. Example of an item: `{"connections": 50, "rate_rps": 100.0}`."""
        if self.users is not None:
            return [{"users": users} for users in self.users]
        if self.rate_rps is not None:
            counts = self.connections or [DEFAULT_CONNECTIONS]
            return [{"connections": n, "rate_rps": rate} for n, rate in product(counts, self.rate_rps)]
        return [{"connections": n} for n in self.connections or []]
