"""Computes upper bounds of a cell's throughput without a measurement. Example: each request occupies a thread and waits
w seconds for an upstream. Then n threads complete at most n ÷ w requests per second, in any framework. The same bound
applies to n users. The smallest bound shows whether the stack or the load limits throughput."""

from collections.abc import Iterator, Mapping

from weir.load_spec import LoadSpec
from weir.model.load import ClosedLoad, highest
from weir.model.run_types import Cell, UpperBound
from weir.parsing import parse_think_time
from weir.services.delay import DelaySettings
from weir.services.manifest import read_service
from weir.services.settings import parse_settings
from weir.stacks.manifest import Limit, Needed

_WAITS_ON = "delay"


def find_upper_bounds(
    cell: Cell, load: LoadSpec, limits: Mapping[str, Limit], services: Mapping[str, Needed]
) -> tuple[UpperBound, ...]:
    """Returns the upper bounds of a cell's throughput in ascending order. Returns no bounds if requests do not wait for
    an upstream. `services`: the stack's services, with the study's settings."""
    if _WAITS_ON not in services:
        return ()
    settings = parse_settings(DelaySettings, {**read_service(_WAITS_ON).settings, **services[_WAITS_ON].settings})
    wait_s = parse_think_time(settings.delay).mean_s
    if wait_s <= 0:
        return ()
    found = [*_bound_by_stack(cell, limits, wait_s), *_bound_by_load(cell, load, wait_s)]
    if settings.servers is not None:
        because = f"{settings.servers} servers of the upstream ÷ {wait_s:g} s"
        found.append(UpperBound("upstream", settings.servers / wait_s, because))
    return tuple(sorted(found, key=lambda bound: bound.throughput_rps))


def _bound_by_stack(cell: Cell, limits: Mapping[str, Limit], wait_s: float) -> Iterator[UpperBound]:
    for name, limit in limits.items():
        if limit.requests_each is None:
            continue
        value = int(cell.settings[name])
        at_once = value * limit.requests_each * cell.replicas
        each = f" × {limit.requests_each} requests" if limit.requests_each > 1 else ""
        processes = f" × {cell.replicas} processes" if cell.replicas > 1 else ""
        noun = name.removesuffix("s") if value == 1 else name
        yield UpperBound("stack", at_once / wait_s, f"{value} {noun}{each}{processes} ÷ {wait_s:g} s", at_once, wait_s)


def _bound_by_load(cell: Cell, load: LoadSpec, wait_s: float) -> Iterator[UpperBound]:
    if not isinstance(cell.load, ClosedLoad):
        return
    users = highest(cell.load.users)
    who = "1 user" if users == 1 else f"{users:g} users"
    think_s = cell.load.think.mean_s if cell.load.think else 0.0
    request_s = max(wait_s + think_s, cell.load.pace_s or 0.0)
    each = f"{wait_s:g} s" if request_s == wait_s else f"{request_s:g} s a request"
    if cell.load.requests_per_user is None or load.ramp_s is None:
        yield UpperBound("load", users / request_s, f"{who} ÷ {each}")
        return
    # The last user starts at the end of the ramp.
    requests = cell.load.requests_per_user
    total_s = load.ramp_s + requests * request_s
    because = f"{who} × {requests} requests ÷ ({load.ramp_s:g} s + {requests} × {request_s:g} s)"
    yield UpperBound("load", users * requests / total_s, because)
