import pytest

from tests.support.load_summary import summary
from weir.services.counters import Count, Counters, compute_work, is_data_statement


@pytest.mark.parametrize(
    "text",
    ["SELECT 1", "(select 1)", "with x as (select 1) select * from x", "INSERT INTO t VALUES ($1)", "CALL p()", "?"],
)
def test_what_moves_data_is_a_data_statement(text: str) -> None:
    assert is_data_statement(text)


@pytest.mark.parametrize(
    "text",
    ["BEGIN", "begin;", "COMMIT", "SET search_path = x", "START TRANSACTION", "ROLLBACK TO SAVEPOINT a", "DISCARD ALL"],
)
def test_what_begins_ends_or_sets_up_is_a_control_statement(text: str) -> None:
    assert not is_data_statement(text)


def test_work_is_the_difference_and_what_came_before_is_left_out() -> None:
    before = Counters({("a", "SELECT x"): Count(10, 1000), ("a", "BEGIN"): Count(3, 0)}, {"log": 7})
    after = Counters(
        {("a", "SELECT x"): Count(210, 21000), ("a", "BEGIN"): Count(5, 0), ("b", "INSERT y"): Count(50, 50)},
        {"log": 107},
    )
    work = compute_work("postgres", before, after, summary())
    assert (work.statements, work.control_statements, work.rows, work.bytes) == (250, 2, 20050, {"log": 100})
    assert [kind.text for kind in work.by_statement] == ["SELECT x", "INSERT y", "BEGIN"]
    assert work.requests == 1000
    assert work.per_request(work.statements) == 0.25
    assert not work.note


def test_requests_that_did_not_complete_are_at_the_edge() -> None:
    assert compute_work("p", Counters({}), Counters({}), summary(failed=5, timeouts=5)).edge_requests == 5


def test_rows_that_nobody_counted_are_unknown_and_thrown_away_counters_are_said() -> None:
    work = compute_work("p", Counters({}), Counters({("SELECT",): Count(5, None)}, losses=2), summary())
    assert work.rows is None
    assert "discarded counters 2 times" in work.note
