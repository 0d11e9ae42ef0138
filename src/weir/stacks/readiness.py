"""Waits until a started stack responds to a request."""

import http.client
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from weir.model.errors import TargetError
from weir.model.load import Request

_READY_PAUSE_S = 0.02
_READY_ASK_S = 2.0
_GZIP_OR_ZLIB = 47
"""Argument of `zlib.decompress`, so that zlib accepts both the gzip and the zlib format."""


def send_request(request: Request, *, timeout_s: float) -> tuple[int, bytes]:
    """Sends one request on a new connection. Returns the status and the decompressed body. Accepts every certificate,
    because the engine checks the certificate. Raises OSError or HTTPException without a valid response."""
    url = urlsplit(request.target)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout_s)
    if url.scheme == "https":
        # A slow import for HTTPS only.
        import ssl

        trusting = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(url.hostname or "", url.port, timeout=timeout_s, context=trusting)
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request(request.method, path, request.body, dict(request.headers))
        response = connection.getresponse()
        body = response.read()
        if response.headers.get("Content-Encoding", "") in ("gzip", "deflate"):
            with suppress(zlib.error):
                body = zlib.decompress(body, _GZIP_OR_ZLIB)
        return response.status, body
    finally:
        connection.close()


def wait_until_ready(
    base_url: str, path: str, *, timeout_s: float, why_dead: Callable[[], str | None], status_below: int = 500
) -> None:
    """Sends requests to `path` until a response has a status below `status_below`. Raises TargetError if the server
    ends, or is not ready in time. `why_dead` returns the reason of the server's end; None while the server runs."""
    started = time.monotonic()
    last = "no response"
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
        # No event reports that a server listens, so weir tries again.
        time.sleep(_READY_PAUSE_S)
