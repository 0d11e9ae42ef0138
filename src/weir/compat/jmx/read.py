"""Reads the thread groups of a test plan: users, data sets, and samplers with unrolled loops."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from weir.compat.jmx.data_set import read_data_set
from weir.compat.jmx.sampler import read_sampler
from weir.compat.jmx.scope import Scope, is_scoped
from weir.compat.jmx.test_plan import Cookies, DataSet, OnError, Role, Sampler, TestPlan, ThreadGroup, Unsupported
from weir.compat.jmx.tree import Element, list_arguments, read_tree
from weir.model.errors import UsageError

_ROLES: Mapping[str, Role] = {"ThreadGroup": "main", "SetupThreadGroup": "setup", "PostThreadGroup": "teardown"}
_MOST_SAMPLERS = 10_000
"""Maximum number of steps in a scenario."""
_SAMPLERS = frozenset(["HTTPSamplerProxy", "HTTPSampler2", "HTTPSampler"])
_CONTROLLERS = frozenset(["GenericController", "RecordingController", "LoopController", "TransactionController"])
_WITHOUT_LOAD = frozenset(["TestFragmentController", "WorkBench", "HttpMirrorControl", "ProxyControl", "Arguments"])
"""Elements that send no requests by themselves."""
_LISTENERS = ("ResultCollector", "Visualizer", "Summariser", "BackendListener")
"""The kind of a listener ends with one of these words. Listeners send no requests."""


def read_test_plan(path: Path, properties: Mapping[str, str]) -> TestPlan:
    """Returns the test plan in a .jmx file. The functions `__P` and `__property` read `properties` (`-Jname=value`).
    Raises UsageError: the file cannot be read, is not a test plan, has an invalid number, or has no HTTP request."""
    root = read_tree(path)
    found: dict[tuple[int, str], Unsupported] = {}

    def report(element: Element, why: str) -> None:
        above = f" in {' > '.join(element.place)}" if element.place else ""
        description = f"{element.kind} {element.name!r}{above}: {why}"
        # Several requests may share an element, or a loop may repeat an element.
        found.setdefault((id(element), why), Unsupported(element.line, description))

    try:
        groups = _read_groups(root, path.parent, Scope(report, properties))
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}") from None
    unsupported = sorted(found.values(), key=lambda one: one.line)
    if not groups and not unsupported:
        raise UsageError(f"{path}: found no thread group with threads, loops and HTTP requests, expected at least one")
    return TestPlan(path, tuple(groups), root.flag("TestPlan.serialize_threadgroups"), tuple(unsupported))


def _read_groups(root: Element, folder: Path, scope: Scope) -> list[ThreadGroup]:
    # In JMeter, all threads have all variables from the start, wherever an element defines them.
    _define_variables(root, root.find_property("TestPlan.user_defined_variables"), scope)
    for element in _list_below(root):
        if element.kind == "Arguments":
            _define_variables(element, element, scope)
    scope = scope.within(root.below)
    groups = [element for element in root.below if element.kind in _ROLES]
    others = [element for element in root.below if element.kind not in _ROLES]
    _report_unknown(others, scope, "CSVDataSet")
    read = [_read_group(group, number, scope, folder, others, len(groups)) for number, group in enumerate(groups, 1)]
    return [group for group in read if group is not None]


def _list_below(element: Element) -> Iterator[Element]:
    for below in element.below:
        yield below
        yield from _list_below(below)


def _define_variables(element: Element, holder: Element | None, scope: Scope) -> None:
    for argument in list_arguments(holder):
        scope.variables[argument.name] = scope.resolve_fixed(element, argument.value)


def _report_unknown(elements: Sequence[Element], scope: Scope, *known: str) -> None:
    for element in elements:
        is_silent = element.kind in _WITHOUT_LOAD or element.kind.endswith(_LISTENERS)
        if not (is_scoped(element) or is_silent or element.kind in known):
            scope.report(element, "weir does not support this element, and omits all elements below it")


class _Found(NamedTuple):
    """A sampler with its element in the test plan."""

    element: Element
    cookies: Element | None
    """The cookie manager that applies to the sampler."""
    sampler: Sampler


def _read_group(
    element: Element, number: int, scope: Scope, folder: Path, others: Sequence[Element], group_count: int
) -> ThreadGroup | None:
    """Returns a thread group; None if the group has no threads, no loops or no samplers.

    `number` counts the thread groups of the plan from 1. `others` are the plan's elements that are not thread groups.
    """
    threads = int(scope.number(element, "ThreadGroup.num_threads", "1"))
    main = element.find_property("ThreadGroup.main_controller")
    # JMeter always saves this flag as false. A true flag overrides the number of loops.
    is_endless = main is not None and main.flag("LoopController.continue_forever", default=True)
    loops = -1 if is_endless else int(scope.number(element, "LoopController.loops", "1", holder=main))
    duration_s = delay_s = 0.0
    if element.flag("ThreadGroup.scheduler"):
        duration_s, delay_s = (scope.number(element, f"ThreadGroup.{name}", "0") for name in ("duration", "delay"))
    data_sets = _read_data_sets([*others, *element.below], scope, folder, threads, group_count)
    columns = {column: (one.name, column) for one in data_sets for column in one.columns if column}
    inner = replace(scope, columns=columns).within(element.below)
    found = list(_list_samplers(element.below, inner))
    if threads <= 0 or loops == 0 or not found:
        return None
    new_users = not element.flag("ThreadGroup.same_user_on_next_iteration", default=True)
    found = _keep_alike(found, scope)
    samplers = tuple(one.sampler for one in found)
    if new_users and len(samplers) > 1:
        scope.report(element, "found a new user with new connections in each iteration, expected the same user")
    return ThreadGroup(
        name=element.name,
        number=number,
        role=_ROLES[element.kind],
        threads=threads,
        ramp_s=max(0.0, scope.number(element, "ThreadGroup.ramp_time", "1")),
        loops=None if loops < 0 else loops,
        delay_s=max(0.0, delay_s),
        duration_s=duration_s if duration_s > 0 else None,
        on_error=_read_on_error(element, scope, len(samplers)),
        samplers=samplers,
        cookies=_read_cookies(found[0].cookies, scope, new_users),
        keep_alive=samplers[0].keep_alive and not (new_users and len(samplers) == 1),
        timeout_s=max(sampler.timeout_s for sampler in samplers),
        data_sets=data_sets,
    )


def _list_samplers(elements: Sequence[Element], scope: Scope) -> Iterator[_Found]:
    """Yields the samplers among and below `elements`, in the plan's order. `scope` is the scope of `elements`."""
    for element in elements:
        if element.kind in _SAMPLERS:
            _report_unknown(element.below, scope)
            inner = scope.within(element.below)
            if sampler := read_sampler(element, inner):
                yield _Found(element, next(iter(inner.find("CookieManager")), None), sampler)
        elif element.kind in _CONTROLLERS:
            yield from _unroll(element, scope)
        else:
            _report_unknown([element], scope, "CSVDataSet")


