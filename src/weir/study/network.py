"""`[network]` of a study file: whether the stack has a network of its own, and how far away it is."""

from typing import Literal

from pydantic import Field, model_validator

from weir.toml_file import Table


class Network(Table):
    """`isolation = "netns"`: the stack in a network namespace of its own behind a veth pair, as in a container."""

    isolation: Literal["none", "netns"] = "none"
    """`netns`: a network of the stack's own; the other keys need it."""
    port: int = Field(default=8000, ge=1, le=65535)
    """What the stack listens on inside."""
    publish: int | None = Field(default=None, ge=1, le=65535)
    """The port that clients connect to instead; the namespace translates it, as a container's published port is."""
    delay_ms: float = Field(default=0, ge=0, le=10_000)
    """What a round trip takes longer, half of it in each direction."""
    loss: float = Field(default=0, ge=0, lt=1)
    """Share of packets that are lost, in each direction."""
    fallback: bool = False
    """Go on without what this machine cannot do (namespaces, netem, nft), and say so, instead of refusing to start."""

    @model_validator(mode="after")
    def _nothing_without_a_namespace(self) -> "Network":
        given = self.model_fields_set - {"isolation"}
        if self.isolation == "none" and given:
            raise ValueError(f'{", ".join(sorted(given))}: expected isolation = "netns" beside it; it has no effect without')
        return self
