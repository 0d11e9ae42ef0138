"""`[method]` of a study file: how often, in which order, and against what."""

from pydantic import Field

from weir.toml_file import Table


class Method(Table):
    """How often, in which order, and against what."""

    blocks: int = Field(ge=1)
    seed: int = 1
    baseline: str
    """The stack that the others are compared with."""
    aa: str | None = None
    """The stack that runs twice in every block."""
    prime_s: float = Field(default=2, ge=0)
    pause_s: float = Field(default=1, ge=0)
    retries: int = Field(default=2, ge=0)
    """How often a rejected trial is tried again, in a later block."""
