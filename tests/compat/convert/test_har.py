"""A recording becomes the steps of a scenario. Secrets, assets and other hosts stay out, and the notes count them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weir.compat.convert import convert
from weir.compat.convert.conversion import Conversion
from weir.compat.study_export import format_scenario
from weir.model.errors import UsageError

SHOP = "https://shop.example"
Record = Callable[..., Conversion]


def entry(method: str, url: str, at_s: float = 0, /, **how: Any) -> dict[str, Any]:
    """Returns an entry of a recording that begins `at_s` seconds after the start and takes 50 ms."""
    headers = [{"name": name, "value": value} for name, value in how.get("headers", {}).items()]
    request: dict[str, Any] = {"method": method, "url": url, "headers": headers}
    if "post" in how:
        request["postData"] = how["post"]
    answered = [{"name": name, "value": value} for name, value in how.get("answered", {}).items()]
    content = {"mimeType": how.get("kind", "text/html"), "text": how.get("text", "")}
    minutes, seconds = divmod(at_s, 60)
    return {
        "startedDateTime": f"2026-03-01T10:{int(minutes):02}:{seconds:06.3f}Z",
        "time": 50,
        "request": request,
        "response": {"status": how.get("status", 200), "headers": answered, "content": content},
        **how.get("more", {}),
    }


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Returns a function that converts a recording with entries."""

    def run(*entries: dict[str, Any], words: tuple[str, ...] = ()) -> Conversion:
        path = tmp_path / "shop.har"
        path.write_text("\ufeff" + json.dumps({"log": {"version": "1.2", "entries": entries}}))
        return convert("har", [str(path), *words])

    return run


def list_steps(found: Conversion) -> list[str]:
    assert found.scenario is not None
    return [f"{step.method} {step.path}" for step in found.scenario.steps]


def read_text(found: Conversion) -> str:
    assert found.scenario is not None
    return "\n".join([format_scenario(found.scenario), *found.notes])


def test_requests_to_other_hosts_and_assets_and_beacons_are_left_out_and_counted(record: Record) -> None:
    found = record(
        entry("GET", "https://ads.example/first", kind="application/json"),
        entry("GET", f"{SHOP}/#top"),
        entry("GET", f"{SHOP}/a.png", kind="image/png"),
        entry("GET", f"{SHOP}/b.woff2?v=1", kind=""),
        entry("GET", f"{SHOP}/c.css", kind="text/css"),
        entry("POST", f"{SHOP}/seen", headers={"Content-Type": "text/ping"}),
        entry("OPTIONS", f"{SHOP}/api", headers={"Access-Control-Request-Method": "PUT"}),
        entry("GET", "data:text/plain,x"),
        entry("GET", "wss://shop.example/live", status=101),
        entry("GET", f"{SHOP}/cached", more={"_fromCache": "disk"}),
        entry("GET", f"{SHOP}/also-cached", more={"_fetchType": "Memory Cache"}),
        entry("GET", f"{SHOP}/never", status=0),
        entry("DELETE", f"{SHOP}/item"),
        entry("GET", f"{SHOP}/busy", status=503),
        entry("GET", f"{SHOP}/list?q=1", kind="application/json"),
    )
    assert list_steps(found) == ["GET /", "GET /list?q=1"]
    assert found.spec.urls == (f"{SHOP}/",)
    notes = "\n".join(found.notes)
    assert "converted: 2 of 15 requests (GET 2)" in notes
    assert "left out 1: requests to other hosts: https://ads.example" in notes
    assert "left out 3: assets such as images, styles and scripts (--with assets includes them)" in notes
    assert "left out 1: beacons and certificate checks: POST /seen" in notes
    assert "left out 1: preflight requests" in notes
    assert "left out 2: requests with another scheme than HTTP: data:, wss:" in notes
    assert "left out 2: responses from the browser's cache" in notes
    assert "left out 1: requests without a response: GET /never" in notes
    assert "left out 1: DELETE requests (--with deletes includes them): DELETE /item" in notes
    assert "left out 1: requests with a status of 400 or more (--with failures includes them): 503 GET /busy" in notes


def test_options_take_what_is_otherwise_left_out(record: Record) -> None:
    entries = [
        entry("GET", f"{SHOP}/"),
        entry("GET", "https://api.shop.example/x"),
        entry("GET", "https://api.shop.example/x.png", kind="image/png"),
        entry("DELETE", "https://api.shop.example/x"),
        entry("GET", "https://api.shop.example/y", status=503),
    ]
    kinds = ("--with", "assets", "--with", "deletes", "--with", "failures")
    found = record(*entries, words=("--host", "api.shop.example", *kinds))
    assert list_steps(found) == ["GET /x", "GET /x.png", "DELETE /x", "GET /y"]
    assert found.scenario is not None
    assert [step.check.status for step in found.scenario.steps] == [[200], [200], [200], [503]]


