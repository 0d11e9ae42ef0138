"""wrk and wrk2: closed loops, and arrivals at a rate. They share their flags, but for wrk2's `-R`."""

import json
from pathlib import Path

from weir.compat.reports.text_reports import read_wrk, read_wrk2
from weir.generators.feature import Feature
from weir.generators.tool import Tool, body_file, not_whole_seconds, rate_of, whole_rate
from weir.model.claim import Claim
from weir.model.load import LoadPlan, OpenLoad

_BASE = frozenset({Feature.NEW_CONNECTIONS})


class Wrk(Tool):
    """wrk. It looks at no certificate."""

    name = "wrk"
    title = "wrk"
    origin = "apt-get install wrk"
    clock = (
        "from the first write of a request to the end of its answer, with samples added for requests that it thinks it should have sent; "
        "without answers that came after the timeout"
    )
    can = _BASE
    ask_version = ("-v",)

    def _cannot_besides(self, plan: LoadPlan) -> list[str]:
        return not_whole_seconds(self.title, duration_s=plan.duration_s, timeout_s=plan.timeout_s)

    def threads(self, plan: LoadPlan) -> int:
        """Each has as many connections as the next; it leaves out what is over."""
        return max(threads for threads in range(1, plan.threads + 1) if plan.load.connections % threads == 0)

    def arguments(self, plan: LoadPlan, folder: Path) -> list[str]:
        """What is no plain GET is said in a Lua script, which runs before the load and not in it."""
        request = plan.request
        options = [
            f"-t{self.threads(plan)}",
            f"-c{plan.load.connections}",
            f"-d{plan.duration_s:.0f}s",
            "--timeout",
            f"{plan.timeout_s:.0f}s",
        ]
        options += ["--latency"]
        for name, value in request.headers:
            options += ["-H", f"{name}: {value}"]
        if not plan.keep_alive:
            options += ["-H", "Connection: close"]
        if request.method != "GET" or request.body is not None:
            options += ["-s", _script(plan, folder)]
        return [*options, request.target]

    def read(self, printed: str, folder: Path) -> Claim:
        """From what it printed."""
        (claim,) = read_wrk(printed, self.title)
        return claim


class Wrk2(Wrk):
    """wrk2. Its rate is that of all connections."""

    name = "wrk2"
    title = "wrk2"
    origin = "build github.com/giltene/wrk2 and put its wrk on the PATH as wrk2"
    clock = "from the moment a request was due to the end of its answer, both to the millisecond at which it looks"
    can = _BASE | {Feature.RATE}

    def _cannot_besides(self, plan: LoadPlan) -> list[str]:
        closed = [] if isinstance(plan.load, OpenLoad) else [f"{self.title} cannot ask as fast as it is answered: it takes a rate."]
        return super()._cannot_besides(plan) + whole_rate(self.title, plan.load) + closed

    def arguments(self, plan: LoadPlan, folder: Path) -> list[str]:
        """wrk's, and the rate."""
        assert isinstance(plan.load, OpenLoad)
        return [f"-R{rate_of(plan.load):.0f}", *super().arguments(plan, folder)]

    def read(self, printed: str, folder: Path) -> Claim:
        """From what it printed."""
        (claim,) = read_wrk2(printed, self.title)
        return claim


def _script(plan: LoadPlan, folder: Path) -> str:
    # A string of JSON is one of Lua as well, as long as it is of ASCII without control characters, as a method is.
    lines = [f"wrk.method = {json.dumps(plan.request.method)}"]
    if plan.request.body is not None:
        body_file(plan, folder)
        lines.append('local body = assert(io.open("body", "rb"))\nwrk.body = body:read("*a")\nbody:close()')
    (folder / "request.lua").write_text("\n".join(lines) + "\n")
    return "request.lua"
