import pytest

from weir.services.dataset import Dataset, ReferenceDatabase, read_dataset
from weir.toml_file import list_data_files


def dataset(**columns: object) -> Dataset:
    return Dataset.model_validate(
        {
            "schema": 1,
            "id": "d",
            "title": "D",
            "tables": {"t": {"rows": 3, "columns": columns or {"id": {"type": "integer"}}}},
        }
    )


def test_every_dataset_that_travels_with_weir_is_valid_and_has_its_rows() -> None:
    assert list_data_files("datasets")
    for dataset_id in list_data_files("datasets"):
        content = read_dataset(dataset_id)
        for name, table in content.tables.items():
            assert len(list(content.rows(name))) == table.rows


def test_the_users_are_a_hundred_with_the_ids_1_to_100() -> None:
    rows = list(read_dataset("users").rows("users"))
    assert [row[0] for row in rows] == list(range(1, 101))
    assert len({row[1] for row in rows}) == 100


def test_the_tickets_are_one_row_of_which_none_was_issued() -> None:
    tickets = read_dataset("tickets")
    assert list(tickets.rows("tbl_ticket")) == [(1, "ticket-1", 0, 100_000)]
    assert list(tickets.rows("tbl_ticket_user")) == []
    assert len(list(tickets.rows("tbl_user"))) == 1000


def test_rows_are_the_same_every_time() -> None:
    first, again = (list(read_dataset("users").rows("users")) for _ in range(2))
    assert first == again


def test_the_truth_answers_in_sql_with_inputs_in_their_order() -> None:
    truth = ReferenceDatabase(
        dataset(id={"type": "integer", "value": "{{row}}", "key": True}, name={"type": "text", "value": "n{{row}}"})
    )
    assert truth.rows("SELECT id, name FROM t WHERE id = ?", ["2"]) == [{"id": 2, "name": "n2"}]
    assert truth.rows("SELECT count(*) AS n FROM t") == [{"n": 3}]


def test_sql_that_is_no_query_on_the_dataset_is_an_error_that_says_so() -> None:
    truth = ReferenceDatabase(dataset())
    for sql in ("SELECT nam FROM t", "DELETE FROM t", "SELECT * FROM t WHERE id = ?"):
        with pytest.raises(ValueError, match="expected"):
            truth.rows(sql)


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ({"type": "integer", "value": "{{uuid}}"}, "unknown placeholder {{uuid}}; expected {{row}}"),
        ({"type": "integer", "value": "x"}, "invalid literal"),
        ({"type": "text", "generated": True}, "generated: found type 'text', expected type 'integer'"),
    ],
)
def test_a_column_that_makes_no_sense_is_refused(column: object, problem: str) -> None:
    with pytest.raises(ValueError, match="tables") as error:
        dataset(c=column)
    assert problem in str(error.value)
