"""Prepares the command lines of JMeter, k6 and Locust. weir adds an output for the samples to the user's arguments, and
leaves the user's own outputs unchanged."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from weir.compat.reports import read_single_report
from weir.generators.registry import get_tool
from weir.generators.scripted.jmeter_plugins import require_plugins
from weir.generators.scripted.lines import Claims
from weir.generators.scripted.locust_socket import LocustSocket
from weir.generators.scripted.locust_version import find_python
from weir.generators.scripted.process import NoSource, Source
from weir.generators.scripted.script_settings import choose_k6_length
from weir.generators.scripted.tables import Jtl, K6Points, K6Requests, TableSource
from weir.generators.scripts import build_jmeter_variables
from weir.model.errors import UsageError
from weir.model.load import LoadPlan
from weir.observe.jvm import GC_PAUSE, build_pause_log_path, find_pause_logs, pause_log_option, read_pause_events
from weir.paths import find_locust_recorder

LOCUST_PLUGIN = Path(__file__).with_name("locust_plugin.py")
LOCUST_CLOCK = "from the end of the user's pause to the end of the response, as measured by Locust"
_OWN_FORMAT = {
    "output_format": "csv",
    "print_field_names": "true",
    "timestamp_format": "ms",
    "default_delimiter": ",",
    **dict.fromkeys(
        ("time", "label", "response_code", "response_message", "thread_name", "successful", "bytes", "thread_counts"),
        "true",
    ),
    **dict.fromkeys(("data_type", "url", "idle_time", "connect_time", "latency", "sent_bytes"), "false"),
    "assertion_results_failure_message": "false",
}
"""The format of JMeter's samples if the user asks for no file of samples."""
_SUMMARY = re.compile(
    r"=\s+(?P<requests>\d+) in [\d:]+ =\s+(?P<throughput_rps>[\d.]+)/s Avg:\s+(?P<mean_ms>\d+) "
    r"Min:\s+(?P<min_ms>\d+) Max:\s+(?P<max_ms>\d+) Err:\s+(?P<failed>\d+) \([\d.]+%\)\s*$",
    re.M,
)
_K6_MODULE = re.compile(r"""["']k6/x/([\w-]+)""")


@dataclass(frozen=True, kw_only=True)
class PreparedTool:
    """A tool's command line and the origin of its samples."""

    name: str
    title: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    source: Source
    clock: str
    measure_pauses: Callable[[int, int], float] = lambda _start_ns, _end_ns: 0.0
    """Returns the seconds in which garbage collections stopped the tool, between two times of CLOCK_MONOTONIC."""


# --- JMeter


def prepare_jmeter(arguments: Sequence[str], folder: Path, tell: Callable[[str], None]) -> PreparedTool:
    """Returns JMeter's command line. `folder` is an empty folder for weir's own files. Installs JMeter if it is
    missing. Raises UsageError if the plan needs a plugin that is not installed."""
    tool = get_tool("jmeter")
    program, version = tool.install(tell), tool.version()
    arguments = list(arguments)
    if find_option(arguments, "-t", "--testfile") is None:
        # A plan without `-t`, such as `weir jmeter plan.jmx`.
        plans = [place for place, word in enumerate(arguments) if word.endswith(".jmx") and not word.startswith("-")]
        for place in plans[:1]:
            arguments.insert(place, "-t")
    plan = find_option(arguments, "-t", "--testfile")
    if plan is None:
        return PreparedTool(
            name="jmeter", title="JMeter", command=[str(program), *arguments], source=NoSource(), clock=tool.clock
        )
    require_plugins(Path(plan), program)
    if not {"-n", "--nongui"} & set(arguments):
        arguments.insert(0, "-n")
    samples = find_option(arguments, "-l", "--logfile")
    if samples is None:
        samples = str(folder / "samples.jtl")
        settings = [f"-Jjmeter.save.saveservice.{name}={value}" for name, value in _OWN_FORMAT.items()]
        arguments += ["-l", samples, *settings]
    elif {"-f", "--forceDeleteResultFile"} & set(arguments):
        # JMeter would delete this file at its start. weir reads only rows of this run.
        Path(samples).unlink(missing_ok=True)
    log = Path(find_option(arguments, "-j", "--jmeterlogfile") or "jmeter.log")
    pauses = folder / "jmeter.log"
    variables = os.environ | build_jmeter_variables()
    option = pause_log_option(build_pause_log_path(pauses))
    variables["JVM_ARGS"] = f"{variables.get('JVM_ARGS', '')} {option}".strip()

    def measure_pauses(start_ns: int, end_ns: int) -> float:
        events = read_pause_events(find_pause_logs(pauses), start_ns=start_ns, end_ns=end_ns)
        return sum(event.duration_s or 0.0 for event in events if event.kind == GC_PAUSE)

    source = TableSource(
        Path(samples), Jtl(), version, Path(plan).name, lambda: _read_jmeter_claims(log), cpus=_count_cpus()
    )
    return PreparedTool(
        name="jmeter",
        title="JMeter",
        command=[str(program), *arguments],
        environment=variables,
        source=source,
        clock=tool.clock,
        measure_pauses=measure_pauses,
    )


