"""What `weir-engine tap` writes at its end."""

from weir.model.records import Quantiles, Record


class TapResult(Record):
    """`end` of a tap: what the kernel saw of requests. `docs/reference/engine.md` tells what each is."""

    requests: int
    connections: int
    packets: int
    dropped_packets: int
    ignored_packets: int = 0
    first_t_ns: int | None = None
    last_t_ns: int | None = None
    response_time_us: Quantiles
    histogram: str