def _unroll(controller: Element, scope: Scope) -> Iterator[_Found]:
    """Yields the samplers below a controller, once for each loop of the controller."""
    for below in controller.below:
        if below.kind == "CSVDataSet":
            scope.report(below, "found a data set inside a controller, expected a data set of the thread group")
    found = list(_list_samplers(controller.below, scope.within(controller.below)))
    loops = 1
    if controller.kind == "TransactionController":
        scope.report(controller, "weir sends the requests, but reports no sample for the whole transaction")
    elif controller.kind == "LoopController":
        loops = int(scope.number(controller, "LoopController.loops", "1"))
        if loops < 0 or loops * len(found) > _MOST_SAMPLERS:
            written = "endless" if loops < 0 else str(loops)
            scope.report(
                controller, f"found {written} loops, expected at most {_MOST_SAMPLERS:,} requests an iteration"
            )
            loops = 1
    for _ in range(loops):
        yield from found


def _keep_alike(found: Sequence[_Found], scope: Scope) -> list[_Found]:
    """Returns the samplers with the same server as the first sampler. Reports samplers with other settings."""
    first = found[0]
    origin = first.sampler.origin
    timeout_s = max(one.sampler.timeout_s for one in found if one.sampler.origin == origin)
    for element, cookies, sampler in found:
        if sampler.origin != origin:
            scope.report(element, f"found another server, expected {origin}, as in the thread group's first request")
            continue
        for is_alike, difference in (
            (cookies is first.cookies, "another cookie manager (or none) than in the first request"),
            (sampler.keep_alive == first.sampler.keep_alive, "another keep-alive setting than in the first request"),
            (sampler.timeout_s == timeout_s, "a shorter response timeout than in another request"),
        ):
            if not is_alike:
                scope.report(element, f"found {difference} of its thread group")
    return [one for one in found if one.sampler.origin == origin]


def _read_data_sets(
    elements: Sequence[Element], scope: Scope, folder: Path, threads: int, group_count: int
) -> list[DataSet]:
    found: list[DataSet] = []
    for element in elements:
        if element.kind != "CSVDataSet":
            continue
        found.append(read_data_set(element, scope, folder, [one.name for one in found]))
        share = element.value("shareMode", "shareMode.all")
        if share == "shareMode.thread" and threads > 1:
            scope.report(element, "found rows for each thread (shareMode.thread), expected rows that threads share")
        elif share == "shareMode.all" and len(element.place) == 1 and group_count > 1:
            scope.report(element, "found rows that thread groups share, expected rows for each group (shareMode.group)")
    return found


def _read_on_error(element: Element, scope: Scope, sampler_count: int) -> OnError:
    action = element.value("ThreadGroup.on_sample_error", "continue")
    if action == "stopthread":
        return "stop thread"
    if action != "continue" and (action != "startnextloop" or sampler_count > 1):
        scope.report(element, f"action after a sampler error: found {action}, expected continue or stopthread")
    return "continue"


def _read_cookies(manager: Element | None, scope: Scope, new_users: bool) -> Cookies:
    if manager is None:
        return "off"
    if manager.items("CookieManager.cookies"):
        scope.report(manager, "found predefined cookies, expected none")
    if manager.value("CookieManager.policy") == "ignorecookies":
        return "off"
    follows_group = manager.flag("CookieManager.controlledByThreadGroup")
    is_cleared = new_users if follows_group else manager.flag("CookieManager.clearEachIteration")
    return "round" if is_cleared else "user"
