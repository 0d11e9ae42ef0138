"""`[external.NAME]` of a study file: a server that weir did not start. It is checked for right answers like any other, and watched if its
processes are named."""

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from weir.toml_file import Table


class External(Table):
    """A server that runs already: loaded and checked, but neither started nor stopped."""

    url: str
    """Where it answers: `http://HOST[:PORT]`. The workload's path is added."""
    pids: list[int] = Field(default_factory=list)
    """Its processes, if they are on this machine: their CPU, memory and threads are measured, with everything below them."""
    serves: list[str] = Field(min_length=1)
    """Names of the workloads that it answers."""
    title: str = ""
    """What reports call it. Default: its name."""
    model: str = ""
    """How it serves, for reports: "event loop per process, non-blocking I/O"."""

    @field_validator("url")
    @classmethod
    def _is_a_base(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            well_formed = parts.scheme == "http" and parts.hostname and (parts.port is None or parts.port > 0)
        except ValueError:
            well_formed = False
        if not well_formed or parts.query or parts.fragment or parts.path.strip("/"):
            raise ValueError("expected http://HOST[:PORT] without a path: the workload's is added")
        return url.rstrip("/")

    @field_validator("pids")
    @classmethod
    def _are_processes(cls, pids: list[int]) -> list[int]:
        if any(pid < 1 for pid in pids) or len(set(pids)) != len(pids):
            raise ValueError("expected process ids above 0, each once")
        return pids
