"""Reads the thread groups of a test plan: users, data sets, and samplers with unrolled loops."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from weir.compat.jmx.complaint import Complaint, NotExactError
from weir.compat.jmx.data_set import read_data_set
from weir.compat.jmx.sampler import read_sampler
from weir.compat.jmx.scope import Scope, is_scoped
from weir.compat.jmx.test_plan import Cookies, DataSet, ExactPlan, OnError, Role, Sampler, ThreadGroup
from weir.compat.jmx.tree import Element, list_arguments, read_tree

_ROLES: Mapping[str, Role] = {"ThreadGroup": "main", "SetupThreadGroup": "setup", "PostThreadGroup": "teardown"}
_MOST_SAMPLERS = 10_000
"""Maximum number of steps in a scenario."""
_CONTROLLERS = frozenset(["GenericController", "RecordingController", "LoopController"])
_WITHOUT_LOAD = frozenset(["TestFragmentController", "WorkBench", "HttpMirrorControl", "ProxyControl", "Arguments"])
"""Elements that send no requests by themselves."""
_LISTENERS = ("ResultCollector", "Visualizer", "Summariser", "Listener")
"""A listener's kind ends with one of these words. Listeners send no requests."""


def read_plan(path: Path, properties: Mapping[str, str]) -> ExactPlan:
    """Returns the test plan in a .jmx file. `properties` (`-Jname=value`) are the values for the functions `__P` and
    `__property`. Raises NotExactError, with all reasons, if the engine cannot send exactly JMeter's requests. Raises
    UsageError if the file cannot be read or is not a test plan."""
    root = read_tree(path)
    # Requests may share an element, and a loop may repeat it. Each complaint about an element counts only once.
    found: dict[tuple[int, str, str], Complaint] = {}

    def report(element: Element, why: str, what: str) -> None:
        found.setdefault((id(element), why, what), Complaint(what, why, element.line, element.name))

    groups = _read_groups(root, path.parent, Scope(report, properties, root))
    if not groups and not found:
        report(root, "found no thread group with threads, loops and HTTP requests, expected at least one", root.kind)
    if found:
        samplers = sum(element.kind.startswith("HTTPSampler") for element in root.walk())
        raise NotExactError(path, list(found.values()), samplers)
    return ExactPlan(path, tuple(groups), root.flag("TestPlan.serialize_threadgroups"))


def _read_groups(root: Element, folder: Path, scope: Scope) -> list[ThreadGroup]:
    # In JMeter, all threads have all variables from the start, wherever an element defines them.
    _define_variables(root, root.find_property("TestPlan.user_defined_variables"), scope)
    for element in root.walk():
        if element.kind == "Arguments":
            _define_variables(element, element, scope)
    scope = scope.within(root.below)
    groups = [element for element in root.below if element.kind in _ROLES]
    others = [element for element in root.below if element.kind not in _ROLES]
    _report_unknown(others, scope, "CSVDataSet")
    read = [_read_group(group, number, scope, folder, others, len(groups)) for number, group in enumerate(groups, 1)]
    return [group for group in read if group is not None]


def _define_variables(element: Element, holder: Element | None, scope: Scope) -> None:
    # The variables of one element cannot refer to one another.
    scope.variables.update([(one.name, scope.resolve_fixed(element, one.value)) for one in list_arguments(holder)])


def _report_unknown(elements: Sequence[Element], scope: Scope, *known: str) -> None:
    """Reports each element that the engine does not support, at all levels below `elements`."""
    for element in elements:
        is_silent = element.kind in _WITHOUT_LOAD or element.kind.endswith(_LISTENERS)
        if not (is_scoped(element) or is_silent or element.kind in known):
            scope.report(element, "the engine does not support this element")
            list(_list_samplers(element.below, scope.within(element.below)))


class _Found(NamedTuple):
    """A sampler and its element in the test plan."""

    element: Element
    cookies: Element | None
    """The cookie manager for the sampler."""
    sampler: Sampler


