import hashlib
import json
import random
from typing import Any

import pytest

from weir.model.errors import UsageError
from weir.services.dataset import load_truth, render
from weir.stacks.workload import Workload, read_workload
from weir.toml_file import list_data_files


def echo(**answer: object) -> Workload:
    return Workload.model_validate(
        {
            "schema": 1,
            "id": "w",
            "title": "W",
            "request": {"method": "POST", "path": "/", "body": '{"n": {{int 1 1000000}}, "on": true}'},
            "answer": answer,
        }
    )


def test_every_workload_that_travels_with_weir_is_valid_and_draws_a_request() -> None:
    assert list_data_files("workloads")
    for name in list_data_files("workloads"):
        request = read_workload(name).draw("http://127.0.0.1:1", random.Random(1))
        assert request.target.startswith("http://127.0.0.1:1/")


def test_the_same_seed_draws_the_same_request_and_another_seed_another() -> None:
    workload = read_workload("echo")
    first, again, other = (workload.draw("http://h:1", random.Random(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first.body != other.body


def test_the_echo_workload_sends_the_two_ads_of_the_published_study() -> None:
    body = read_workload("echo").draw("http://h:1", random.Random(3)).body
    assert body is not None
    ads = json.loads(body)
    assert list(ads) == ["1", "2"]
    assert set(ads["1"]) == {"adId", "adTitle", "campaignId"}
    assert set(ads["2"]) == {"adId", "adTitle", "campaignId", "audience"}


def test_an_echo_is_right_when_it_holds_the_very_object_that_was_sent() -> None:
    workload = echo(json={"received": True, "data": "{{body}}"})
    request = workload.draw("http://h:1", random.Random(1))
    sent = json.loads(request.body or b"")
    assert workload.why_wrong(request, 200, json.dumps({"data": sent, "received": True}).encode()) is None


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (500, b"", "status: found 500, expected 200"),
        (200, b"True", "expected JSON"),
        (200, b'{"received": true, "data": {}}', "expected"),
        (200, b'{"received": 1, "data": {"n": 1, "on": true}}', "expected"),
        (200, b'"True"', "expected"),
    ],
)
def test_a_wrong_answer_is_named_with_what_was_found_and_expected(status: int, body: bytes, problem: str) -> None:
    workload = echo(json={"received": True, "data": "{{body}}"})
    wrong = workload.why_wrong(workload.draw("http://h:1", random.Random(1)), status, body)
    assert wrong is not None
    assert problem in wrong


def test_a_digest_is_right_for_the_word_that_was_asked_and_for_no_other() -> None:
    workload = read_workload("cpu")
    asked, other = (workload.draw("http://h:1", random.Random(seed)) for seed in (1, 2))
    digest = asked.target.partition("text=")[2].encode()
    for _ in range(1000):
        digest = hashlib.sha256(digest).digest()
    body = json.dumps({"digest": digest.hex()}).encode()
    assert workload.why_wrong(asked, 200, body) is None
    assert "expected" in (workload.why_wrong(other, 200, body) or "")
    once = hashlib.sha256(asked.target.partition("text=")[2].encode()).hexdigest()
    assert workload.why_wrong(asked, 200, json.dumps({"digest": once}).encode()) is not None


def test_a_digest_of_an_input_that_there_is_not_is_refused_when_the_file_is_read() -> None:
    with pytest.raises(ValueError, match="INPUT as the number of one of 0 random inputs"):
        echo(json={"digest": "{{sha256 1000 1}}"})


def test_true_is_not_one_in_json() -> None:
    workload = echo(json={"on": True})
    request = workload.draw("http://h:1", random.Random(1))
    assert workload.why_wrong(request, 200, b'{"on": 1}') is not None
    assert workload.why_wrong(request, 200, b'{"on": true}') is None


def test_people_are_right_in_any_order_and_with_the_names_of_the_dataset() -> None:
    workload = read_workload("people")
    request = workload.draw("http://h:1", random.Random(1))
    people = [
        {"id": row["id"], "firstName": row["first_name"], "lastName": row["last_name"]}
        for row in load_truth("people").rows("SELECT * FROM people")
    ]
    assert len(people) == 10
    assert workload.why_wrong(request, 200, json.dumps(people[::-1]).encode()) is None
    wrong = workload.why_wrong(request, 200, json.dumps(people[1:]).encode())
    assert wrong is not None
    assert "found 9 rows without" in wrong


def test_an_issued_ticket_names_the_user_that_was_asked_for() -> None:
    workload = read_workload("ticket-issue")
    request = workload.draw("http://h:1", random.Random(1))
    asked, another = (
        {"userId": user, "userName": name, "ticketId": 1, "ticketName": "ticket-1"}
        for user, name in (
            tuple(load_truth("tickets").rows("SELECT id, name FROM tbl_user WHERE id = ?", [user])[0].values())
            for user in (workload.inputs(request.target.removeprefix("http://h:1"))[0], "1000")
        )
    )
    assert asked != another
    assert workload.why_wrong(request, 200, json.dumps(asked).encode()) is None
    assert workload.why_wrong(request, 200, json.dumps(another).encode()) is not None
    assert workload.why_wrong(request, 409, b"") is not None


def test_a_row_may_hold_a_list_of_rows_whose_order_counts() -> None:
    workload = read_workload("ticket")
    request = workload.draw("http://h:1", random.Random(1))
    users = load_truth("tickets").rows("SELECT id, name FROM tbl_user WHERE id <= 50 ORDER BY id")
    ticket = {"id": 1, "name": "ticket-1", "limitCount": 100_000}
    assert workload.why_wrong(request, 200, json.dumps({**ticket, "users": users}).encode()) is None
    for wrong in ({**ticket, "users": users[::-1]}, {**ticket, "users": users[1:]}, ticket):
        assert workload.why_wrong(request, 200, json.dumps(wrong).encode()) is not None


def test_the_generator_looks_for_the_value_that_an_answer_must_be_or_for_a_column_where_several_would_be_right() -> (
    None
):
    def step(workload_id: str) -> dict[str, Any]:
        workload = read_workload(workload_id)
        return workload.step(workload.draw("http://s", random.Random(1)))

    def looked_for(workload_id: str) -> object:
        return step(workload_id)["check"]

    assert looked_for("echo") == {
        "status": [200],
        "json": {"": {"received": True, "data": json.loads(step("echo")["body"])}},
    }
    assert looked_for("user-random") == {"status": [200], "body_contains": '"email"'}
    (row,) = (row for row in load_truth("users").rows("SELECT * FROM users WHERE id = 18", []))
    assert looked_for("user-by-id") == {"status": [200], "json": {"": row}}
    assert looked_for("hello") == {"status": [200]}


def test_a_query_that_is_none_on_the_dataset_is_named_by_its_key() -> None:
    for rows, key in (
        ({"sql": "SELECT x FROM people"}, "sql"),
        ({"sql": "SELECT 1", "lists": {"a": "SELECT y FROM people"}}, "lists.a"),
    ):
        with pytest.raises(
            ValueError,
            match=rf"answer\.rows\.{key}: no such column: [xy]; expected a query that runs on the dataset people",
        ):
            Workload.model_validate(
                {
                    "schema": 1,
                    "id": "w",
                    "title": "W",
                    "dataset": "people",
                    "request": {"path": "/"},
                    "answer": {"rows": rows},
                }
            )


def test_an_unknown_placeholder_is_refused_when_the_file_is_read() -> None:
    with pytest.raises(ValueError, match="unknown placeholder"):
        render("{{date}}", random.Random(1))


def test_a_workload_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(UsageError) as error:
        read_workload("nope")
    assert "nope.toml: not found" in error.value.message
    assert "echo" in error.value.hint
