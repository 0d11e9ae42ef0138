"""Tests the kinds of failures that follow from a client's exceptions. tests/end_to_end/locust tests the plugin
itself."""

import http.client
import socket
import ssl
from types import SimpleNamespace

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
    assert failure_kind(None, 0, error) == kind


def test_the_error_of_a_response_decides_before_the_exception_of_the_request() -> None:
    assert failure_kind(SimpleNamespace(error=ConnectionResetError()), 0, ValueError()) == "reset"
    assert failure_kind(SimpleNamespace(error=None), 0, TimeoutError()) == "timeout"


def test_a_response_with_a_status_fails_only_by_a_check() -> None:
    assert failure_kind(SimpleNamespace(error=ConnectionResetError()), 500, TimeoutError()) == "check"
