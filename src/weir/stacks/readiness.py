"""Waits until a started stack responds to a request."""

import http.client
import socket
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from weir.model.errors import TargetError, UsageError
from weir.model.load import Request, Tls

if TYPE_CHECKING:
    import ssl

_READY_PAUSE_S = 0.02
_READY_ASK_S = 2.0
_GZIP_OR_ZLIB = 47
"""Argument of `zlib.decompress`, so that zlib accepts both the gzip and the zlib format."""


def send_request(request: Request, *, timeout_s: float, tls: Tls | None = None) -> tuple[int, bytes]:
    """Sends one request on a new connection. Returns the status and the decompressed body. Shows the server the client
    certificate of `tls`. Accepts every certificate of the server, because the engine checks it. Raises OSError or
    HTTPException if there is no valid response, and UsageError if the client certificate is not usable."""
    url = urlsplit(request.target)
    host = url.hostname or ""
    connection = http.client.HTTPConnection(host, url.port, timeout=timeout_s)
    if url.scheme == "https":
        context = _create_tls_context(tls)
        connection = http.client.HTTPSConnection(host, url.port, timeout=timeout_s, context=context)
        if tls is not None and tls.server_name is not None:
            # Without this socket, HTTPSConnection would send the host of the URL as the server name.
            plain = socket.create_connection((host, connection.port), timeout_s)
            connection.sock = context.wrap_socket(plain, server_hostname=tls.server_name)
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


def _create_tls_context(tls: Tls | None) -> "ssl.SSLContext":
    # A slow import, which only HTTPS needs.
    import ssl

    context = ssl._create_unverified_context()
    if tls is not None and tls.certificate is not None:
        try:
            # With a password, Python does not ask the terminal for the password of an encrypted key.
            context.load_cert_chain(tls.certificate, tls.key, password="")
        except OSError as error:
            found = f"TLS: found the client certificate {tls.certificate} and the key {tls.key}"
            why = (getattr(error, "reason", None) or str(error)).replace("_", " ").lower()
            raise UsageError(f"{found}, expected an unencrypted key of this certificate: {why}") from None
    return context


def _requires_certificate(error: Exception) -> bool:
    """Returns whether a server has ended a TLS handshake because the client showed no certificate."""
    return "CERTIFICATE_REQUIRED" in (getattr(error, "reason", None) or "")


def wait_until_ready(
    base_url: str,
    path: str,
    *,
    timeout_s: float,
    why_dead: Callable[[], str | None],
    status_below: int = 500,
    tls: Tls | None = None,
) -> None:
    """Sends requests to `path` until a response has a status below `status_below`. Raises TargetError if the server
    ends, requires a client certificate, or is not ready in time. `why_dead` returns the reason why the server
    ended; None while the server runs."""
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
            status, _ = send_request(Request("GET", base_url + path), timeout_s=min(_READY_ASK_S, left_s), tls=tls)
        except (OSError, http.client.HTTPException) as error:
            if _requires_certificate(error):
                found = f"GET {path}: found no client certificate, which the server requires"
                hint = "--cert FILE --key FILE, or load.tls_certificate and load.tls_key in a study"
                raise TargetError(found, hint=hint) from None
            last = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        else:
            if status < status_below:
                return
            last = f"status {status}"
        # No event reports that a server listens, so weir tries again.
        time.sleep(_READY_PAUSE_S)
