"""JMeter's table of samples (JTL), a row for each request, with the columns of its default settings."""

import csv
from http import HTTPStatus
from typing import TextIO

from weir.compat.jmx.plan import Assertion, Sampler
from weir.compat.jmx.samples import Samples
from weir.compat.jmx.values import written
from weir.model.request_log import OUTCOMES

COLUMNS = (
    "timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType", "success", "failureMessage", "bytes",
    "sentBytes", "grpThreads", "allThreads", "URL", "Latency", "IdleTime", "Connect",
)  # fmt: skip
_ROWS_AT_A_TIME = 50_000
_WITHOUT_ANSWER = {
    "connect": ("org.apache.http.conn.HttpHostConnectException", "Connection failed"),
    "timeout": ("java.net.SocketTimeoutException", "Read timed out"),
    "reset": ("org.apache.http.NoHttpResponseException", "The target server failed to respond"),
    "protocol": ("org.apache.http.client.ClientProtocolException", "The answer is not HTTP"),
}
"""What JMeter calls the failures that the engine tells apart."""
_WORDS = {"contains": "contain", "matches": "match", "equals": "equal", "substring": "contain"}


def write_jtl(samples: Samples, file: TextIO, *, with_header: bool) -> None:
    """Writes the rows, in the order in which samples ended."""
    writer = csv.writer(file, lineterminator="\n")
    if with_header:
        writer.writerow(COLUMNS)
    constant = [[_Constant(sampler) for sampler in native.group.samplers] for native in samples.groups]
    names = [f"{native.group.name} {native.group.number}-" for native in samples.groups]
    columns = (
        samples.started_ns // 1_000_000, samples.elapsed_ms, samples.group, samples.step, samples.thread, samples.status, samples.outcome,
        samples.received_bytes, samples.body_bytes, samples.sent_bytes, samples.group_threads, samples.all_threads, samples.latency_ms,
        samples.connect_ms,
    )  # fmt: skip
    for begin in range(0, len(samples.group), _ROWS_AT_A_TIME):
        # As Python's own integers, which are quicker to write than numpy's.
        for at_ms, elapsed, group, step, thread, status, outcome, got, body, sent, own, all_, latency, connect in zip(
            *(column[begin : begin + _ROWS_AT_A_TIME].tolist() for column in columns), strict=True
        ):
            known = constant[group][step]
            code, message = known.answer(status, OUTCOMES[outcome])
            writer.writerow(
                (
                    at_ms, elapsed, known.label, code, message, f"{names[group]}{thread}", "text" if body else "",
                    "false" if outcome else "true", known.failure if OUTCOMES[outcome] == "check" else "", got, sent, own, all_, known.url,
                    latency, 0, connect,
                )
            )  # fmt: skip


class _Constant:
    """What is the same in all rows of a sampler."""

    def __init__(self, sampler: Sampler) -> None:
        self.label = sampler.name
        self.url = sampler.origin + written(sampler.path)
        # Which of several texts or assertions did not hold the engine does not say.
        alone = sampler.assertions[0] if len(sampler.assertions) == 1 else None
        self.failure = _failure(alone) if alone is not None and (alone.any_of or len(alone.texts) == 1) else ""

    def answer(self, status: int, outcome: str) -> tuple[str, str]:
        """Response code and message."""
        if status:
            return str(status), HTTPStatus(status).phrase if status in _PHRASES else ""
        name, words = _WITHOUT_ANSWER[outcome]
        return f"Non HTTP response code: {name}", f"Non HTTP response message: {words}"


_PHRASES = frozenset(HTTPStatus)


def _failure(assertion: Assertion) -> str:
    what = "code" if assertion.of_status else "text"
    if assertion.any_of:
        return "".join(f"Test failed: {what} expected something using /{text}/\t" for text in assertion.texts)
    return f"Test failed: {what} expected {'not ' if assertion.is_denied else ''}to {_WORDS[assertion.asked]} /{assertion.texts[0]}/"
