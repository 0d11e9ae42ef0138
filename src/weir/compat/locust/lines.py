"""Validates the lines of the plugin. Moments are of CLOCK_MONOTONIC: the same in all processes of a machine."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

RequestRow = tuple[int, str, str, float | None, int, int, int, str | None, bool]
"""End, type, name, Locust's response time in milliseconds, schedule lag in nanoseconds, bytes of the body, status, kind
of failure, and whether a client of Locust's own made the request."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class Started(_Line):
    """A test has started in this process; `plugin.describe` describes it."""

    record: Literal["started"]
    at_ns: int
    unix_ns: int
    pid: int
    role: Literal["local", "master", "worker"]
    locust: str
    """Its version."""
    hosts: list[str]
    files: list[str]
    tasks: list[tuple[str, int]]
    """Names and weights."""
    users: int
    spawn_rate: float
    run_time_s: float | None
    has_shape: bool
    processes: int
    measures_lag: bool


class News(_Line):
    """Requests that ended or began since the last news, and the state of the process."""

    record: Literal["news"]
    at_ns: int
    requests: list[RequestRow]
    begun: list[int]
    in_flight: int
    unanswered: int
    """Number of requests so far whose users Locust stopped before the answer."""
    oldest_ns: int
    """Age of the oldest request in flight."""
    cpu_s: float
    """CPU time since the test started."""
    peak_rss_bytes: int


class Stopped(_Line):
    """The test is over in this process."""

    record: Literal["stopped"]
    at_ns: int


class Restarted(_Line):
    """A second test has started, which is not recorded."""

    record: Literal["restarted"]


class Ended(_Line):
    """The process exits, and has reported everything."""

    record: Literal["ended"]


Line = Annotated[Started | News | Stopped | Restarted | Ended, Field(discriminator="record")]
LINE: TypeAdapter[Line] = TypeAdapter(Line)
