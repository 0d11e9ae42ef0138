"""Types of the records about a tool's load. A process of Locust sends these records as JSON, and requests as arrays.
For JMeter and k6, weir makes the records from tables. All processes share the clock of the times, CLOCK_MONOTONIC."""

from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

REQUEST = np.dtype(
    [("end_ns", "i8"), ("outcome", "i8"), ("response_time_ms", "f8"), ("lag_ns", "i8"), ("received_bytes", "f8")]
)
"""A request. `outcome` is the index of the request's outcome in the process's list of outcomes. The tool measures
`response_time_ms`. NaN: the tool reports no response time."""


class Outcome(NamedTuple):
    """Facts that many requests share. A process sends each outcome once, and requests refer to the outcome."""

    type: str
    name: str
    status: int
    failure: str | None
    """The kind of failure (a key of `ErrorCounts`)."""
    has_start: bool = True
    """Whether `News.begun` contains the start time of the request."""
    is_part: bool = False
    """Whether the sample is not a separate request: it is a transaction, or a part of a request, such as a redirect."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class Started(_Line):
    """The start of a test in a process. `locust_plugin.describe` returns most of these fields."""

    record: Literal["started"] = "started"
    at_ns: int
    unix_ns: int
    pid: int
    role: Literal["local", "master", "worker"] = "local"
    version: str
    """Name and version of the tool."""
    hosts: list[str] = []
    files: list[str]
    tasks: list[tuple[str, int]] = []
    """Names and weights of the tasks."""
    users: int = 1
    spawn_rate: float = 1
    run_time_s: float | None = None
    has_shape: bool = False
    processes: int = 1
    cpus: int = 1
    """Number of CPUs that one process can use."""
    measures_lag: bool = False


class News(_Line):
    """A report: the requests that began or ended since the previous report, and the state of the process."""

    record: Literal["news"] = "news"
    at_ns: int
    outcomes: list[Outcome] = []
    """The outcomes that the process has not sent before."""
    requests: bytes
    """An array of `REQUEST`."""
    begun: bytes
    """An array of the start times of requests, in nanoseconds (64 bits)."""
    in_flight: int | None = None
    """Number of requests in flight. None: the tool reports neither this number nor the starts of requests. weir then
    computes each start from the end, and counts the requests that have begun and not ended."""
    unanswered: int = 0
    """Total number of requests that the tool stopped before the response."""
    unsent: int = 0
    """Total number of requests or iterations that were due, but that the tool did not start."""
    oldest_ns: int = 0
    """Age of the oldest request in flight."""
    unclaimed: tuple[int, int] = (0, 0)
    """Total number of requests, and of failed requests, that the tool's own totals leave out."""
    users: int = 0
    """Highest number of users until now. 0: unknown."""
    cpu_s: float
    """CPU time since the test started."""
    peak_rss_bytes: int


class Stopped(_Line):
    """The end of a test in a process."""

    record: Literal["stopped"] = "stopped"
    at_ns: int


class Restarted(_Line):
    """The start of a second test, which the plugin does not record."""

    record: Literal["restarted"] = "restarted"


class Claims(_Line):
    """The tool's own figures at the end of a test."""

    record: Literal["claims"] = "claims"
    requests: int
    failed: int
    users: int = 0
    """Number of users. 0: unknown."""
    mean_ms: float
    min_ms: float
    max_ms: float
    throughput_rps: float


class Ended(_Line):
    """The exit of a process after its last report."""

    record: Literal["ended"] = "ended"


Line = Annotated[Started | News | Stopped | Restarted | Claims | Ended, Field(discriminator="record")]
LINE: TypeAdapter[Line] = TypeAdapter(Line)