def _read_group(
    element: Element, number: int, scope: Scope, folder: Path, others: Sequence[Element], group_count: int
) -> ThreadGroup | None:
    """Returns a thread group; None if the group has no threads, no loops or no samplers. `number` counts the thread
    groups of the plan from 1. `others` are the plan's elements that are not thread groups."""
    threads = scope.number(element, "ThreadGroup.num_threads", "1")
    main = element.find_property("ThreadGroup.main_controller")
    # JMeter always saves this flag as false. If a plan has true, JMeter ignores the number of loops.
    is_endless = main is not None and main.flag("LoopController.continue_forever", default=True)
    loops = -1 if is_endless else scope.number(element, "LoopController.loops", "1", holder=main)
    duration_s = delay_s = 0
    if element.flag("ThreadGroup.scheduler"):
        duration_s, delay_s = (scope.number(element, f"ThreadGroup.{name}", "0") for name in ("duration", "delay"))
    if threads <= 0 or loops == 0:
        return None
    data_sets = _read_data_sets([*others, *element.below], scope, folder, threads, group_count)
    inner = replace(scope, data_sets=data_sets).within(element.below)
    found = list(_list_samplers([one for one in element.below if one.kind != "CSVDataSet"], inner))
    if not found:
        return None
    new_users = not element.flag("ThreadGroup.same_user_on_next_iteration", default=True)
    _check_alike(found, scope)
    samplers = tuple(one.sampler for one in found)
    if new_users and len(samplers) > 1:
        scope.report(element, "found a new user with new connections in each iteration, expected the same user")
    return ThreadGroup(
        name=element.name,
        number=number,
        role=_ROLES[element.kind],
        threads=threads,
        ramp_s=max(0, scope.number(element, "ThreadGroup.ramp_time", "1")),
        loops=None if loops < 0 else loops,
        delay_s=max(0, delay_s),
        duration_s=duration_s if duration_s > 0 else None,
        on_error=_read_on_error(element, scope, len(samplers)),
        samplers=samplers,
        cookies=_read_cookies(found[0].cookies, scope, new_users),
        keep_alive=samplers[0].keep_alive and not (new_users and len(samplers) == 1),
        timeout_s=samplers[0].timeout_s,
        data_sets=data_sets,
    )


def _list_samplers(elements: Sequence[Element], scope: Scope) -> Iterator[_Found]:
    """Yields the samplers in `elements` and at all levels below, in the plan's order. `elements` have this `scope`."""
    for element in elements:
        if element.kind == "HTTPSamplerProxy":
            _report_unknown(element.below, scope)
            inner = scope.within(element.below)
            if sampler := read_sampler(element, inner):
                yield _Found(element, next(iter(inner.find("CookieManager")), None), sampler)
        elif element.kind in _CONTROLLERS:
            yield from _unroll(element, scope)
        elif element.kind == "CSVDataSet":
            scope.report(element, "found a data set inside a controller, expected a data set of the thread group")
        else:
            _report_unknown([element], scope)


def _unroll(controller: Element, scope: Scope) -> Iterator[_Found]:
    """Yields the samplers below a controller. Repeats the samplers for each loop of the controller."""
    found = list(_list_samplers(controller.below, scope.within(controller.below)))
    loops = 1
    if controller.kind == "LoopController":
        if not controller.flag("LoopController.continue_forever"):
            scope.report(controller, "found continue_forever off: this loop runs only in the first iteration of a user")
        loops = scope.number(controller, "LoopController.loops", "1")
        if loops < 0 or loops * len(found) > _MOST_SAMPLERS:
            written = "endless" if loops < 0 else str(loops)
            scope.report(
                controller, f"found {written} loops, expected at most {_MOST_SAMPLERS:,} requests an iteration"
            )
            loops = 1
    for _ in range(loops):
        yield from found


def _check_alike(found: Sequence[_Found], scope: Scope) -> None:
    """Reports samplers with settings that differ from the settings of the thread group's first sampler."""
    _, cookies, first = found[0]
    for element, own_cookies, sampler in found:
        for is_alike, difference in (
            (sampler.origin == first.origin, f"another server than {first.origin}, the server of"),
            (own_cookies is cookies, "another cookie manager (or none) than in"),
            (sampler.keep_alive == first.keep_alive, "another keep-alive setting than in"),
            (sampler.timeout_s == first.timeout_s, "another response timeout than in"),
        ):
            if not is_alike:
                scope.report(element, f"found {difference} the first request of its thread group")


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
