"""Tests the parser that reads command lines with tables of flags, in both styles of the tools."""

from dataclasses import replace
from typing import Any

import pytest

from weir.compat.flags import Flag, ToolError, ToolExit, ToolFlags, parse_whole

URL = "http://127.0.0.1:8000/"
GETOPT = ToolFlags(
    tool="tool",
    example="weir tool URL",
    flags=(
        Flag("count", "-c --count", parse_whole, 1, "a number"),
        Flag("latency", "-L --latency", None, False, "a switch"),
        Flag("headers", "-H", str, [], "texts"),
    ),
    instead={"-x --proxy": "weir load --connect-to"},
    version="tool 1.0",
    version_flags=("-v",),
    version_code=5,
    help_code=4,
    unreadable_code=2,
    wrong_code=3,
)
GO = replace(
    GETOPT, is_go=True, flags=(*GETOPT.flags[:1], Flag("keep", "-keep-alive", None, False, "a switch"), GETOPT.flags[2])
)


@pytest.mark.parametrize(
    ("table", "line", "found"),
    [
        (GETOPT, URL, {"count": 1, "latency": False, "headers": []}),
        (GETOPT, f"-c100 {URL}", {"count": 100}),
        (GETOPT, f"-c 100 {URL}", {"count": 100}),
        (GETOPT, f"--count 100 {URL}", {"count": 100}),
        (GETOPT, f"--count=100 --latency {URL}", {"count": 100, "latency": True}),
        (GETOPT, f"-Lc100 {URL}", {"count": 100, "latency": True}),
        (GETOPT, f"-c5 -c -6 {URL}", {"count": -6}),
        (GETOPT, f"-H a -Hb=c {URL}", {"headers": ["a", "b=c"]}),
        (GETOPT, f"-L -- {URL} -c5", {"count": 1, "arguments": ["-c5"]}),
        (GETOPT, f"{URL} -c5 more", {"count": 1, "arguments": ["-c5", "more"]}),
        (
            replace(GETOPT, flags_follow_url=True),
            f"{URL} -c5 more -L",
            {"count": 5, "latency": True, "arguments": ["more"]},
        ),
        (GO, f"-c 100 {URL}", {"count": 100}),
        (GO, f"-c=100 {URL}", {"count": 100}),
        (GO, f"--c=100 -keep-alive {URL}", {"count": 100, "keep": True}),
        (GO, f"-keep-alive=false {URL}", {"keep": False}),
        (GO, f"-H a=b -H=c=d {URL}", {"headers": ["a=b", "c=d"]}),
    ],
)
def test_flags_and_values_stand_together_or_apart(table: ToolFlags, line: str, found: dict[str, Any]) -> None:
    values = table.parse(line.split())
    assert values.url.geturl() == URL
    assert {name: getattr(values, name) for name in found} == found


@pytest.mark.parametrize(
    ("table", "line", "message", "hint"),
    [
        (GETOPT, f"-y {URL}", "found -y, expected a flag of tool", "weir tool -h"),
        (GETOPT, f"-Ly {URL}", "found -y, expected a flag of tool", "weir tool -h"),
        (GETOPT, f"--cou 5 {URL}", "found --cou, expected a flag of tool", "weir tool -h"),
        (GETOPT, f"-c 1.5 {URL}", "-c: found '1.5', expected a whole number such as 100", "weir tool -h"),
        (GETOPT, "-c", "-c: found no value, expected a value after the flag", "weir tool -h"),
        (GETOPT, f"--latency=no {URL}", "--latency: found 'no', expected no value", "weir tool -h"),
        (GETOPT, f"-xhost {URL}", "-x: weir does not support this flag", "weir load --connect-to"),
        (GETOPT, f"--proxy=host {URL}", "--proxy: weir does not support this flag", "weir load --connect-to"),
        (GO, f"-Lc5 {URL}", "found -Lc5, expected a flag of tool", "weir tool -h"),
        (GO, f"-keep-alive=2 {URL}", "-keep-alive: found '2', expected no value", "weir tool -h"),
    ],
)
def test_a_flag_that_cannot_be_read_is_told_with_what_is_expected(
    table: ToolFlags, line: str, message: str, hint: str
) -> None:
    with pytest.raises(ToolError) as caught:
        table.parse(line.split())
    assert (caught.value.message, caught.value.hint, caught.value.code) == (message, hint, 2)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "-",
        "127.0.0.1:8000/",
        "ftp://h/",
        "http://",
        "http://h:x/",
        "http://h:0/",
        "http://h:99999/",
        "http://[::1/",
    ],
)
def test_a_url_over_http_is_wanted(url: str) -> None:
    with pytest.raises(ToolError) as caught:
        GETOPT.parse([url] if url else [])
    assert caught.value.message == f"URL: found {url!r}, expected a URL such as http://127.0.0.1:8000/"
    assert (caught.value.hint, caught.value.code) == ("weir tool URL", 3)


def test_a_scheme_may_be_left_out_where_the_tool_has_one_of_its_own() -> None:
    assert replace(GETOPT, default_scheme="http").parse(["127.0.0.1:8000/a"]).url.geturl() == "http://127.0.0.1:8000/a"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_flag_of_the_tool(flag: str) -> None:
    with pytest.raises(ToolExit) as caught:
        GETOPT.parse([flag])
    assert caught.value.code == 4
    assert caught.value.text == (
        "Usage: weir tool [FLAG]... URL\n"
        "\n"
        "  -c, --count            a number\n"
        "  -L, --latency          a switch\n"
        "  -H                     texts\n"
        "  -x, --proxy            not supported. Instead: weir load --connect-to\n"
        "\n"
        "Example: weir tool URL\n"
    )


def test_the_version_is_one_line_with_weirs() -> None:
    with pytest.raises(ToolExit) as caught:
        GETOPT.parse(["-v", "--nonsense"])
    assert caught.value.code == 5
    assert caught.value.text.startswith("tool 1.0 [weir ")
    assert caught.value.text.count("\n") == 1
