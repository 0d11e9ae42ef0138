"""The service `delay`, a slow upstream server: settings and command. This module starts no process. `weir-engine serve
times` runs the server on one thread, for any number of waiting requests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from weir.model.load import ExponentialThink
from weir.parsing import parse_think_time
from weir.services.settings import parse_settings
from weir.toml_file import Table


class DelaySettings(Table):
    """Settings of `delay` in a manifest or a study, where all values are text."""

    delay: str
    """Duration of a request: `2s`, `uniform:1s..3s` or `exp:2s`."""
    servers: int | None = Field(default=None, strict=False, ge=1)
    """Maximum number of requests in service at the same time. Other requests wait in order. None: no limit."""
    fault: Literal["status-500", "close", "reset", "silent", "garbage", "half"] | None = None
    """Fault that replaces the response, after the delay."""
    fault_share: float | None = Field(default=None, strict=False, gt=0, le=1)
    """Share of requests with the fault. None: all requests."""
    seed: int = Field(default=1, strict=False, ge=0)
    """Random seed."""

    @field_validator("delay")
    @classmethod
    def _is_a_time(cls, text: str) -> str:
        parse_think_time(text)
        return text

    @model_validator(mode="after")
    def _a_share_is_one_of_a_fault(self) -> "DelaySettings":
        if self.fault_share is not None and self.fault is None:
            raise ValueError("fault_share: found without 'fault', expected both")
        return self

    @property
    def distribution(self) -> str:
        """The setting `delay` in the engine's syntax."""
        time = parse_think_time(self.delay)
        if isinstance(time, ExponentialThink):
            return f"exponential:{time.mean_s}s"
        if time.shortest_s < time.longest_s:
            return f"uniform:{time.shortest_s}s..{time.longest_s}s"
        return f"constant:{time.shortest_s}s"


def build_delay_command(engine: Path, address: str, port: int, settings: Mapping[str, str]) -> list[str]:
    """Returns the command that starts the upstream server."""
    asked = parse_settings(DelaySettings, settings)
    listen = f"--listen={address}:{port}"
    command = [str(engine), "serve", "times", listen, f"--distribution={asked.distribution}", f"--seed={asked.seed}"]
    if asked.servers is not None:
        command.append(f"--servers={asked.servers}")
    if asked.fault is not None:
        command += [f"--fault={asked.fault}", f"--fault-share={asked.fault_share or 1:f}"]
    return command
