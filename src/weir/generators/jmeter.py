"""JMeter without its GUI: a closed loop of Java threads, by a test plan that weir writes."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from weir.compat.reports.csv_tables import read_jtl
from weir.generators.feature import Feature
from weir.generators.installation import Installation
from weir.generators.tool import InstalledTool, body_file, no_fewer_than_connections, not_whole_seconds, template
from weir.model.claim import Claim
from weir.model.load import ClosedLoad, LoadPlan
from weir.stacks.tools import base_environment

_PLAN, _SAMPLES, _LOG = "plan.jmx", "samples.jtl", "jmeter.log"
_JAVA = "java>=11"
_NOT_SAVED = (
    "response_message",
    "data_type",
    "assertion_results_failure_message",
    "thread_counts",
    "url",
    "idle_time",
)
"""Columns of samples that nobody reads here and that take time to write."""


class JMeter(InstalledTool):
    """JMeter. It looks at no certificate. It writes a line for each sample, with whole milliseconds; all its figures are of these."""

    name = "jmeter"
    title = "JMeter"
    clock = "elapsed: from before a request is made, connecting included, to the end of its answer, in whole milliseconds"
    can = frozenset({Feature.NEW_CONNECTIONS, Feature.REQUESTS, Feature.LOOPS})
    begins = "Starting standalone test"
    start_up_s = 90.0
    installation = Installation("jmeter", program="bin/jmeter", needs=("mvn", _JAVA))

    def _cannot_besides(self, plan: LoadPlan) -> list[str]:
        reasons = not_whole_seconds(self.title, duration_s=plan.duration_s) + no_fewer_than_connections(self.title, plan)
        if plan.requests is not None and plan.requests % plan.load.connections:
            reasons.append(f"{self.title} has each of {plan.load.connections} threads send as many: it cannot send {plan.requests}.")
        return reasons

    def arguments(self, plan: LoadPlan, folder: Path) -> list[str]:
        """Without its port for commands, which two of it would share."""
        (folder / _PLAN).write_text(_plan(plan, folder), encoding="utf-8")
        properties = {"jmeterengine.nongui.port": "0", "jmeter.save.saveservice.output_format": "csv"}
        properties |= {f"jmeter.save.saveservice.{column}": "false" for column in _NOT_SAVED}
        return ["-n", "-t", _PLAN, "-l", _SAMPLES, "-j", _LOG, *(f"-J{key}={value}" for key, value in properties.items())]

    def environment(self, plan: LoadPlan) -> Mapping[str, str]:
        """With a JDK that it runs on."""
        java = base_environment([_JAVA])
        return {**super().environment(plan), **{name: java[name] for name in ("PATH", "JAVA_HOME") if name in java}}

    def threads(self, plan: LoadPlan) -> int:
        """One for each user."""
        return plan.load.connections

    def read(self, printed: str, folder: Path) -> Claim:
        """From the samples that it wrote."""
        (claim,) = read_jtl((folder / _SAMPLES).read_text(), self.title)
        return claim


def _plan(plan: LoadPlan, folder: Path) -> str:
    request, load, url = plan.request, plan.load, urlsplit(plan.request.target)
    assert isinstance(load, ClosedLoad)
    loops = load.loops or (-1 if plan.requests is None else plan.requests // load.connections)
    values = {
        "users": f"{load.connections}",
        "duration_s": f"{plan.duration_s:.0f}",
        "loops": f"{loops}",
        "headers": "".join(_element("", "Header", {"Header.name": name, "Header.value": value}) for name, value in request.headers),
        "scheme": url.scheme,
        "host": escape(url.hostname or ""),
        "port": f"{url.port or ''}",
        "path": escape(url._replace(scheme="", netloc="").geturl()),
        "method": escape(request.method),
        "timeout_ms": f"{round(plan.timeout_s * 1000)}",
        "keep_alive": "true" if plan.keep_alive else "false",
        "files": "" if request.body is None else _body(folder / body_file(plan, folder)),
    }
    return template("plan.jmx").substitute(values)


def _body(path: Path) -> str:
    """One file without a name is sent as it is. No file: not even a length of 0 is sent."""
    file = _element(str(path), "HTTPFileArg", {"File.path": str(path), "File.paramname": "", "File.mimetype": ""})
    files = f'<collectionProp name="HTTPFileArgs.files">{file}</collectionProp>'
    return f'<elementProp name="HTTPsampler.Files" elementType="HTTPFileArgs">{files}</elementProp>'


def _element(name: str, kind: str, properties: Mapping[str, str]) -> str:
    inner = "".join(f'<stringProp name="{key}">{escape(value)}</stringProp>' for key, value in properties.items())
    return f'<elementProp name="{escape(name)}" elementType="{kind}">{inner}</elementProp>'
