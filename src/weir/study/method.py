"""`[method]` of a study file: how often, in which order, against what, and what counts."""

from typing import Literal

from pydantic import Field, model_validator

from weir.toml_file import Table

Failures = Literal["reject", "measure"]
Invariant = Literal["reject", "report"]
MainMetric = Literal["throughput_rps", "response_time_us.p50", "response_time_us.p99", "cpu_us_per_request", "pss_bytes", "ready_s"]
"""Metrics of findings whose ratio a run can be stopped on."""


class Method(Table):
    """How often, in which order, against what, and what counts."""

    blocks: int = Field(ge=1)
    """How many blocks: every cell once in each, in random order. With `width` at least so many."""
    most_blocks: int | None = Field(default=None, ge=1)
    """With `width`: where the run ends even if an interval is still wider."""
    width: float | None = Field(default=None, gt=0, lt=1)
    """Go on after `blocks` until the interval of every main comparison's ratio is at most this to either side, as a share: 0.05 is ±5 %."""
    width_of: MainMetric = "throughput_rps"
    """The metric whose ratio to the baseline `width` is about. In a study of fixed rates throughput says nothing: take another."""
    budget_s: float | None = Field(default=None, gt=0)
    """The most time for trials: the run ends before a block that would take longer, whatever else is asked.
    Building and checking stacks is not counted; an interrupted run that goes on has what is left."""
    seed: int = 1
    """Draws the order of cells in every block, and the inputs of checks."""
    baseline: str
    """The stack that the others are compared with."""
    aa: str | None = None
    """The stack that runs twice in every block."""
    prime_s: float = Field(default=2, ge=0)
    """The same load before the measured one, whose figures nobody keeps. It ends with its last answer, `load.timeout_s` later at most.
    Meanwhile the compilers of a stack's JVMs go before its other threads, where weir runs as root, so that they are through sooner."""
    pause_s: float = Field(default=1, ge=0)
    """Quiet between the two."""
    extension_s: float | None = Field(default=None, ge=0)
    """How much longer the load goes on, without a pause, where it shows no steady state by its end: once more `load.duration_s` if not
    given, 0 for never. It is looked for in loads that are constant, from the end of their ramp on, for at least 30 intervals (3 s, or
    30 s in loads of more than a minute)."""
    retries: int = Field(default=2, ge=0)
    """How often a rejected trial is tried again, in a later block."""
    refine: bool = False
    """After the last block, measure further points where a stack and the baseline change sides on throughput: each halves the gap in which
    they do, until the crossing is known within 10 %, cannot be told more closely, or `most_points` are used up. Of connections, users and
    rates."""
    most_points: int = Field(default=6, ge=1)
    """With `refine`: the most further points in all."""
    failures: Failures = "reject"
    """What a failed request makes of its trial: `reject` leaves it out of the averages and tries it again; with `measure`, in a study of
    overload, failures are a result: the trial counts, its throughput is that of right answers, and the share of failures is shown."""
    tap: bool = False
    """Listen in on the stack's port while it is loaded, and keep what the kernel's timestamps say of the requests: response times without
    the generator's own queueing, for every generator alike. About eight connections are listened to, on control's CPUs; it takes root, and
    a stack on loopback."""
    invariant: Invariant = "reject"
    """The same for a workload's invariant that does not hold in the database after the load: `reject`, or `report` and count the trial."""

    @model_validator(mode="after")
    def _rules_for_stopping_go_together(self) -> "Method":
        if self.most_blocks is not None and self.width is None:
            raise ValueError("most_blocks: expected width beside it, such as width = 0.05: without it a run has just `blocks`")
        if self.most_blocks is not None and self.most_blocks < self.blocks:
            raise ValueError(f"most_blocks: found {self.most_blocks}, expected at least blocks = {self.blocks}")
        if self.refine and self.width is not None:
            raise ValueError("refine: found beside width, expected one of them: further points have as many blocks as the others")
        if self.width is not None and self.most_blocks is None and self.budget_s is None:
            raise ValueError("width: expected most_blocks or budget_s beside it: a noisy machine may never get there; budget_s = 1200")
        return self

    @property
    def last_block(self) -> int | None:
        """The block after which a run ends in any case; None where only width and budget end it."""
        return self.blocks if self.width is None else self.most_blocks
