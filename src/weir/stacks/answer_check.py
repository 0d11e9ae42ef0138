"""Compares the responses of a running stack with the workload's expectation."""

import http.client
import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from weir.model.errors import TargetError
from weir.model.load import Request
from weir.stacks.readiness import send_request
from weir.stacks.workload import Workload

CHECKED_REQUESTS = 5
"""Number of requests with random inputs before and after each trial. All responses must be correct."""
_LONG_S = 0.5
"""A stack with a slower response waits for an upstream, so weir sends the further requests at the same time."""
_MANY_REQUESTS = 300
"""Number of requests before the first trial: enough to find an error rate of 1 % with a probability of 95 %."""
_MANY_S = 1.0
"""Maximum time for the requests before the first trial together."""


class CheckAnswers(Protocol):
    """Function that checks the responses of a server at `base_url`, and raises TargetError."""

    def __call__(
        self, workload: Workload, base_url: str, inputs: random.Random, *, path: str | None, timeout_s: float
    ) -> None: ...


class WrongAnswerError(TargetError):
    """Error: a response of the stack does not match the workload's expectation."""


def check_answers(
    workload: Workload,
    base_url: str,
    inputs: random.Random,
    *,
    path: str | None,
    timeout_s: float,
    times: int = CHECKED_REQUESTS,
) -> None:
    """Sends requests with random inputs and checks every response. If the first response is slow, sends the other
    requests at the same time. Raises WrongAnswerError for a wrong response, TargetError for a missing response."""
    first, *others = [workload.draw(base_url, inputs, path=path) for _ in range(times)]
    began = time.monotonic()
    _check_answer(workload, first, path=path, timeout_s=timeout_s)
    if not others or time.monotonic() - began < _LONG_S:
        for request in others:
            _check_answer(workload, request, path=path, timeout_s=timeout_s)
        return
    # The timeout is longer, because a server with one thread handles these requests one after the other.
    check = partial(_check_answer, workload, path=path, timeout_s=timeout_s * len(others))
    with ThreadPoolExecutor(len(others)) as pool:
        for _ in pool.map(check, others):
            pass


def _check_answer(workload: Workload, request: Request, *, path: str | None, timeout_s: float) -> None:
    asked = f"workload {workload.id}: {request.method} {urlsplit(request.target).path}"
    try:
        status, body = send_request(request, timeout_s=timeout_s)
    except (OSError, http.client.HTTPException) as error:
        raise TargetError(f"{asked}: no response within {timeout_s:g} s: {error or type(error).__name__}") from None
    wrong = workload.why_wrong(request, status, body, path=path)
    if wrong is not None:
        raise WrongAnswerError(f"{asked}: wrong response: {wrong}")


def check_many_answers(
    workload: Workload, base_url: str, inputs: random.Random, *, path: str | None, timeout_s: float
) -> None:
    """Checks responses like `check_answers`, with enough requests to find occasional errors, within a second."""
    until = time.monotonic() + _MANY_S
    for _ in range(_MANY_REQUESTS):
        check_answers(workload, base_url, inputs, path=path, timeout_s=timeout_s, times=1)
        if time.monotonic() > until:
            return
