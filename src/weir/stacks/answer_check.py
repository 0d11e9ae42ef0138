"""Checks a running stack: waits until it is ready, and compares its answers with the workload."""

import http.client
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from weir.model.errors import TargetError
from weir.model.load import Request
from weir.stacks.workload import Workload

_READY_PAUSE_S = 0.02
_READY_ASK_S = 2.0
CHECKED_REQUESTS = 5
"""Requests with random inputs before and after each trial; all answers must be right."""
_LONG_S = 0.5
"""A stack that needs this long for an answer waits for an upstream, so further requests are sent at once."""
_MANY_REQUESTS = 300
"""Requests before the first trial: they find an error rate of 1 % with a probability of 95 %."""
_MANY_S = 1.0
"""Maximum time of these requests together."""


class CheckAnswers(Protocol):
    """Checks the answers of a server at `base_url`; raises TargetError."""

    def __call__(
        self, workload: Workload, base_url: str, inputs: random.Random, *, path: str | None, timeout_s: float
    ) -> None: ...


class WrongAnswerError(TargetError):
    """An answer of the stack does not match the workload."""


def send_request(request: Request, *, timeout_s: float) -> tuple[int, bytes]:
    """Sends one request on a new connection. Returns status and body; raises OSError or HTTPException."""
    url = urlsplit(request.target)
    connection = http.client.HTTPConnection(url.hostname or "", url.port or 80, timeout=timeout_s)
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request(request.method, path, request.body, dict(request.headers))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def wait_until_ready(
    base_url: str, path: str, *, timeout_s: float, why_dead: Callable[[], str | None], status_below: int = 500
) -> None:
    """Requests `path` until the status is low enough; raises TargetError if the server ended, or is not ready in time.
    `why_dead` returns why the server has ended; None while it runs."""
    started = time.monotonic()
    last = "nothing answered"
    while True:
        reason = why_dead()
        if reason is not None:
            raise TargetError(reason)
        left_s = timeout_s - (time.monotonic() - started)
        if left_s <= 0:
            raise TargetError(f"not ready within {timeout_s:g} s: GET {path}: {last}")
        try:
            status, _ = send_request(Request("GET", base_url + path), timeout_s=min(_READY_ASK_S, left_s))
        except (OSError, http.client.HTTPException) as error:
            last = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        else:
            if status < status_below:
                return
            last = f"status {status}"
        # A server does not report when it begins to listen.
        time.sleep(_READY_PAUSE_S)


def check_answers(
    workload: Workload,
    base_url: str,
    inputs: random.Random,
    *,
    path: str | None,
    timeout_s: float,
    times: int = CHECKED_REQUESTS,
) -> None:
    """Sends requests with random inputs and checks every answer. If the first one is slow, it sends the others at once.
    Raises WrongAnswerError for a wrong answer, TargetError for a missing one."""
    first, *others = [workload.draw(base_url, inputs, path=path) for _ in range(times)]
    began = time.monotonic()
    _check_answer(workload, first, path=path, timeout_s=timeout_s)
    if not others or time.monotonic() - began < _LONG_S:
        for request in others:
            _check_answer(workload, request, path=path, timeout_s=timeout_s)
        return
    # A server with one thread needs the sum of all times.
    check = partial(_check_answer, workload, path=path, timeout_s=timeout_s * len(others))
    with ThreadPoolExecutor(len(others)) as pool:
        for _ in pool.map(check, others):
            pass


def _check_answer(workload: Workload, request: Request, *, path: str | None, timeout_s: float) -> None:
    asked = f"workload {workload.id}: {request.method} {urlsplit(request.target).path}"
    try:
        status, body = send_request(request, timeout_s=timeout_s)
    except (OSError, http.client.HTTPException) as error:
        raise TargetError(f"{asked}: no answer within {timeout_s:g} s: {error or type(error).__name__}") from None
    wrong = workload.why_wrong(request, status, body, path=path)
    if wrong is not None:
        raise WrongAnswerError(f"{asked}: wrong answer: {wrong}")


def check_many_answers(
    workload: Workload, base_url: str, inputs: random.Random, *, path: str | None, timeout_s: float
) -> None:
    """Like `check_answers`, with enough requests to find errors that occur only sometimes, within a second."""
    until = time.monotonic() + _MANY_S
    for _ in range(_MANY_REQUESTS):
        check_answers(workload, base_url, inputs, path=path, timeout_s=timeout_s, times=1)
        if time.monotonic() > until:
            return
