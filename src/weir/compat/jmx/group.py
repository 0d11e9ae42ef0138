"""Thread groups: users, and the samplers below them, controllers unrolled."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from weir.compat.jmx.data_set import EACH_THREAD, read_data_set
from weir.compat.jmx.plan import NO_TIMEOUT_S, Cookies, DataSet, OnError, Role, ThreadGroup
from weir.compat.jmx.sampler import Read, read_sampler
from weir.compat.jmx.scope import SCOPED, Complain, Scope, is_http_defaults, number
from weir.compat.jmx.tree import Element, Node
from weir.compat.jmx.values import Values

ROLES: Mapping[str, Role] = {"ThreadGroup": "main", "SetupThreadGroup": "setup", "PostThreadGroup": "teardown"}
MOST_SAMPLERS = 10_000
"""Steps of a scenario, at most."""

NOTHING_LIKE_IT = "weir has nothing like it, and takes nothing of what is below it"

_SAMPLERS = frozenset(["HTTPSamplerProxy", "HTTPSampler2", "HTTPSampler"])
_GROUPING = frozenset(["GenericController", "RecordingController"])
_REPORTING = frozenset(["ResultCollector", "Summariser", "BackendListener"])
"""Listeners report, they put no load on anything; so do all whose names end with one of the next."""
_REPORTING_ENDS = ("ResultCollector", "Visualizer", "CorrectedResultCollector")
_NOT_RUN = frozenset(["TestFragmentController", "WorkBench", "HttpMirrorControl", "ProxyControl"])
"""What takes no part in a load by itself, and so neither does what is below it."""


def is_silent(element: Element) -> bool:
    """Whether it changes nothing about the load: variables are read elsewhere, the rest reports or is not run."""
    return element.kind in _REPORTING | _NOT_RUN | {"Arguments"} or element.kind.endswith(_REPORTING_ENDS)


class GroupReader:
    """Reads the thread groups of one plan.

    Args:
        folder: what files are relative to.
        tell: told what is not supported.
    """

    def __init__(self, folder: Path, tell: Complain) -> None:
        self._folder = folder
        self._tell = tell

    def read(self, element: Element, number_: int, scope: Scope, beside: Sequence[Element], groups: int) -> ThreadGroup | None:
        """A thread group; None where it asks for nothing: it has no threads, no loops or no samplers.

        Args:
            element: the thread group.
            number_: its place among them, from 1.
            scope: what applies beside it.
            beside: what stands beside it.
            groups: how many there are.

        Raises:
            UsageError: a number is none, or a file cannot be read.
        """
        node, values = element.node, scope.values
        complain = partial(self._tell, element)

        def figure(holder: Node | None, name: str, default: str) -> float:
            text = default if holder is None else values.fixed(holder.value(name, default), complain).strip() or default
            return number(element, text, name)

        threads = int(figure(node, "ThreadGroup.num_threads", "1"))
        main = node.property("ThreadGroup.main_controller")
        # JMeter's own, which it saves as false, goes before the number.
        is_endless = main is not None and main.flag("LoopController.continue_forever", default=True)
        loops = -1 if is_endless else int(figure(main, "LoopController.loops", "1"))
        is_scheduled = node.flag("ThreadGroup.scheduler")
        duration_s = figure(node, "ThreadGroup.duration", "0") if is_scheduled else 0.0
        data_sets = self._data_sets([*beside, *element.below], values, threads, groups)
        own = Values(values.properties, values.variables, _columns(data_sets))
        inner = Scope(own, scope.defaults, scope.headers, scope.cookies, scope.timers, scope.assertions).within(element.below)
        found = list(self._samplers(element.below, inner))
        if threads <= 0 or loops == 0 or not found:
            return None
        samplers = self._with_one_target(found)
        new_users = not node.flag("ThreadGroup.same_user_on_next_iteration", default=True)
        if new_users and len(samplers) > 1:
            complain("a new user, with new connections, in each iteration (same_user_on_next_iteration = false)")
        return ThreadGroup(
            name=element.name,
            number=number_,
            role=ROLES[element.kind],
            threads=threads,
            ramp_s=max(0.0, figure(node, "ThreadGroup.ramp_time", "1")),
            loops=None if loops < 0 else loops,
            delay_s=max(0.0, figure(node, "ThreadGroup.delay", "0")) if is_scheduled else 0.0,
            duration_s=duration_s if duration_s > 0 else None,
            on_error=self._on_error(element, len(samplers)),
            samplers=tuple(read.sampler for _, _, read in samplers),
            cookies=self._cookies([(one, inside) for one, inside, _ in samplers], new_users),
            keep_alive=self._keep_alive(samplers) and not (new_users and len(samplers) == 1),
            timeout_s=self._timeout_s(samplers),
            data_sets={data_set.name: data_set for data_set, _ in data_sets},
        )

    def _samplers(self, elements: Sequence[Element], scope: Scope) -> Iterator[tuple[Element, Scope, Read]]:
        """The samplers among elements and below them, in their order; `scope` is that of the elements."""
        for element in elements:
            if element.kind in _SAMPLERS:
                inner = scope.within(element.below)
                for below in element.below:
                    if below.kind not in SCOPED and not is_http_defaults(below) and not is_silent(below):
                        self._tell(below, NOTHING_LIKE_IT)
                read = read_sampler(element, inner, self._tell)
                if read is not None:
                    yield element, inner, read
            elif element.kind in _GROUPING or element.kind in ("LoopController", "TransactionController"):
                yield from self._repeated(element, scope)
            elif element.kind not in SCOPED | {"CSVDataSet"} and not is_http_defaults(element) and not is_silent(element):
                self._tell(element, NOTHING_LIKE_IT)

    def _repeated(self, controller: Element, scope: Scope) -> Iterator[tuple[Element, Scope, Read]]:
        """The samplers below a controller, as often as it repeats them."""
        for below in controller.below:
            if below.kind == "CSVDataSet":
                self._tell(below, "rows that are given out within an iteration, expected it in its thread group")
        inside = list(self._samplers(controller.below, scope.within(controller.below)))
        often = 1
        if controller.kind == "TransactionController":
            self._tell(controller, "a sample of its own for all of its requests: they are sent, and it is not reported")
        if controller.kind == "LoopController":
            text = scope.values.fixed(controller.node.value("LoopController.loops", "1"), partial(self._tell, controller)).strip()
            often = int(number(controller, text, "LoopController.loops"))
            if often < 0 or often * len(inside) > MOST_SAMPLERS:
                found = "endless" if often < 0 else str(often)
                self._tell(controller, f"{found} loops, expected at most {MOST_SAMPLERS:,} requests in an iteration")
                often = 1
        for _ in range(often):
            yield from inside

    def _with_one_target(self, found: list[tuple[Element, Scope, Read]]) -> list[tuple[Element, Scope, Read]]:
        origin = found[0][2].sampler.origin
        for element in _once(one for one, _, read in found if read.sampler.origin != origin):
            self._tell(element, f"another server than {origin}, to which the first request of its thread group goes")
        return [one for one in found if one[2].sampler.origin == origin]

    def _data_sets(self, elements: Sequence[Element], values: Values, threads: int, groups: int) -> list[tuple[DataSet, Element]]:
        found: list[tuple[DataSet, Element]] = []
        for element in elements:
            if element.kind != "CSVDataSet":
                continue
            taken = [data_set.name for data_set, _ in found]
            found.append((read_data_set(element, values, self._folder, taken, self._tell), element))
            share = element.node.value("shareMode", "shareMode.all")
            if share == EACH_THREAD and threads > 1:
                self._tell(element, "rows that each thread has for itself, expected rows that threads share")
            elif share == "shareMode.all" and len(element.place) == 1 and groups > 1:
                self._tell(element, "rows that thread groups share, expected rows that each has for itself (shareMode.group)")
        return found

    def _on_error(self, element: Element, samplers: int) -> OnError:
        asked = element.node.value("ThreadGroup.on_sample_error", "continue")
        if asked == "stopthread":
            return "stop thread"
        if asked not in ("continue", "startnextloop") or (asked == "startnextloop" and samplers > 1):
            self._tell(element, f"on a sampler's error {asked}, expected continue or stopthread")
        return "continue"

    def _cookies(self, samplers: Sequence[tuple[Element, Scope]], new_users: bool) -> Cookies:
        managers = [scope.cookies[0] if scope.cookies else None for _, scope in samplers]
        first = managers[0]
        for element in _once(one for (one, _), manager in zip(samplers, managers, strict=True) if manager is not first):
            self._tell(element, "another cookie manager than the first request of its thread group, or only one of the two has one")
        if first is None:
            return "off"
        if first.node.items("CookieManager.cookies"):
            self._tell(first, "cookies that are there from the start")
        if first.node.value("CookieManager.policy") == "ignorecookies":
            return "off"
        follows_group = first.node.flag("CookieManager.controlledByThreadGroup")
        is_cleared = new_users if follows_group else first.node.flag("CookieManager.clearEachIteration")
        return "round" if is_cleared else "user"

    def _keep_alive(self, samplers: Sequence[tuple[Element, Scope, Read]]) -> bool:
        kept = samplers[0][2].keep_alive
        for element in _once(one for one, _, read in samplers if read.keep_alive != kept):
            self._tell(element, "keep-alive otherwise than the first request of its thread group")
        return kept

    def _timeout_s(self, samplers: Sequence[tuple[Element, Scope, Read]]) -> float:
        longest_s = max(read.timeout_s or NO_TIMEOUT_S for _, _, read in samplers)
        for element in _once(one for one, _, read in samplers if (read.timeout_s or NO_TIMEOUT_S) != longest_s):
            self._tell(element, "a shorter response timeout than another request of its thread group has")
        return min(longest_s, NO_TIMEOUT_S)


def _columns(data_sets: Sequence[tuple[DataSet, Element]]) -> dict[str, tuple[str, str]]:
    return {column: (data_set.name, column) for data_set, _ in data_sets for column in data_set.columns if column}


def _once(elements: Iterator[Element]) -> list[Element]:
    """Each element once: a loop repeats them."""
    return list({id(element): element for element in elements}.values())
