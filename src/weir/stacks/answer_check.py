"""Checks whether the responses of a running stack meet the workload's conditions."""

import http.client
import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from weir.model.errors import TargetError
from weir.model.load import Request, Tls
from weir.stacks.readiness import send_request
from weir.stacks.workload import Workload

CHECKED_REQUESTS = 5
"""Number of check requests with random inputs before and after each trial."""
_LONG_S = 0.5
"""If the first response takes at least this time, weir sends all other requests at the same time."""
_MANY_REQUESTS = 300
"""Maximum number of check requests before the first trial. 300 requests find an error rate of 1 % in 95 % of cases."""
_MANY_S = 1.0
"""Maximum time for all check requests before the first trial."""


class CheckAnswers(Protocol):
    """Function that checks a server's responses. Raises TargetError for a wrong or missing response."""

    def __call__(
        self,
        workload: Workload,
        base_url: str,
        inputs: random.Random,
        *,
        path: str | None,
        timeout_s: float,
        tls: Tls | None = None,
    ) -> None: ...


class WrongAnswerError(TargetError):
    """Raised if a response of the stack does not meet the workload's conditions."""


def check_answers(
    workload: Workload,
    base_url: str,
    inputs: random.Random,
    *,
    path: str | None,
    timeout_s: float,
    tls: Tls | None = None,
    times: int = CHECKED_REQUESTS,
) -> None:
    """Sends requests with random inputs and checks every response. If the first response is slow, sends all other
    requests at once. Raises WrongAnswerError for a wrong response, and TargetError for a missing response."""
    first, *others = [workload.draw(base_url, inputs, path=path) for _ in range(times)]
    began = time.monotonic()
    _check_answer(workload, first, path=path, timeout_s=timeout_s, tls=tls)
    if not others or time.monotonic() - began < _LONG_S:
        for request in others:
            _check_answer(workload, request, path=path, timeout_s=timeout_s, tls=tls)
        return
    # The timeout is longer, because a server with one thread handles these requests one after another.
    check = partial(_check_answer, workload, path=path, timeout_s=timeout_s * len(others), tls=tls)
    with ThreadPoolExecutor(len(others)) as pool:
        for _ in pool.map(check, others):
            pass


def _check_answer(workload: Workload, request: Request, *, path: str | None, timeout_s: float, tls: Tls | None) -> None:
    asked = f"workload {workload.id}: {request.method} {urlsplit(request.target).path}"
    try:
        status, body = send_request(request, timeout_s=timeout_s, tls=tls)
    except (OSError, http.client.HTTPException) as error:
        raise TargetError(f"{asked}: no response within {timeout_s:g} s: {error or type(error).__name__}") from None
    wrong = workload.why_wrong(request, status, body, path=path)
    if wrong is not None:
        raise WrongAnswerError(f"{asked}: wrong response: {wrong}")


def check_many_answers(
    workload: Workload,
    base_url: str,
    inputs: random.Random,
    *,
    path: str | None,
    timeout_s: float,
    tls: Tls | None = None,
) -> None:
    """Sends many requests with random inputs and checks every response, to find rare errors. Stops after a second."""
    until = time.monotonic() + _MANY_S
    for _ in range(_MANY_REQUESTS):
        check_answers(workload, base_url, inputs, path=path, timeout_s=timeout_s, tls=tls, times=1)
        if time.monotonic() > until:
            return
