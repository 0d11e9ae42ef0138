"""`[cpus]` of a study file: what each role may use, and how much of it each tier."""

import re
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from weir.toml_file import Table

Wish = int | list[int] | Literal["auto"]
"""How many CPUs, which, or as many as there are for it."""
_UNITS_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_LEAST_TIME_MS = 1.0
"""What the kernel takes as a quota of a period, at least."""
_LEAST_MEMORY_BYTES = 2**20


class Cpus(Table):
    """CPUs of each role, and the most that a tier may use of them and of memory."""

    load: Wish = "auto"
    """Of the generator, a thread on each."""
    stack: Wish = "auto"
    """Of the stack, all its processes together."""
    services: Wish | Literal["stack", "load"] = "auto"
    """`stack`, `load`: on the same CPUs as these. `auto`: on CPUs of their own where there are enough, else on the stack's."""
    control: Wish = "auto"
    """Of weir itself: lab, host and observer, at nice 19."""
    quota: dict[str, float] = Field(default_factory=dict)
    """CPUs' worth of time that each process of a tier, with all below it, gets at most: `{ app = 0.5, postgres = 0.3 }`."""
    quota_period_ms: float = Field(default=100, ge=1, le=1000)
    """How often a quota is renewed. 100 ms is what container runtimes take."""
    memory: dict[str, str] = Field(default_factory=dict)
    """Memory that each process of a tier, with all below it, gets at most: `{ app = "512 MB" }`. Nothing of it is swapped out."""

    @field_validator("load", "stack", "services", "control", mode="before")
    @classmethod
    def _is_a_wish(cls, value: object, info: ValidationInfo) -> object:
        words = ("auto", "stack", "load") if info.field_name == "services" else ("auto",)
        match value:
            case str() | bool():
                fits = value in words
            case int():
                fits = value >= 1
            case list():
                fits = bool(value) and all(type(cpu) is int and cpu >= 0 for cpu in value) and len(set(value)) == len(value)
            case _:
                fits = False
        if not fits:
            raise ValueError(f"expected {', '.join(map(repr, words))}, a number of CPUs from 1 on, or a list of CPUs, each once")
        return value

    @model_validator(mode="after")
    def _quotas_can_be_kept(self) -> "Cpus":
        least = _LEAST_TIME_MS / self.quota_period_ms
        for tier, cpus in self.quota.items():
            if not least <= cpus <= 10_000:
                raise ValueError(f"quota.{tier}: found {cpus:g}, expected CPUs' worth of time from {least:g} on, which is 1 ms in a period")
        return self

    @field_validator("memory")
    @classmethod
    def _sizes_can_be_read(cls, memory: dict[str, str]) -> dict[str, str]:
        for tier, size in memory.items():
            if size_bytes(size) < _LEAST_MEMORY_BYTES:
                raise ValueError(f"{tier}: expected 1 MiB or more")
        return memory


def size_bytes(text: str) -> int:
    """Bytes in `512 MB` (millions), `512 MiB` (of 1,048,576) and the like.

    >>> size_bytes("512 MB"), size_bytes("0.5GiB")
    (512000000, 536870912)

    Raises:
        ValueError: it is no size.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-zA-Z]+)", text)
    if match is None or match.group(2) not in _UNITS_BYTES:
        raise ValueError(f"found {text!r}, expected a size such as '512 MB'; units: {', '.join(_UNITS_BYTES)}")
    return round(float(match.group(1)) * _UNITS_BYTES[match.group(2)])
