"""Compares the answers of a running stack with the workload."""

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
        raise TargetError(f"{asked}: no response within {timeout_s:g} s: {error or type(error).__name__}") from None
    wrong = workload.why_wrong(request, status, body, path=path)
    if wrong is not None:
        raise WrongAnswerError(f"{asked}: wrong response: {wrong}")


def check_many_answers(
    workload: Workload, base_url: str, inputs: random.Random, *, path: str | None, timeout_s: float
) -> None:
    """Like `check_answers`, with enough requests to find errors that occur only sometimes, within a second."""
    until = time.monotonic() + _MANY_S
    for _ in range(_MANY_REQUESTS):
        check_answers(workload, base_url, inputs, path=path, timeout_s=timeout_s, times=1)
        if time.monotonic() > until:
            return
