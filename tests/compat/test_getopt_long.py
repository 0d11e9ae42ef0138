"""Command lines as GNU's getopt_long reads them, and what it says of wrong ones."""

import pytest

from weir.compat.getopt_long import OptionError, Options

OPTIONS = Options(with_value="ct", alone="Lv", long={"connections": "c", "threads": "t", "timeout": "T", "latency": "L", "version": "v"})


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("-c 5 URL", ["c5", "URL"]),
        ("-c5 URL", ["c5", "URL"]),
        ("URL -c 5", ["c5", "URL"]),
        ("-Lc5 URL", ["L", "c5", "URL"]),
        ("-LvL URL", ["L", "v", "L", "URL"]),
        ("-cL URL", ["cL", "URL"]),
        ("--connections=5 URL", ["c5", "URL"]),
        ("--connections 5 URL", ["c5", "URL"]),
        ("--con 5 --th=2 --lat URL", ["c5", "t2", "L", "URL"]),
        ("--connections= URL", ["c", "URL"]),
        ("-c -5 URL", ["c-5", "URL"]),
        ("-c -- URL", ["c--", "URL"]),
        ("a -L b -c 1 c", ["L", "c1", "a", "b", "c"]),
        ("a -- -L -c", ["a", "-L", "-c"]),
        ("- URL", ["-", "URL"]),
        ("", []),
    ],
)
def test_flags_come_first_wherever_they_stand_and_arguments_keep_their_order(words: str, read: list[str]) -> None:
    assert [letter + value for letter, value in OPTIONS.read(words.split())] == read


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("-x", "invalid option -- 'x'"),
        ("-Lx", "invalid option -- 'x'"),
        ("-c", "option requires an argument -- 'c'"),
        ("--connections", "option '--connections' requires an argument"),
        ("--con", "option '--connections' requires an argument"),
        ("--latency=1", "option '--latency' doesn't allow an argument"),
        ("--frequency", "unrecognized option '--frequency'"),
        ("--frequency=5", "unrecognized option '--frequency=5'"),
        ("--t 5", "option '--t' is ambiguous; possibilities: '--threads' '--timeout'"),
    ],
)
def test_a_wrong_flag_is_told_in_getopts_words(words: str, line: str) -> None:
    with pytest.raises(OptionError) as raised:
        list(OPTIONS.read(words.split()))
    assert str(raised.value) == line


def test_flags_before_a_wrong_one_are_given_first() -> None:
    read = OPTIONS.read(["-c", "5", "-x"])
    assert next(read) == ("c", "5")
    with pytest.raises(OptionError):
        next(read)
