"""The service `delay`: an upstream that answers after a while, as slow ones do. Its settings, and the command that serves it. Pure.

The waiting itself is the engine's (`weir-engine serve times`), on one thread whatever the number of requests that wait.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from weir.load_values import think_time
from weir.model.errors import UsageError
from weir.model.load import ExponentialThink
from weir.services.settings import understood
from weir.toml_file import Table


class DelaySettings(Table):
    """What a manifest or a study may set. Values are text there, as all settings of services are."""

    delay: str
    """How long a request takes: `2s`, `uniform:1s..3s` or `exp:2s`."""
    servers: int | None = Field(default=None, strict=False, ge=1)
    """So many requests are worked on at once and the others queue, first come, first served; None: however many come."""
    fault: Literal["status-500", "close", "reset", "silent", "garbage", "half"] | None = None
    """What some requests get in place of their answer, when that is due."""
    fault_share: float | None = Field(default=None, strict=False, gt=0, le=1)
    """The share of requests that get it; None: all."""
    seed: int = Field(default=1, strict=False, ge=0)
    """Decides the draws."""

    @field_validator("delay")
    @classmethod
    def _is_a_time(cls, text: str) -> str:
        try:
            think_time(text)
        except UsageError:
            raise ValueError("expected a time such as 2s, uniform:1s..3s or exp:2s") from None
        return text

    @model_validator(mode="after")
    def _a_share_is_one_of_a_fault(self) -> "DelaySettings":
        if self.fault_share is not None and self.fault is None:
            raise ValueError("fault_share: expected fault beside it")
        return self

    @property
    def distribution(self) -> str:
        """`delay` in the engine's words."""
        time = think_time(self.delay)
        if isinstance(time, ExponentialThink):
            return f"exponential:{time.mean_s}s"
        return f"uniform:{time.shortest_s}s..{time.longest_s}s" if time.shortest_s < time.longest_s else f"constant:{time.shortest_s}s"


def delay_settings(settings: Mapping[str, str]) -> DelaySettings:
    """Settings as text, understood.

    Raises:
        ValueError: one is unknown or does not fit; the message names them all.
    """
    return understood(DelaySettings, settings)


def delay_command(engine: Path, address: str, port: int, settings: Mapping[str, str]) -> list[str]:
    """The command that serves the upstream."""
    asked = delay_settings(settings)
    listen = f"--listen={address}:{port}"
    command = [str(engine), "serve", "times", listen, f"--distribution={asked.distribution}", f"--seed={asked.seed}"]
    if asked.servers is not None:
        command.append(f"--servers={asked.servers}")
    if asked.fault is not None:
        command += [f"--fault={asked.fault}", f"--fault-share={asked.fault_share or 1:f}"]
    return command
