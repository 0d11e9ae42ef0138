"""`[[override]]` of a study file: other settings for some of the cells."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from weir.toml_file import Table

METHOD_KEYS = ("prime_s", "pause_s", "extension_s")
"""Keys of `[method]` that a trial has for itself; the others are the whole run's."""

Value = str | int | float


class Override(Table):
    """Other settings for the cells that `where` describes. Of several that describe a cell the later ones win."""

    where: dict[str, Value | list[Value]] = Field(min_length=1)
    """Which cells: `stack`, `variant`, `workload`, `connections`, `users`, `rates_rps`, `replicas`, `cpus`, `generator`, or a limit's name,
    each with a value or a list of them."""
    load: dict[str, Any] = Field(default_factory=dict)
    """Keys of `[load]`, with their values there."""
    method: dict[str, Any] = Field(default_factory=dict)
    """`prime_s`, `pause_s` and `extension_s` of `[method]`, with their values there."""

    @model_validator(mode="after")
    def _changes_something(self) -> "Override":
        if not self.load and not self.method:
            raise ValueError("expected keys under 'load' or 'method': what is different there")
        for key in self.method:
            if key not in METHOD_KEYS:
                raise ValueError(f"method.{key}: expected one of: {', '.join(METHOD_KEYS)}; the rest is the same for all trials")
        return self

    def describes(self, coordinates: Mapping[str, frozenset[Any]]) -> bool:
        """Whether a cell with these coordinates is meant."""
        return all(
            not coordinates.get(key, frozenset()).isdisjoint(wanted if isinstance(wanted, list) else [wanted])
            for key, wanted in self.where.items()
        )