def _read_jmeter_claims(log: Path) -> Claims | None:
    summaries = list(_SUMMARY.finditer(log.read_text(errors="replace")))
    return Claims.model_validate(summaries[-1].groupdict()) if summaries else None


# --- k6


def prepare_k6(arguments: Sequence[str], folder: Path, tell: Callable[[str], None]) -> PreparedTool:
    """Returns k6's command line. `folder` is an empty folder for weir's own files. Builds k6 with Go if it is missing.
    Raises UsageError if the script needs an extension that k6 does not have."""
    tool = get_tool("k6")
    program = tool.install(tell)
    words = list(arguments)
    if "run" not in words:
        return PreparedTool(name="k6", title="k6", command=[str(program), *words], source=NoSource(), clock=tool.clock)
    at = words.index("run") + 1
    script = next((word for word in reversed(words[at:]) if word.endswith((".js", ".ts", ".tar")) or word == "-"), "-")
    _require_extensions(Path(script), str(program))
    pipe, export = folder / "samples", folder / "summary.json"
    os.mkfifo(pipe)
    variables = dict(os.environ)
    is_own = tool.installation is not None and program == tool.installation.find()
    outputs = [f"{'weir' if is_own else 'json'}={pipe}"]
    if find_option(words, "-o", "--out") is None and (asked := variables.get("K6_OUT")):
        # If k6 gets an option `--out`, it ignores this variable.
        outputs += asked.split(",")
    exported = find_option(words, "", "--summary-export") or variables.setdefault("K6_SUMMARY_EXPORT", str(export))
    command = [str(program), *words[:at], *(f"--out={output}" for output in outputs), *words[at:]]
    samples = K6Requests() if is_own else K6Points()
    source = TableSource(
        pipe, samples, tool.version(), Path(script).name, lambda: _read_k6_claims(Path(exported)), cpus=_count_cpus()
    )
    return PreparedTool(name="k6", title="k6", command=command, environment=variables, source=source, clock=tool.clock)


def _require_extensions(script: Path, program: str) -> None:
    """Raises UsageError if a script imports an extension (`k6/x/NAME`) that is not in the program."""
    if script.suffix not in (".js", ".ts") or not script.is_file():
        return
    known = Path(program).read_bytes()
    for name in dict.fromkeys(_K6_MODULE.findall(script.read_text(errors="replace"))):
        if f"k6/x/{name}".encode() not in known:
            build = f"go run go.k6.io/xk6/cmd/xk6@latest build --with github.com/grafana/xk6-{name}"
            raise UsageError(f"{script}: needs the extension k6/x/{name}, which {program} does not have", hint=build)


