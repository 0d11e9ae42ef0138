from tests.support.load_summary import summary
from weir.stacks.invariant import Invariant, find_discrepancies

INSERTED = {"inserted": Invariant(sql="SELECT count(*) FROM t", grows_by="successes")}


def test_rows_that_grow_by_the_successes_are_no_discrepancy() -> None:
    assert find_discrepancies(INSERTED, {"inserted": 7}, {"inserted": 1007}, summary()) == ()


def test_a_lost_row_is_said_with_both_numbers() -> None:
    found = find_discrepancies(INSERTED, {"inserted": 7}, {"inserted": 1006}, summary())
    assert found == ("invariant inserted: grew by 999, expected the 1,000 successful requests",)


def test_a_request_without_an_answer_may_have_been_carried_out_or_not() -> None:
    for growth, holds in ((994, False), (995, True), (1000, True), (1001, False)):
        assert (
            find_discrepancies(INSERTED, {"inserted": 0}, {"inserted": growth}, summary(failed=5, timeouts=5)) == ()
        ) is holds


def test_a_number_that_must_be_is_compared_after_the_load() -> None:
    agrees = {"agrees": Invariant(sql="SELECT 0", equals=0)}
    assert find_discrepancies(agrees, {"agrees": 5}, {"agrees": 0}, summary()) == ()
    assert find_discrepancies(agrees, {"agrees": 0}, {"agrees": 12}, summary()) == (
        "invariant agrees: found 12, expected 0",
    )
    still = {"still": Invariant(sql="SELECT 0", grows_by=0)}
    assert find_discrepancies(still, {"still": 3}, {"still": 4}, summary()) == (
        "invariant still: grew by 1, expected 0",
    )
