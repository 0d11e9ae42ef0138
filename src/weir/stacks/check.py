"""Asks a running stack and holds its answers against the workload: is it up, and does it answer right?"""

import http.client
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol
from urllib.parse import urlsplit

from weir.model.errors import TargetError
from weir.model.load import Request
from weir.stacks.workload import Workload

_READY_PAUSE_S = 0.02
_READY_ASK_S = 2.0
CHECKED_REQUESTS = 5
"""Requests with random inputs that must all be answered right before each trial and after it."""
_LONG_S = 0.5
"""A stack that takes this long for an answer waits for something, and can wait for several at once."""
_MANY_REQUESTS = 300
"""Before the first: one wrong answer in a hundred is among so many with a probability of 95 %."""
_MANY_S = 1.0
"""What they may take together."""


class WrongAnswerError(TargetError):
    """The stack answers, and not what the workload says."""


def ask(request: Request, *, timeout_s: float) -> tuple[int, bytes]:
    """Sends one request on a connection of its own and gives status and body.

    Raises:
        OSError, http.client.HTTPException: there was no answer.
    """
    url = urlsplit(request.target)
    connection = http.client.HTTPConnection(url.hostname or "", url.port or 80, timeout=timeout_s)
    try:
        path = url.path or "/"
        connection.request(request.method, f"{path}?{url.query}" if url.query else path, request.body, dict(request.headers))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def wait_until_ready(base_url: str, path: str, *, timeout_s: float, why_dead: Callable[[], str | None]) -> None:
    """Asks for `path` until it is answered with a status below 500.

    Args:
        base_url: scheme, host and port.
        path: what to ask for.
        timeout_s: how long to wait.
        why_dead: says why waiting is in vain; None while it is not.

    Raises:
        TargetError: it died or did not become ready in time.
    """
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
            status, _ = ask(Request("GET", base_url + path), timeout_s=min(_READY_ASK_S, left_s))
        except (OSError, http.client.HTTPException) as error:
            last = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        else:
            if status < 500:
                return
            last = f"status {status}"
        # The only wait by time in weir's control: a server does not say when it begins to listen.
        time.sleep(_READY_PAUSE_S)


class CheckAnswers(Protocol):
    """Asks with random inputs and checks every answer: `check_answers` or `check_many_answers`."""

    def __call__(self, workload: Workload, base_url: str, inputs: random.Random, *, path: str | None, timeout_s: float) -> None:
        """Raises `TargetError`: an answer is wrong or does not come."""


def check_answers(
    workload: Workload,
    base_url: str,
    inputs: random.Random,
    *,
    path: str | None,
    timeout_s: float,
    times: int = CHECKED_REQUESTS,
) -> None:
    """Asks with random inputs and checks every answer: one after the other, or the others at once where the first has taken long.

    Raises:
        WrongAnswerError: an answer is wrong.
        TargetError: one does not come.
    """
    first, *others = [workload.draw(base_url, inputs, path=path) for _ in range(times)]
    began = time.monotonic()
    _check_answer(workload, first, path=path, timeout_s=timeout_s)
    if not others or time.monotonic() - began < _LONG_S:
        for request in others:
            _check_answer(workload, request, path=path, timeout_s=timeout_s)
        return
    with ThreadPoolExecutor(len(others)) as pool:
        # Whoever serves one at a time takes as long for all of them as one after the other.
        checks = [pool.submit(_check_answer, workload, request, path=path, timeout_s=timeout_s * len(others)) for request in others]
    for check in checks:
        check.result()


def _check_answer(workload: Workload, request: Request, *, path: str | None, timeout_s: float) -> None:
    asked = f"workload {workload.id}: {request.method} {urlsplit(request.target).path}"
    try:
        status, body = ask(request, timeout_s=timeout_s)
    except (OSError, http.client.HTTPException) as error:
        raise TargetError(f"{asked}: no answer within {timeout_s:g} s: {error or type(error).__name__}") from None
    wrong = workload.why_wrong(request, status, body, path=path)
    if wrong is not None:
        raise WrongAnswerError(f"{asked}: wrong answer: {wrong}")


def check_many_answers(workload: Workload, base_url: str, inputs: random.Random, *, path: str | None, timeout_s: float) -> None:
    """As `check_answers`, so often that answers that are wrong now and then are found; as often as there is time for where they are slow.

    Raises:
        TargetError: an answer is wrong or does not come.
    """
    until = time.monotonic() + _MANY_S
    for _ in range(_MANY_REQUESTS):
        check_answers(workload, base_url, inputs, path=path, timeout_s=timeout_s, times=1)
        if time.monotonic() > until:
            return
