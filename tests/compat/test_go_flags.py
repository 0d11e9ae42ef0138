"""Command lines as Go reads them; `tests/end_to_end/test_hey.py` holds them against a program of Go's."""

import doctest

import pytest

from weir.compat import go_flags
from weir.compat.go_flags import GoFlagError, GoFlags, parse_bool, parse_duration_s, parse_float, parse_int

FLAGS = GoFlags({"n": parse_int, "m": str, "z": parse_duration_s, "q": parse_float, "on": parse_bool, "H": str}, repeated=("H",))


def test_the_examples_of_the_docstrings_are_true() -> None:
    assert doctest.testmod(go_flags).failed == 0


@pytest.mark.parametrize(
    ("line", "given", "words"),
    [
        ("", {}, ""),
        ("-n 5 url", {"n": 5}, "url"),
        ("-n=5 --m=x url", {"n": 5, "m": "x"}, "url"),
        ("--n 5 -m -n url", {"n": 5, "m": "-n"}, "url"),
        ("-m= url", {"m": ""}, "url"),
        ("-m=a=b url", {"m": "a=b"}, "url"),
        ("-on url", {"on": True}, "url"),
        ("-on=false url", {"on": False}, "url"),
        ("-on false url", {"on": True}, "false url"),
        ("-n 1 -n 2 -H a -H b", {"n": 2, "H": ["a", "b"]}, ""),
        ("-n 5 url -m x", {"n": 5}, "url -m x"),
        ("-n 5 -- -m x", {"n": 5}, "-m x"),
        ("- -n 5", {}, "- -n 5"),
    ],
)
def test_flags_end_at_the_first_word_that_is_none(line: str, given: dict[str, object], words: str) -> None:
    assert FLAGS.parse(line.split()) == (given, words.split())


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("-x", "flag provided but not defined: -x"),
        ("-x=5", "flag provided but not defined: -x"),
        ("---n", "bad flag syntax: ---n"),
        ("-=5", "bad flag syntax: -=5"),
        ("-n", "flag needs an argument: -n"),
        ("-n x", 'invalid value "x" for flag -n: parse error'),
        ('-n a"b', 'invalid value "a\\"b" for flag -n: parse error'),
        ("-on=perhaps", 'invalid boolean value "perhaps" for -on: parse error'),
        ("-n 9223372036854775808", 'invalid value "9223372036854775808" for flag -n: value out of range'),
    ],
)
def test_wrong_ones_have_gos_words(line: str, complaint: str) -> None:
    with pytest.raises(GoFlagError) as raised:
        FLAGS.parse(line.split())
    assert (raised.value.message, raised.value.wants_help) == (complaint, False)


@pytest.mark.parametrize("word", ["-h", "-help", "--help"])
def test_help_is_asked_for_where_no_flag_has_that_name(word: str) -> None:
    with pytest.raises(GoFlagError) as raised:
        FLAGS.parse([word])
    assert raised.value.wants_help


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("-0", 0), ("+7", 7), ("200", 200), ("0x1F", 31), ("0b11", 3), ("0o17", 15), ("017", 15), ("1_000", 1000), ("0x_f", 15),
        ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)),
    ],
)  # fmt: skip
def test_whole_numbers(text: str, value: int) -> None:
    assert parse_int(text) == value


@pytest.mark.parametrize("text", ["", "-", "x", "1.5", "08", "0x", "0b2", "_1", "1_", "1__0", " 1", "1e3", "１"])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="parse error"):
        parse_int(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("-0", 0), ("5m", 300), ("1m30s", 90), ("1.5h", 5400), (".5s", 0.5), ("5.s", 5), ("300ms", 0.3), ("2h45m0.5s", 9900.5),
        ("-1s", -1), ("+1s", 1), ("7us", 7e-6), ("7µs", 7e-6), ("9ns", 9e-9),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", ".s", "5x", "5 s", "1d", "1m30", "--1s", "1s "])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="parse error"):
        parse_duration_s(text)


@pytest.mark.parametrize(("text", "value"), [("2", 2.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("-1E-3", -0.001)])
def test_numbers(text: str, value: float) -> None:
    assert parse_float(text) == value


@pytest.mark.parametrize(
    ("text", "complaint"), [("", "parse error"), ("fast", "parse error"), ("1,5", "parse error"), ("1e999", "value out of range")]
)
def test_what_is_no_number(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_float(text)
