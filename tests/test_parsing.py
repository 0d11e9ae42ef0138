"""Tests values in the forms that users write."""

import doctest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir.parsing
from weir.model.errors import InvalidValueError
from weir.parsing import (
    parse_body,
    parse_count,
    parse_cpus,
    parse_duration,
    parse_endpoint,
    parse_header,
    parse_pem_path,
    write_duration,
    write_number,
)


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 10), ("10s", 10), ("500ms", 0.5), ("1.5s", 1.5), ("2m", 120), ("1h", 3600)]
)
def test_durations_are_read_with_every_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@given(st.floats(1e-9, 1e9))
def test_a_duration_is_written_exactly(length_s: float) -> None:
    assert parse_duration(write_duration(length_s)) == length_s


@pytest.mark.parametrize(
    ("length_s", "text"),
    [(10.0, "10s"), (60.0, "1m"), (90.0, "90s"), (7200.0, "2h"), (0.5, "500ms"), (1.5, "1.5s"), (1e-7, "0.0000001s")],
)
def test_a_duration_reads_as_people_write_it(length_s: float, text: str) -> None:
    assert write_duration(length_s) == text


def test_a_number_has_no_exponent() -> None:
    assert [write_number(value) for value in (1e6, 1e-5, 0.1, 3)] == ["1000000", "0.00001", "0.1", "3"]


def test_the_examples_in_docstrings_hold() -> None:
    found = doctest.testmod(weir.parsing)
    assert found.attempted > 0
    assert found.failed == 0


def test_cpus_are_read_in_the_notation_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    assert parse_cpus("0") == (0,)
    assert parse_cpus("1-3,5") == (1, 2, 3, 5)


def test_a_header_is_a_name_and_a_value() -> None:
    assert parse_header("X-Thing:  a: b ") == ("X-Thing", "a: b")


def test_a_body_is_itself_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_bytes(b"{}")
    assert parse_body("x") == b"x"
    assert parse_body(f"@{tmp_path / 'b.json'}") == b"{}"


@pytest.mark.parametrize(
    ("parse", "texts", "expected"),
    [
        (parse_duration, ["", "s", "ten", "10 s", "-1s", "0", "0s", "1d", "1e3"], "a duration such as 10s"),
        (parse_count, ["", "0", "-1", "1e3", "9" * 5000, "٣"], "a whole number above 0"),
        (parse_cpus, ["", "a", "3-1", "0,,1", "99999"], "CPUs"),
        (parse_header, ["nothing", ": x", "a b: c"], "'Name: value'"),
        (parse_header, ["A: b\r\nEvil: c"], "a value of"),
        (parse_body, ["@/nowhere/none"], "No such file"),
        (parse_endpoint, ["", "here", "here:", ":80", "here:0", "here:65536", "here:99999999"], "HOST:PORT"),
        (parse_pem_path, [__file__], "a PEM file"),
    ],
)
def test_texts_without_a_value_are_refused_with_what_was_expected(
    parse: Callable[[str], Any], texts: list[str], expected: str
) -> None:
    for text in texts:
        with pytest.raises(InvalidValueError) as caught:
            parse(text)
        assert caught.value.found == text
        assert expected in str(caught.value)
        assert str(caught.value.at("--flag")).startswith(f"--flag: found {text!r}, expected ")
