"""Tests the guard's rules one by one."""

import pytest
from starlette.datastructures import Headers

from weir.live import Address
from weir.live.security import Keys, Rules

HOST = "127.0.0.1:8089"
KEYS = Keys(token="the-token", form="the-form-token")
RULES = Rules(Address("127.0.0.1", 8089), KEYS)
COOKIE = "weir-8089=the-token"
POST = {
    "host": HOST, "origin": f"http://{HOST}", "cookie": COOKIE, "x-weir-form": "the-form-token", "content-type": "application/json",
}  # fmt: skip


def status(method: str, headers: dict[str, str], query: dict[str, list[str]] | None = None) -> int:
    refusal = RULES.find_refusal(method, Headers(headers), query or {})
    return 200 if refusal is None else refusal[0]


def test_the_printed_address_and_then_the_cookie_let_one_in() -> None:
    assert status("GET", {"host": HOST}, {"token": ["the-token"]}) == 200
    assert status("GET", {"host": HOST, "cookie": COOKIE}) == 200


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, {}),
        ({}, {"token": [""]}),
        ({}, {"token": ["the-toke"]}),
        ({}, {"token": ["the-token", "the-token"]}),
        ({}, {"Token": ["the-token"]}),
        ({}, {"token": ["the-tök\ud800"]}),
        ({"cookie": "weir-8089="}, {}),
        ({"cookie": "weir-8089=the-form-token"}, {}),
        ({"cookie": "weir-9999=the-token"}, {}),
        ({"cookie": "weir=the-token"}, {}),
        ({"x-weir-form": "the-form-token"}, {}),
        ({"authorization": "Bearer the-token"}, {}),
    ],
)
def test_nobody_gets_in_without_the_token(headers: dict[str, str], query: dict[str, list[str]]) -> None:
    assert status("GET", {"host": HOST, **headers}, query) == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8089", "127.0.0.1", ""])
def test_a_host_that_is_not_this_server_is_refused_even_with_the_token(host: str) -> None:
    assert status("GET", {"host": host, "cookie": COOKIE}, {"token": ["the-token"]}) == 421
    assert status("POST", POST | {"host": host, "origin": f"http://{host}"}) == 421


def test_two_hosts_are_refused() -> None:
    headers = Headers(raw=[(b"host", HOST.encode()), (b"host", b"evil.example"), (b"cookie", COOKIE.encode())])
    refusal = RULES.find_refusal("GET", headers, {})
    assert refusal is not None
    assert refusal[0] == 421


ORIGINS = [
    "http://evil.example",
    "null",
    f"https://{HOST}",
    "http://127.0.0.1",
    "http://127.0.0.1:8090",
    "http://localhost:8089",
    f"http://{HOST}/",
    "",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_another_origin_is_refused(origin: str) -> None:
    assert status("GET", {"host": HOST, "cookie": COOKIE, "origin": origin}) == 403
    assert status("POST", POST | {"origin": origin}) == 403


def test_a_post_of_the_page_gets_through() -> None:
    assert status("POST", POST) == 200


@pytest.mark.parametrize("missing", ["origin", "cookie", "x-weir-form"])
def test_a_post_that_lacks_anything_is_refused(missing: str) -> None:
    assert status("POST", {name: value for name, value in POST.items() if name != missing}) == 403


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cookie", "weir-8089=the-form-token"),
        ("x-weir-form", "the-token"),
        ("x-weir-form", ""),
        ("x-weir-form", "the-form-token "),
    ],
)
def test_a_post_with_the_wrong_secret_is_refused(name: str, value: str) -> None:
    assert status("POST", POST | {name: value}) == 403


def test_a_post_is_not_let_in_by_an_address() -> None:
    without = {name: value for name, value in POST.items() if name != "cookie"}
    assert status("POST", without, {"token": ["the-token"]}) == 403


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "", "application/jsonp"]
)
def test_what_a_form_of_another_site_could_send_is_refused(kind: str) -> None:
    assert status("POST", POST | {"content-type": kind}) == 415


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get"])
def test_other_methods_are_refused(method: str) -> None:
    assert status(method, POST) == 405


def test_every_server_has_secrets_of_its_own() -> None:
    keys = [Keys() for _ in range(100)]
    assert len({key.token for key in keys} | {key.form for key in keys}) == 200
    assert min(len(key.token) for key in keys) >= 32
