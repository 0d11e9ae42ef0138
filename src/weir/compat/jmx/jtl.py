"""JMeter's table of samples (JTL): a row for each request."""

import csv
from http import HTTPStatus
from typing import TextIO

from weir.compat.jmx.references import write_original
from weir.compat.jmx.samples import Samples
from weir.compat.jmx.test_plan import Assertion, Sampler
from weir.model.request_log import OUTCOMES

JTL_COLUMNS = (
    "timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType", "success",
    "failureMessage", "bytes", "sentBytes", "grpThreads", "allThreads", "URL", "Latency", "IdleTime", "Connect",
)  # fmt: skip
AGGREGATE_COLUMNS = (
    "Label", "# Samples", "Average", "Median", "90% Line", "95% Line", "99% Line", "Min", "Max", "Error %",
    "Throughput", "Received KB/sec", "Sent KB/sec",
)  # fmt: skip
_ROWS_AT_A_TIME = 50_000
_EXCEPTIONS = {
    "connect": ("org.apache.http.conn.HttpHostConnectException", "Connection failed"),
    "timeout": ("java.net.SocketTimeoutException", "Read timed out"),
    "reset": ("org.apache.http.NoHttpResponseException", "The target server failed to respond"),
    "protocol": ("org.apache.http.client.ClientProtocolException", "The response is not HTTP"),
}
"""JMeter's exception and error message for each outcome without a response."""
_VERBS = {"contains": "contain", "matches": "match", "equals": "equal", "substring": "contain"}
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def write_jtl(samples: Samples, file: TextIO, *, with_header: bool) -> None:
    """Writes a row for each sample, in order of the ends of the samples. The columns are JMeter's default columns."""
    writer = csv.writer(file, lineterminator="\n")
    if with_header:
        writer.writerow(JTL_COLUMNS)
    fixed = [[_describe_sampler(sampler) for sampler in native.group.samplers] for native in samples.groups]
    threads = [f"{native.group.name} {native.group.number}-" for native in samples.groups]
    for begin in range(0, len(samples.rows), _ROWS_AT_A_TIME):
        # Python writes its own integers faster than numpy's.
        rows = samples.rows[begin : begin + _ROWS_AT_A_TIME].tolist()
        for group, step, thread, at_ns, _, elapsed, latency, connect, status, outcome, body, *numbers in rows:
            label, url, failure = fixed[group][step]
            if status:
                code, message = str(status), _PHRASES.get(status, "")
            else:
                name, words = _EXCEPTIONS[OUTCOMES[outcome]]
                code, message = f"Non HTTP response code: {name}", f"Non HTTP response message: {words}"
            success, reason = "false" if outcome else "true", failure if OUTCOMES[outcome] == "check" else ""
            at_ms, kind = at_ns // 1_000_000, "text" if body else ""
            answer = at_ms, elapsed, label, code, message, f"{threads[group]}{thread}", kind
            writer.writerow((*answer, success, reason, *numbers, url, latency, 0, connect))


def _describe_sampler(sampler: Sampler) -> tuple[str, str, str]:
    """Returns the label, the URL and the failure message for the rows of a sampler."""
    # A request log does not show which of several texts or assertions failed.
    alone = sampler.assertions[0] if len(sampler.assertions) == 1 else None
    is_known = alone is not None and (alone.any_is_enough or len(alone.texts) == 1)
    failure = _describe_failure(alone) if alone is not None and is_known else ""
    return sampler.name, sampler.origin + write_original(sampler.path), failure


def _describe_failure(assertion: Assertion) -> str:
    failed = f"Test failed: {'code' if assertion.is_for_status else 'text'} expected"
    if assertion.any_is_enough:
        return "".join(f"{failed} something using /{text}/\t" for text in assertion.texts)
    return f"{failed} {'not ' if assertion.is_negated else ''}to {_VERBS[assertion.comparison]} /{assertion.texts[0]}/"
