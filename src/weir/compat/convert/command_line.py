"""Converts command lines of wrk, wrk2, hey and ab into weir loads. `weir.compat.front_end` parses the command lines."""

from collections.abc import Iterator, Sequence

from weir.compat.convert.conversion import Conversion
from weir.compat.front_end import FrontEnd, read_command_line
from weir.model.load import ClosedLoad

_DIFFERENCES = {
    "wrk": "wrk corrects response times for coordinated omission; weir does not: use weir load --rate for an open loop",
    "wrk2": "like weir, wrk2 measures from the due time; but wrk2 waits whole milliseconds and omits the first 10 s",
    "hey": "hey follows redirects; weir counts a redirect as a right response",
    "ab": "ab speaks HTTP/1.0; weir speaks HTTP/1.1",
}


def convert(tool: str, words: Sequence[str]) -> Conversion:
    """Returns the load of a command line of wrk, wrk2, hey or ab."""
    front_end = read_command_line(tool, words)
    notes = [_DIFFERENCES[tool], *_list_differences(front_end)]
    return Conversion(spec=front_end.spec.without_implied_settings(), notes=notes)


def _list_differences(front_end: FrontEnd) -> Iterator[str]:
    plan = front_end.plan
    if isinstance(plan.load, ClosedLoad):
        yield "a closed loop: each connection waits for its response, so a slow server gets fewer requests"
        if plan.load.pace_s is not None:
            most = plan.load.connections / plan.load.pace_s
            each = f"one request in {plan.load.pace_s:g} s"
            yield f"-q is the rate of each worker: {each}, at most {most:g} requests/s in total"
    if not plan.keep_alive:
        yield "each request opens a new connection, and the response time includes the time to connect"
    if front_end.waits_for_answers:
        yield "weir does not wait for requests in flight at the end"
