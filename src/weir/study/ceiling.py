"""The most that a cell can answer, by arithmetic alone: who waits holds something, and there is so much of that. Pure.

A request that waits w seconds for an upstream holds a thread meanwhile, where the stack has one for each request: n threads get at most
n ÷ w of them done in a second, whatever the framework. So do n users who wait for their answers. Which of the two lies lower says whose
limit a study shows.
"""

from collections.abc import Iterator, Mapping

from weir.load_values import think_time
from weir.model.load import ClosedLoad, ThinkTime, highest
from weir.model.run import Ceiling, Cell
from weir.services.delay import delay_settings
from weir.services.manifest import read_service
from weir.stacks.manifest import Limit, Needed
from weir.study.load import LoadTable

_WAITS_ON = "delay"


def ceilings(cell: Cell, load: LoadTable, limits: Mapping[str, Limit], services: Mapping[str, Needed]) -> tuple[Ceiling, ...]:
    """What a cell cannot exceed, the lowest first; nothing where its requests wait for no upstream, each once.

    Args:
        cell: its load, settings and replicas.
        load: how its users come.
        limits: what its stack's settings mean.
        services: what runs beside it, with the study's settings.
    """
    if _WAITS_ON not in services:
        return ()
    settings = delay_settings({**read_service(_WAITS_ON).settings, **services[_WAITS_ON].settings})
    wait_s = think_time(settings.delay).mean_s
    if wait_s <= 0:
        return ()
    found = [*_of_stack(cell, limits, wait_s), *_of_load(cell, load, wait_s)]
    if settings.servers is not None:
        found.append(Ceiling("upstream", settings.servers / wait_s, f"{settings.servers} servers of the upstream ÷ {wait_s:g} s"))
    return tuple(sorted(found, key=lambda ceiling: ceiling.throughput_rps))


def _of_stack(cell: Cell, limits: Mapping[str, Limit], wait_s: float) -> Iterator[Ceiling]:
    for name, limit in limits.items():
        if limit.requests_each is None:
            continue
        value = int(cell.settings[name])
        at_once = value * limit.requests_each * cell.replicas
        each = f" × {limit.requests_each} requests" if limit.requests_each > 1 else ""
        processes = f" × {cell.replicas} processes" if cell.replicas > 1 else ""
        noun = name.removesuffix("s") if value == 1 else name
        yield Ceiling("stack", at_once / wait_s, f"{value} {noun}{each}{processes} ÷ {wait_s:g} s", at_once, wait_s)


def _of_load(cell: Cell, load: LoadTable, wait_s: float) -> Iterator[Ceiling]:
    if not isinstance(cell.load, ClosedLoad):
        return
    users = highest(cell.load.users)
    who = "1 user" if users == 1 else f"{users:g} users"
    think_s = _mean_s(cell.load.think)
    request_s = max(wait_s + think_s, cell.load.pace_s or 0.0)
    each = f"{wait_s:g} s" if request_s == wait_s else f"{request_s:g} s a request"
    if cell.load.loops is None or load.ramp_s is None:
        yield Ceiling("load", users / request_s, f"{who} ÷ {each}")
        return
    # The last of them comes at the end of the ramp.
    loops = cell.load.loops
    total_s = load.ramp_s + loops * request_s
    yield Ceiling("load", users * loops / total_s, f"{who} × {loops} requests ÷ ({load.ramp_s:g} s + {loops} × {request_s:g} s)")


def _mean_s(think: ThinkTime | None) -> float:
    return 0.0 if think is None else think.mean_s