def _read_k6_claims(export: Path) -> Claims | None:
    found = read_single_report(export.read_text(), "k6")
    if found.mean_s is None or found.min_s is None or found.max_s is None or found.throughput_rps is None:
        return None
    return Claims(
        requests=found.requests or 0,
        users=found.users or 0,
        failed=int(found.failed or 0),
        mean_ms=found.mean_s.value * 1e3,
        min_ms=found.min_s.value * 1e3,
        max_ms=found.max_s.value * 1e3,
        throughput_rps=found.throughput_rps.value,
    )


# --- Locust


def prepare_locust(arguments: Sequence[str], python: str) -> PreparedTool:
    """Returns Locust's command line with weir's plugin. `python` is the Python that has Locust. Raises UsageError if
    weir was installed without its recorder."""
    recorder = find_locust_recorder()
    source = LocustSocket()
    command = [python, str(LOCUST_PLUGIN), str(recorder), source.path, *arguments]
    return PreparedTool(name="locust", title="Locust", command=command, source=source, clock=LOCUST_CLOCK)


# --- scripts in studies

SCRIPT_TOOLS = ("jmeter", "k6", "locust")


def prepare_script(tool: str, plan: LoadPlan, folder: Path, own_folder: Path) -> PreparedTool:
    """Returns the command line of a tool with the script `plan.script` for the target of `plan`.

    weir fills the fields `{host}`, `{port}`, `{users}` and `{duration}` in the script's arguments. weir always passes
    target and users also as JMeter's properties, k6's variables or Locust's options. k6 also gets the users and the
    duration of `plan` if the script does not set the length of the load. The tool writes its files to `folder`.
    `own_folder` is an empty folder for weir's files.
    """
    url = urlsplit(plan.request.target)
    host, port = url.hostname or "", str(url.port or (443 if url.scheme == "https" else 80))
    users = str(plan.load.connections)
    fields = {"{host}": host, "{port}": port, "{users}": users, "{duration}": f"{plan.duration_s:g}"}
    script, *rest = plan.script
    for name, value in fields.items():
        rest = [word.replace(name, value) for word in rest]
    match tool:
        case "jmeter":
            given = {"host": host, "port": port, "threads": users, "jmeterengine.nongui.port": "0"}
            properties = [f"-J{name}={value}" for name, value in given.items()]
            words = ["-n", "-t", script, "-j", str(folder / "jmeter.log"), *properties, *rest]
            return prepare_jmeter(words, own_folder, lambda _: None)
        case "k6":
            given = {"HOST": host, "PORT": port, "USERS": users}
            variables = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
            program = str(get_tool("k6").install(lambda _: None))
            length = choose_k6_length(program, script, [*variables, *rest], users=users, duration_s=plan.duration_s)
            fixed = ["run", "--quiet", "--no-color", "--no-usage-report", "--address", ""]
            words = [*fixed, *variables, *length, *rest, script]
            return prepare_k6(words, own_folder, lambda _: None)
        case _:
            words = ["-f", script, "--headless", "--only-summary", "--host", f"{url.scheme}://{url.netloc}"]
            return prepare_locust([*words, "-u", users, "-r", users, *rest], find_python(None))


def find_option(words: Sequence[str], short: str, long: str) -> str | None:
    """Returns the value of an option of a command line: `-l FILE`, `-lFILE`, `--logfile FILE` or `--logfile=FILE`.

    >>> find_option(["-n", "-tplan.jmx"], "-t", "--testfile")
    'plan.jmx'
    """
    for word, following in zip(words, [*words[1:], None], strict=True):
        if word in (short, long):
            return following
        if word.startswith(f"{long}="):
            return word.partition("=")[2]
        if short and word.startswith(short) and not word.startswith("--"):
            return word[len(short) :].removeprefix("=")
    return None


def _count_cpus() -> int:
    return len(os.sched_getaffinity(0))
