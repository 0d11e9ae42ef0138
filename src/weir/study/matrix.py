"""`[matrix]` of a study file: what is crossed with what."""

from itertools import product

from pydantic import Field, field_validator, model_validator

from weir.asked_load import CONNECTIONS
from weir.generators.tools import GENERATORS
from weir.model.load import Profile
from weir.model.run import WEIR
from weir.study.numbers import Counts, Levels
from weir.toml_file import Table

DEFAULT_VARIANT = "default"
"""Among `variants`: the stack as its manifest has it."""


class Matrix(Table):
    """What is crossed with what: every combination is a cell."""

    stacks: list[str] = Field(min_length=1)
    """Stacks, as `ID` or `ID[VARIANT]`, and names of external ones."""
    variants: list[str] = Field(default_factory=list)
    """Variants to run each stack in that has them; `default` is the stack without one. A stack that has none of them runs as it is."""
    workloads: list[str] = Field(min_length=1)
    """What is asked: names of workloads that every stack serves."""
    connections: Counts | None = None
    """Closed load: so many connections, each asking again when it was answered. Beside `rates_rps`: the most connections it may
    use (64)."""
    users: Levels | None = None
    """Closed load: a population of users, each with a connection; numbers, or profiles over time such as `"0s:0,30s:500"`. They think where
    `load.think` says so."""
    rates_rps: Levels | None = None
    """Open load: arrivals per second that wait for nobody; numbers, or profiles over time."""
    generators: list[str] = Field(
        default=[WEIR], min_length=1, json_schema_extra={"items": {"type": "string", "enum": list(GENERATORS)}, "uniqueItems": True}
    )
    """What produces the load: `weir`, its own engine, and other tools, which weir places, runs, watches and audits; each can make some
    loads only (docs/guides/generators.md). Stacks are compared within one generator, generators on the same stack."""
    replicas: Counts = Field(default=[1])
    """Processes of the stack, each on a port of its own; the load's connections are spread over them."""
    limits: dict[str, Counts] = Field(default_factory=dict)
    """Settings of stacks, by the names that their manifests give them under `[limits]`: `threads = [50, 200]`. A stack without the setting
    runs as it is and stands beside each of its values."""
    services: dict[str, list[str]] = Field(default_factory=dict)
    """Settings of services, as `SERVICE.SETTING`: `services."delay.delay" = ["50ms", "2s"]`. A stack that needs no such service runs as
    it is and stands beside each of its values."""
    cpus: Counts | None = None
    """Numbers of CPUs of the stack. Not given: those of `[cpus]`."""

    @field_validator("generators")
    @classmethod
    def _are_generators(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in GENERATORS:
                raise ValueError(f"expected names among {', '.join(GENERATORS)}, not {name!r}")
        return names

    @model_validator(mode="after")
    def _values_make_sense(self) -> "Matrix":
        each_once = {"stacks": self.stacks, "variants": self.variants, "workloads": self.workloads, "generators": self.generators}
        for name, names in each_once.items():
            if len(set(names)) != len(names):
                raise ValueError(f"{name}: expected every name once")
        for name, values in self.services.items():
            if not values or len(set(values)) != len(values):
                raise ValueError(f"services.{name}: expected values, every one once")
        if self.users is not None:
            for name, other in (("connections", self.connections), ("rates_rps", self.rates_rps)):
                if other is not None:
                    raise ValueError(f"users: found beside {name}, expected one of them")
        elif self.connections is None and self.rates_rps is None:
            raise ValueError("expected one of connections, users and rates_rps: how much load there is")
        return self

    def amounts(self) -> list[dict[str, Profile | int]]:
        """Every amount of load, by the keys above: `{"connections": 50, "rates_rps": 100.0}`."""
        if self.users is not None:
            return [{"users": users} for users in self.users]
        if self.rates_rps is not None:
            return [{"connections": n, "rates_rps": rate} for n, rate in product(self.connections or [CONNECTIONS], self.rates_rps)]
        return [{"connections": n} for n in self.connections or []]
