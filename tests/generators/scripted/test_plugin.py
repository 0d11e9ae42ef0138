"""Tests the kinds of failures that follow from a client's exceptions. tests/end_to_end/locust tests the plugin
itself."""

import http.client
import socket
import ssl

import pytest

from weir.generators.scripted.locust_plugin import failure_kind


def caused(error: Exception, cause: Exception) -> Exception:
    error.__context__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionRefusedError(), "connect"),
        (socket.gaierror(), "connect"),
        (ssl.SSLError(), "connect"),
        (TimeoutError(), "timeout"),
        (type("ReadTimeout", (OSError,), {})(), "timeout"),
        (ConnectionResetError(), "reset"),
        (http.client.RemoteDisconnected("closed"), "reset"),
        (http.client.IncompleteRead(b""), "reset"),
        (http.client.BadStatusLine("x"), "protocol"),
        (ValueError("a client of another protocol"), "check"),
        (caused(OSError("wrapper"), ConnectionResetError()), "reset"),
        (caused(ConnectionResetError(), BlockingIOError()), "reset"),
        (caused(TimeoutError(), KeyError()), "timeout"),
    ],
)  # fmt: skip
def test_a_failure_is_of_the_kind_of_its_innermost_cause(error: Exception, kind: str) -> None:
    assert failure_kind(error) == kind
