"""`[load]` of a study file: how each trial is loaded. The settings, their words and their rules are those of `weir load`."""

from typing import Any

from pydantic import Field, field_validator

from weir.asked_load import AskedLoad, Names, load_of, pipelining
from weir.load_values import think_time
from weir.model.errors import UsageError
from weir.model.load import Arrivals, Load, Profile
from weir.toml_file import Table

KEYS = Names(
    connections="matrix.connections", rate="matrix.rates_rps", arrivals="load.arrivals", users="matrix.users", ramp="load.ramp_s",
    loops="load.loops", think="load.think", pace="load.pace_s", pipeline="load.pipeline", no_keep_alive="load.keep_alive = false",
    scenario="load.scenario", hint="docs/reference/study.md has every key",
)  # fmt: skip


class LoadTable(Table):
    """How each trial is loaded. What is crossed (connections, users, rates) stands in `[matrix]`."""

    duration_s: float = Field(gt=0)
    """How long a trial is measured; the longest, where something else ends it."""
    timeout_s: float = Field(default=20, gt=0)
    """How long an answer may take; then the request has failed."""
    think: str | None = None
    """Pause of a user between an answer and the next request: `"1s"`, `"uniform:1s..3s"` or `"exp:2s"`."""
    ramp_s: float | None = Field(default=None, gt=0)
    """With `matrix.users`: they come one by one over this time."""
    loops: int | None = Field(default=None, ge=1)
    """Requests of each user, who leaves then; with `matrix.rates_rps` each arrival is a session of so many."""
    pace_s: float | None = Field(default=None, gt=0)
    """A user starts a request at most once in this time."""
    arrivals: Arrivals = "constant"
    """With `matrix.rates_rps`: arrivals at even distances, or independent of one another (`poisson`)."""
    requests: int | None = Field(default=None, ge=1)
    """A trial ends when so many requests were answered or have failed."""
    keep_alive: bool = True
    """Whether a connection carries one request after the other, or each request makes its own."""
    pipeline: int = Field(default=1, ge=1, le=1024)
    """How many requests a connection carries unanswered."""
    until_first_failure: bool = False
    """The first request that fails ends the trial."""
    scenario: str | dict[str, Any] | None = None
    """What users do, instead of the workload's one request (docs/guides/scenarios.md): a scenario file, relative to the study, or what
    stands in such a file as a table, `[[load.scenario.steps]]`."""
    kernel_timestamps: bool = False
    """An answer came when the kernel received it, not when the generator read it."""

    @field_validator("think")
    @classmethod
    def _is_a_pause(cls, text: str | None) -> str | None:
        if text is not None:
            try:
                think_time(text, "think")
            except UsageError as error:
                raise ValueError(error.message.partition(", ")[2]) from None
        return text

    def of(self, amount: dict[str, Profile | int]) -> Load:
        """The load of an amount of `Matrix.amounts`.

        Raises:
            UsageError: keys contradict each other.
        """
        connections = amount.get("connections")
        asked = AskedLoad(
            connections=connections if isinstance(connections, int) else None,
            rate_rps=amount.get("rates_rps"),
            arrivals=self.arrivals,
            users=amount.get("users"),
            ramp_s=self.ramp_s,
            loops=self.loops,
            think=None if self.think is None else think_time(self.think),
            pace_s=self.pace_s,
        )
        load = load_of(asked, KEYS)
        pipelining(self.pipeline, load, KEYS, keep_alive=self.keep_alive, has_scenario=self.scenario is not None)
        return load

    @property
    def ends_by_itself(self) -> bool:
        """Whether something other than the time may end a trial."""
        return self.requests is not None or self.loops is not None or self.until_first_failure
