"""Command lines of wrk, wrk2, hey and ab, as their front ends understand them, in weir's own words."""

from collections.abc import Iterator, Sequence
from importlib import import_module

from weir.compat.conversion import Conversion
from weir.compat.front_end import Asked
from weir.compat.native import as_asked
from weir.model.load import ClosedLoad, LoadPlan

_OF_TOOL = {
    "wrk": "wrk corrects its response times for coordinated omission without saying so; weir does not, and -R asks at a fixed rate",
    "wrk2": "response times count from the intended start here as there; wrk2 rounds its waits up to 1 ms and leaves out the first 10 s",
    "hey": "hey follows redirects; here a redirect is an answer, and a right one",
    "ab": "ab speaks HTTP/1.0; weir speaks HTTP/1.1",
}


def read(tool: str, arguments: Sequence[str]) -> Conversion:
    """The load that a command line asks for.

    Args:
        tool: wrk, wrk2, hey or ab.
        arguments: what follows its name.

    Raises:
        ToolExit: the tool's own answer to wrong flags, or what weir does not do.
    """
    asked: Asked = import_module(f"weir.compat.{tool}").read(arguments)
    return Conversion(plan=as_asked(asked.plan), notes=[*_differences(tool, asked.plan)], command=asked.native)


def _differences(tool: str, plan: LoadPlan) -> Iterator[str]:
    """What weir does otherwise."""
    yield _OF_TOOL[tool]
    if isinstance(plan.load, ClosedLoad):
        yield "a closed loop: each connection asks again when it was answered, so that a slow server is asked less"
        if plan.load.pace_s is not None:
            most = plan.load.connections / plan.load.pace_s
            yield f"-q is a rate of each worker: one request in {plan.load.pace_s:g} s each, at most {most:g} a second in all"
    if not plan.keep_alive:
        yield "a connection for each request: making it is part of the response time"
    if as_asked(plan).duration_s != plan.duration_s:
        yield "requests that are under way at the end are not waited for"
