"""The study file's format, as TOML. What it asks for is in `study`; starts nothing."""

from typing import Literal

from pydantic import Field, model_validator

from weir.study.cpus import Cpus
from weir.study.method import Method
from weir.toml_file import Table


class Matrix(Table):
    """What is crossed with what."""

    stacks: list[str] = Field(min_length=1)
    workloads: list[str] = Field(min_length=1)
    connections: list[int] = Field(min_length=1)
    """Of a closed load the users; of an open load the most connections it may use."""
    rates_rps: list[float] = Field(default_factory=list)
    """Given: open loads at these rates. Not given: closed loads."""

    @model_validator(mode="after")
    def _values_make_sense(self) -> "Matrix":
        for name, values in (("connections", self.connections), ("rates_rps", self.rates_rps)):
            if any(value <= 0 for value in values):
                raise ValueError(f"{name}: expected values above 0")
        for name, names in (("stacks", self.stacks), ("workloads", self.workloads)):
            if len(set(names)) != len(names):
                raise ValueError(f"{name}: expected every name once")
        return self


class LoadTable(Table):
    """How long each trial is loaded, and how long an answer may take."""

    duration_s: float = Field(gt=0)
    timeout_s: float = Field(default=20, gt=0)


class Published(Table):
    """A figure that the published study printed."""

    stack: str
    metric: str
    value: float
    note: str = ""


class StudyFile(Table):
    """The file `studies/NAME.toml`, with one of its scales applied."""

    schema_number: Literal[1] = Field(alias="schema")
    title: str
    question: str
    source: str = ""
    claims: list[str] = Field(default_factory=list)
    matrix: Matrix
    load: LoadTable
    method: Method
    cpus: Cpus = Field(default_factory=Cpus)
    published: list[Published] = Field(default_factory=list)

    @model_validator(mode="after")
    def _named_stacks_are_in_the_matrix(self) -> "StudyFile":
        for key, stack in (("method.baseline", self.method.baseline), ("method.aa", self.method.aa)):
            if stack is not None and stack not in self.matrix.stacks:
                raise ValueError(f"{key}: found {stack!r}, expected one of matrix.stacks: {', '.join(self.matrix.stacks)}")
        return self
