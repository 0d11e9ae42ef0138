"""The study file's format, as TOML. What it asks for is in `study` and `cells`; starts nothing."""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from weir.model.errors import UsageError
from weir.objective import objective
from weir.study.cpus import Cpus
from weir.study.external import External
from weir.study.load import LoadTable
from weir.study.matrix import Matrix
from weir.study.method import Method
from weir.study.network import Network
from weir.study.override import Override
from weir.study.own_workload import OwnWorkload
from weir.toml_file import Table

__all__ = ["LoadTable", "Matrix", "Objective", "Published", "StudyFile"]


class Objective(Table):
    """What every trial is held against; `weir run` exits with 1 when it is missed."""

    hold: list[str] = Field(min_length=1)
    """Conditions as for `weir load --objective`: `["p99<50ms", "errors<0.1%"]` (docs/reference/objectives.md)."""

    @field_validator("hold")
    @classmethod
    def _are_objectives(cls, texts: list[str]) -> list[str]:
        for text in texts:
            try:
                objective(text)
            except UsageError as error:
                raise ValueError(error.message.removeprefix("--objective: ")) from None
        if len(set(texts)) != len(texts):
            raise ValueError("expected every condition once")
        return texts


class Published(Table):
    """A figure that the published study printed, to stand beside ours. Never a target."""

    stack: str
    """A stack of the matrix."""
    metric: str
    """A key of the JSON of one load in dotted form: `throughput_rps`, `response_time_us.p99`."""
    value: float
    """What was printed, in the metric's unit."""
    note: str = ""
    """Under which conditions."""
    where: dict[str, str | int | float] = Field(default_factory=dict)
    """The points that it stands beside: `workload`, `connections`, `rates_rps` and coordinates such as limits. Not given: all."""


class StudyFile(Table):
    """The file `studies/NAME.toml`, with one of its scales applied."""

    schema_number: Literal[1] = Field(alias="schema")
    """The version of this format: 1."""
    title: str
    """What the report is called."""
    question: str
    """What the study asks, in a sentence."""
    source: str = ""
    """Where the published figures come from."""
    claims: list[str] = Field(default_factory=list)
    """What the published study claimed, in your words."""
    matrix: Matrix
    load: LoadTable
    method: Method
    objective: Objective | None = None
    cpus: Cpus = Field(default_factory=Cpus)
    services: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Settings of the stacks' services, in place of their manifests' own: `services.delay = { delay = "2s" }`; services.md has them."""
    network: Network = Field(default_factory=Network)
    external: dict[str, External] = Field(default_factory=dict)
    """Servers that weir does not start, by the names that `matrix.stacks` calls them."""
    workload: dict[str, OwnWorkload] = Field(default_factory=dict)
    """Workloads of the study's own, by the names that `matrix.workloads` calls them."""
    override: list[Override] = Field(default_factory=list)
    published: list[Published] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_agree(self) -> "StudyFile":
        stacks = self.matrix.stacks
        for key, label in (("method.baseline", self.method.baseline), ("method.aa", self.method.aa)):
            if label is not None and label not in stacks and label.partition("[")[0] not in stacks:
                raise ValueError(f"{key}: found {label!r}, expected one of matrix.stacks: {', '.join(stacks)}")
        for name in self.external:
            if name not in stacks:
                raise ValueError(f"external.{name}: expected it among matrix.stacks, which names {', '.join(stacks)}")
        for name in self.workload:
            if name not in self.matrix.workloads:
                raise ValueError(f"workload.{name}: expected it among matrix.workloads, which names {', '.join(self.matrix.workloads)}")
        if self.method.tap and self.network.isolation != "none":
            raise ValueError("method.tap: found beside network.isolation, expected the stack on loopback: only there is listened")
        if self.load.scenario is not None and len(self.matrix.workloads) > 1:
            raise ValueError("load.scenario: found beside several matrix.workloads, expected one: users do the scenario in its place")
        return self