def test_headers_of_the_connection_and_conditions_are_left_out(record: Record) -> None:
    headers = {
        ":authority": "shop.example",
        "Host": "shop.example",
        "Accept-Encoding": "br",
        "If-None-Match": '"1"',
        "Sec-Fetch-Mode": "cors",
        "Connection": "keep-alive",
        "Accept": "text/html",
    }
    found = record(entry("GET", f"{SHOP}/", headers=headers, status=304))
    assert found.scenario is not None
    assert found.scenario.steps[0].headers == {"Accept": "text/html"}
    # A server answers without the condition, so not with 304.
    assert found.scenario.steps[0].check.status == [200]


SECRET = "s3cr3t-Zq81kLm"
JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiI3In0.c2ln"


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("Cookie", {"headers": {"Cookie": f"sid={SECRET}"}}),
        ("Authorization", {"headers": {"Authorization": f"Bearer {SECRET}"}}),
        ("X-CSRF-Token", {"headers": {"X-CSRF-Token": SECRET}}),
        ("X-Api-Key", {"headers": {"x-api-key": SECRET}}),
        ("a JWT under any name", {"headers": {"X-Anything": JWT}}),
        ("a JWT in the Referer", {"headers": {"Referer": f"{SHOP}/a?b={JWT}"}}),
        ("JSON", {"post": {"mimeType": "application/json", "text": json.dumps({"a": [{"password": SECRET}]})}}),
        ("JSON with comments", {"post": {"mimeType": "application/json", "text": f'{{"token": "{SECRET}", // x\n}}'}}),
        ("form", {"post": {"mimeType": "application/x-www-form-urlencoded", "text": f"pwd={SECRET}&a=b"}}),
        ("fields", {"post": {"mimeType": "multipart/form-data", "params": [{"name": "passwd", "value": SECRET}]}}),
        ("XML", {"post": {"mimeType": "text/xml", "text": f"<x><Password>{SECRET}</Password></x>"}}),
    ],
)
def test_a_secret_is_never_written(name: str, how: dict[str, Any], record: Record) -> None:
    text = read_text(record(entry("POST", f"{SHOP}/login", **how)))
    assert SECRET not in text
    assert JWT not in text
    assert "{{env " in text or name == "Cookie"


def test_a_secret_in_the_url_is_never_written_and_a_known_secret_nowhere_else(record: Record) -> None:
    found = record(
        entry("GET", f"https://ann:{SECRET}@shop.example/a/{JWT}?access_token={SECRET}&page=2"),
        entry("POST", f"{SHOP}/b", post={"mimeType": "text/plain", "text": f"again {SECRET}"}),
    )
    text = read_text(found)
    assert SECRET not in text
    assert JWT not in text
    assert "access_token={{env ACCESS_TOKEN}}&page=2" in text
    assert "again {{env ACCESS_TOKEN}}" in text
    assert any("set these environment variables: " in note and "ACCESS_TOKEN" in note for note in found.notes)


def test_numbers_of_tokens_are_no_secrets(record: Record) -> None:
    text = '{"max_tokens": 256, "token_type": "bearer", "keep": true}'
    found = record(entry("POST", f"{SHOP}/ask", post={"mimeType": "application/json", "text": text}))
    assert found.scenario is not None
    assert found.scenario.steps[0].body == text


def test_a_value_of_an_earlier_response_is_extracted_and_pointed_out(record: Record) -> None:
    page = '<form><input name="csrf" value="Zk81kd93ma"></form>'
    created = json.dumps({"order": {"id": 481516, "paid": False}})
    found = record(
        entry("GET", f"{SHOP}/cart", text=page, answered={"X-Request-Token": "tok-99812-abc"}),
        entry(
            "POST",
            f"{SHOP}/orders",
            post={"mimeType": "application/x-www-form-urlencoded", "text": "csrf=Zk81kd93ma&n=1"},
            headers={"X-Token": "tok-99812-abc"},
            kind="application/json",
            text=created,
            status=201,
        ),
        entry(
            "POST",
            f"{SHOP}/orders/481516/pay",
            post={"mimeType": "application/json", "text": '{"id": 481516}'},
            status=303,
            answered={"Location": "/receipts/77120"},
        ),
        entry("GET", f"{SHOP}/receipts/77120"),
    )
    assert found.scenario is not None
    cart, order, pay, receipt = found.scenario.steps
    assert order.body == "csrf={{csrf}}&n=1"
    assert order.headers["X-Token"] == "{{X_Token}}"
    assert cart.extract["X_Token"].header == "X-Request-Token"
    assert cart.extract["csrf"].regex is not None
    assert order.extract["id"].json_ == "/order/id"
    assert (pay.path, pay.body) == ("/orders/{{id}}/pay", '{"id": {{id}}}')
    assert (pay.extract["location_3"].header, receipt.path) == ("Location", "{{location_3}}")
    assert any("{{csrf}} comes from the response of request 1" in note for note in found.notes)
    assert any("Check that each value is the right one" in note for note in found.notes)


