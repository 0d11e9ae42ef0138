"""Types of the plugin's lines. Times come from CLOCK_MONOTONIC, a clock that all processes of a machine share."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

RequestRow = tuple[int, str, str, float | None, int, int, int, str | None, bool]
"""A request: end time, type, name, Locust's response time in milliseconds, schedule lag in nanoseconds, bytes of the
body, status, kind of failure, and whether a client class of Locust sent the request."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class Started(_Line):
    """The start of a test in a process. `plugin.describe` returns most of these fields."""

    record: Literal["started"]
    at_ns: int
    unix_ns: int
    pid: int
    role: Literal["local", "master", "worker"]
    locust: str
    """The version of Locust."""
    hosts: list[str]
    files: list[str]
    tasks: list[tuple[str, int]]
    """Names and weights of the tasks."""
    users: int
    spawn_rate: float
    run_time_s: float | None
    has_shape: bool
    processes: int
    measures_lag: bool


class News(_Line):
    """A report: the requests that began or ended since the previous report, and the state of the process."""

    record: Literal["news"]
    at_ns: int
    requests: list[RequestRow]
    begun: list[int]
    in_flight: int
    unanswered: int
    """Total number of requests that Locust stopped before the response."""
    oldest_ns: int
    """Age of the oldest request in flight."""
    cpu_s: float
    """CPU time since the test started."""
    peak_rss_bytes: int


class Stopped(_Line):
    """The end of a test in a process."""

    record: Literal["stopped"]
    at_ns: int


class Restarted(_Line):
    """The start of a second test, which the plugin does not record."""

    record: Literal["restarted"]


class Ended(_Line):
    """The exit of a process after its last report."""

    record: Literal["ended"]


Line = Annotated[Started | News | Stopped | Restarted | Ended, Field(discriminator="record")]
LINE: TypeAdapter[Line] = TypeAdapter(Line)
