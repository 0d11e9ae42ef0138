"""The explanation of a tool's failure."""

import pytest

from weir.generators.scripted.load import select_error_lines


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        (
            "starting\nError in the plan\nCause:\n\nno such file\nclass: a.b.C\n",
            ["Error in the plan", "Cause:", "no such file"],
        ),
        ('time="x" level=info\ntime="x" level=error msg="no script"\n', ['time="x" level=error msg="no script"']),
        ("a\nb\nc\nd\n", ["b", "c", "d"]),
        ("a\n", ["a"]),
        ("", []),
    ],
)
def test_the_lines_from_the_first_error_on_explain_a_failure(output: str, lines: list[str]) -> None:
    assert select_error_lines(output) == lines