def test_a_value_at_no_clear_place_is_pointed_out(record: Record) -> None:
    found = record(entry("GET", f"{SHOP}/", text="4815162342"), entry("GET", f"{SHOP}/item/4815162342"))
    assert any(
        "GET /item/4815162342 sends a path value that weir cannot read from the response of request 1" in note
        for note in found.notes
    )


def test_a_header_that_repeats_a_cookie_is_pointed_out(record: Record) -> None:
    headers = {"Cookie": f"XSRF-TOKEN={SECRET}%3D; a=b", "X-XSRF-TOKEN": f"{SECRET}="}
    found = record(entry("POST", f"{SHOP}/a", headers=headers))
    assert any("X-XSRF-TOKEN repeats the cookie XSRF-TOKEN" in note for note in found.notes)
    assert SECRET not in read_text(found)


def test_the_user_pauses_between_pages_and_not_between_parallel_requests(record: Record) -> None:
    first, second = {"pageref": "page_1"}, {"pageref": "page_2"}
    found = record(
        entry("GET", f"{SHOP}/1", 0, more=first),
        entry("GET", f"{SHOP}/1.json", 3, kind="application/json", more=first),
        entry("GET", f"{SHOP}/2", 7.05, more=second),
    )
    assert found.scenario is not None
    thinks = [step.think and step.think.constant_s for step in found.scenario.steps]
    assert thinks == [None, 4.0, None]
    assert [step.name for step in found.scenario.steps] == [
        "page 1 / GET /1",
        "page 1 / GET /1.json",
        "page 2 / GET /2",
    ]
    assert any("the recorded user's pauses: 1 per round" in note for note in found.notes)


def test_a_recording_without_pages_has_pauses_where_nothing_is_in_flight(record: Record) -> None:
    found = record(entry("GET", f"{SHOP}/1", 0), entry("GET", f"{SHOP}/2", 0.3), entry("GET", f"{SHOP}/3", 5.35))
    assert found.scenario is not None
    assert [step.think and step.think.constant_s for step in found.scenario.steps] == [None, 5.0, None]


def test_requests_keep_the_order_of_their_start(record: Record) -> None:
    assert list_steps(record(entry("GET", f"{SHOP}/b", 2), entry("GET", f"{SHOP}/a", 1)))[0] == "GET /a"


@pytest.mark.parametrize(
    ("post", "reason"),
    [
        ({"mimeType": "multipart/form-data", "params": [{"name": "f", "fileName": "a.pdf"}]}, "requests with files"),
        ({"mimeType": "multipart/form-data; boundary=x", "text": '--x\r\n…; filename="a.pdf"'}, "requests with files"),
        ({"mimeType": "text/plain", "text": "{{name}}"}, "requests with {{"),
    ],
)
def test_a_body_that_weir_cannot_send_is_left_out(post: dict[str, Any], reason: str, record: Record) -> None:
    found = record(entry("GET", f"{SHOP}/"), entry("POST", f"{SHOP}/up", post=post))
    assert list_steps(found) == ["GET /"]
    assert any(note.startswith(f"left out 1: {reason}") for note in found.notes)


def test_fields_of_a_form_become_a_body_and_the_body_of_a_get_is_left_out(record: Record) -> None:
    fields = {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a b", "value": "ü&"}]}
    found = record(entry("POST", f"{SHOP}/f", post=fields), entry("GET", f"{SHOP}/g", post={"text": "x"}))
    assert found.scenario is not None
    assert [step.body for step in found.scenario.steps] == ["a+b=%C3%BC%26", None]
    assert "left out 1: bodies of GET and HEAD requests: request 2 GET /g" in found.notes


def test_a_host_without_requests_is_an_error_that_names_the_hosts(record: Record) -> None:
    with pytest.raises(UsageError, match=r"--host: found 'x.example', expected one of .* https://shop.example \(1\)"):
        record(entry("GET", f"{SHOP}/"), words=("--host", "x.example"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found no JSON"),
        ("[]", "found no JSON object"),
        ("{}", "log: missing"),
        ('{"log": {"entries": []}}', "found no requests"),
        ('{"log": {"entries": [{"request": {}}]}}', "log.entries.0.startedDateTime: missing"),
        ("[" * 100_000, "found no JSON"),
    ],
)
def test_a_file_that_is_no_recording_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.har").write_text(text)
    with pytest.raises(UsageError, match=message):
        convert("har", [str(tmp_path / "a.har")])


def test_a_recording_of_assets_only_is_an_error_with_the_bill(record: Record) -> None:
    with pytest.raises(UsageError, match=r"found no request that weir can send(.|\n)*left out 1: assets"):
        record(entry("GET", f"{SHOP}/a.png", kind="image/png"))
