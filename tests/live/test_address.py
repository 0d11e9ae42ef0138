"""Tests the page's address, and the `Host` headers that it accepts."""

import socket

import pytest

from weir.live import Address, parse_address
from weir.live.address import accepts_host
from weir.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (None, Address("127.0.0.1", 0)),
        ("0.0.0.0", Address("0.0.0.0", 0)),
        ("127.0.0.1:8089", Address("127.0.0.1", 8089)),
        ("localhost:8089", Address("localhost", 8089)),
        ("bench-1.example:80", Address("bench-1.example", 80)),
        ("::1", Address("::1", 0)),
        ("[::1]:8089", Address("::1", 8089)),
    ],
)
def test_an_address_may_have_a_port(text: str | None, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", ":8089", "127.0.0.1:", "127.0.0.1:99999", "[127.0.0.1]:1", "[::1", "a b", "http://x", "x/y", "::1:x"]
)
def test_what_is_no_address_is_refused_with_the_flag_and_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"--listen: found .*expected an address of this machine.*0\.0\.0\.0"):
        parse_address(text)


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80"), ("0.0.0.0", "127.0.0.1:80"), ("::", "[::1]:80")],
)
def test_an_address_is_shown_as_it_stands_in_a_url(host: str, shown: str) -> None:
    assert Address(host, 80).shown == shown


def test_only_loopback_is_loopback() -> None:
    assert [Address(host).is_loopback for host in ("127.0.0.1", "127.0.0.2", "::1", "localhost")] == [True] * 4
    assert [Address(host).is_loopback for host in ("0.0.0.0", "::", "192.168.1.5", "bench-1")] == [False] * 4


@pytest.mark.parametrize("host", ["127.0.0.1:8089", "localhost:8089", "LOCALHOST:8089", "[::1]:8089", "127.0.0.2:8089"])
def test_a_server_on_loopback_answers_to_the_names_of_loopback(host: str) -> None:
    assert accepts_host(Address("127.0.0.1", 8089), host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8089", "evil.example", "127.0.0.1.evil.example:8089", "localhost.evil.example:8089", "127.0.0.1", "127.0.0.1:8090",
        "192.168.1.5:8089", "", "127.0.0.1:8089:8089", "user@127.0.0.1:8089", "127.0.0.1:8089/", " 127.0.0.1:8089", "2130706433:8089",
        "0.0.0.0:8089", "[::ffff:1.2.3.4]:8089",
    ],
)  # fmt: skip
def test_a_server_on_loopback_answers_to_no_other_name(host: str) -> None:
    assert not accepts_host(Address("127.0.0.1", 8089), host)


def test_a_server_on_every_address_answers_to_any_address_but_to_no_name_of_somebody_elses() -> None:
    everywhere = Address("0.0.0.0", 8089)
    for host in (
        "192.168.1.5:8089",
        "10.0.0.1:8089",
        "[2001:db8::1]:8089",
        "localhost:8089",
        f"{socket.gethostname()}:8089",
    ):
        assert accepts_host(everywhere, host), host
    assert not accepts_host(everywhere, "evil.example:8089")
    assert not accepts_host(everywhere, "192.168.1.5:80")


def test_a_server_on_one_address_answers_to_that_alone() -> None:
    assert accepts_host(Address("192.168.1.5", 80), "192.168.1.5")
    assert not accepts_host(Address("192.168.1.5", 80), "127.0.0.1")
    assert accepts_host(Address("2001:db8::1", 80), "[2001:0db8:0:0::1]")
    assert accepts_host(Address("bench-1.example", 80), "Bench-1.example:80")
    assert not accepts_host(Address("bench-1.example", 80), "evil.example:80")
