"""Lists all load generators by name."""

from weir.generators import command_lines, scripts
from weir.generators.external_tool import Tool
from weir.generators.installation import Installation
from weir.generators.load_features import Feature
from weir.model.errors import UsageError

_LIST = (
    Tool(
        name="wrk", title="wrk", install_hint="apt-get install wrk",
        clock="from the first write of a request to the end of its response; wrk adds samples for requests that wrk "
        "should have sent, and leaves out responses after the timeout",
        supported=frozenset({Feature.CLOSED, Feature.NEW_CONNECTIONS}),
        whole_seconds=("duration", "timeout"), version_arguments=("-v",),
        build_arguments=command_lines.build_wrk_arguments, count_threads=command_lines.count_wrk_threads,
    ),
    Tool(
        name="wrk2", title="wrk2", install_hint="build github.com/giltene/wrk2 and put its wrk on the PATH as wrk2",
        clock="from the intended start of a request to the end of its response, both in whole milliseconds",
        supported=frozenset({Feature.NEW_CONNECTIONS, Feature.RATE}),
        whole_seconds=("duration", "timeout"), has_whole_rate=True, version_arguments=("-v",),
        build_arguments=command_lines.build_wrk_arguments, count_threads=command_lines.count_wrk_threads,
    ),
    # hey's -q limits each worker separately and skips late requests, so hey makes no open load.
    Tool(
        name="hey", title="hey", install_hint="apt-get install hey",
        clock="from a request's creation, before connecting, to its response's end; only the first 1,000,000 responses",
        supported=frozenset({Feature.CLOSED, Feature.NEW_CONNECTIONS, Feature.REQUESTS}),
        whole_seconds=("timeout",), equal_shares="workers", version_arguments=(),
        build_arguments=command_lines.build_hey_arguments,
    ),
    Tool(
        name="ab", title="ab", install_hint="apt-get install apache2-utils",
        clock="Total in ab's table: from the start of a request, with a new connection, to the end of its response",
        supported=frozenset({Feature.CLOSED, Feature.NEW_CONNECTIONS, Feature.REQUESTS}),
        whole_seconds=("duration", "timeout"), version_arguments=("-V",),
        build_arguments=command_lines.build_ab_arguments,
        count_threads=lambda _: 1,
        complete_report=command_lines.add_ab_percentiles,
    ),
    Tool(
        name="oha", title="oha", install_hint="cargo install oha --locked",
        clock="from the start of a request, or from its intended start at a rate, to the end of its response",
        supported=frozenset({
            Feature.CLOSED, Feature.NEW_CONNECTIONS, Feature.REQUESTS, Feature.FEW_REQUESTS, Feature.RATE,
            Feature.REQUESTS_AT_A_RATE,
        }),
        build_arguments=command_lines.build_oha_arguments,
        report_file=command_lines.OHA_REPORT,
    ),
    Tool(
        name="k6", title="k6",
        installation=Installation("k6", program="bin/k6", needs=("go>=1.21",)),
        clock="http_req_duration: from the first write of a request to the end of its response, without the earlier "
        "time for connecting and waiting",
        supported=frozenset({Feature.CLOSED, Feature.NEW_CONNECTIONS, Feature.REQUESTS, Feature.RATE}),
        has_whole_rate=True, version_arguments=("version",),
        start_marker=scripts.START_MARKER, start_up_s=30.0,
        build_arguments=scripts.build_k6_arguments,
        # The number of Go's threads.
        build_variables=lambda plan: {"GOMAXPROCS": f"{plan.threads}"},
        report_file=scripts.K6_REPORT,
    ),
    # h2load's --rps limits each connection separately, so h2load makes no open load.
    Tool(
        name="h2load", title="h2load", install_hint="apt-get install nghttp2-client",
        clock="from the submission of a request to the end of its response; only recent versions report percentiles",
        supported=frozenset({Feature.CLOSED, Feature.REQUESTS}),
        build_arguments=command_lines.build_h2load_arguments, count_threads=command_lines.count_h2load_threads,
    ),
    # JMeter writes a line for each sample, in whole milliseconds. weir computes all figures from these lines.
    Tool(
        name="jmeter", title="JMeter",
        installation=Installation("jmeter", program="bin/jmeter", needs=("mvn", scripts.JAVA)),
        clock="elapsed: from the start of a request, before connecting, to the end of its response, in whole ms",
        supported=frozenset({Feature.CLOSED, Feature.NEW_CONNECTIONS, Feature.REQUESTS, Feature.LOOPS}),
        whole_seconds=("duration",), equal_shares="threads",
        start_marker="Starting standalone test", start_up_s=90.0,
        build_arguments=scripts.build_jmeter_arguments,
        count_threads=lambda plan: plan.load.connections,
        build_variables=scripts.build_jmeter_variables,
        report_file=scripts.JMETER_SAMPLES,
    ),
    Tool(
        name="locust", title="Locust",
        installation=Installation("locust", program="venv/bin/locust", needs=("uv",)),
        clock="from the call of Locust's client (FastHttpUser), before connecting, to the end of the response; "
        "percentiles have two digits",
        supported=frozenset({Feature.CLOSED, Feature.NEW_CONNECTIONS}),
        start_marker=scripts.START_MARKER, start_up_s=60.0,
        build_arguments=scripts.build_locust_arguments,
        count_threads=lambda _: 1,
        report_file=scripts.LOCUST_STATS,
        complete_report=scripts.add_locust_failures,
    ),
)  # fmt: skip
TOOLS = {tool.name: tool for tool in _LIST}
GENERATORS: tuple[str, ...] = ("weir", *TOOLS)
"""The possible values of a study's `generator`. `weir` is weir's own engine."""


def get_tool(name: str) -> Tool:
    """Returns the tool with this name. Raises UsageError if no tool has this name."""
    found = TOOLS.get(name)
    if found is None:
        raise UsageError(f"generator: found {name!r}, expected one of {', '.join(GENERATORS)}")
    return found
