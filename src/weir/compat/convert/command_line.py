"""Converts command lines of wrk, wrk2, hey and ab, which the front ends read."""

from collections.abc import Iterator, Sequence

from weir.compat.convert.conversion import Conversion
from weir.compat.front_end import FrontEnd, read_command_line
from weir.model.load import ClosedLoad

_DIFFERENCES = {
    "wrk": "wrk corrects response times for coordinated omission; weir does not, and has -R for a rate",
    "wrk2": "wrk2 counts response times from the intended start, too, but waits in steps of 1 ms and leaves out 10 s",
    "hey": "hey follows redirects; here a redirect is an answer, and a right one",
    "ab": "ab speaks HTTP/1.0; weir speaks HTTP/1.1",
}


def convert(tool: str, words: Sequence[str]) -> Conversion:
    """Returns the load that a command line of wrk, wrk2, hey or ab asks for."""
    front_end = read_command_line(tool, words)
    notes = [_DIFFERENCES[tool], *_list_differences(front_end)]
    return Conversion(spec=front_end.spec.without_implied_settings(), notes=notes)


def _list_differences(front_end: FrontEnd) -> Iterator[str]:
    plan = front_end.plan
    if isinstance(plan.load, ClosedLoad):
        yield "a closed loop: each connection asks again when it was answered, so that a slow server is asked less"
        if plan.load.pace_s is not None:
            most = plan.load.connections / plan.load.pace_s
            each = f"one request in {plan.load.pace_s:g} s each"
            yield f"-q is a rate of each worker: {each}, at most {most:g} a second in all"
    if not plan.keep_alive:
        yield "a connection for each request: making it is part of the response time"
    if front_end.waits_for_answers:
        yield "requests that are under way at the end are not waited for"
