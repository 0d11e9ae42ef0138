"""Tests files that are no test plans, and malicious files."""

from pathlib import Path

import pytest

from tests.support.jmx import element, get, group, plan
from weir.compat.jmx.tree import read_tree
from weir.model.errors import UsageError


def read(tmp_path: Path, text: str | bytes) -> str:
    """Returns the error message for a file."""
    path = tmp_path / "plan.jmx"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(UsageError) as raised:
        read_tree(path)
    assert raised.value.message.startswith(str(path))
    return raised.value.message.removeprefix(str(path))


def test_disabled_elements_are_left_out_with_what_is_below_them(tmp_path: Path) -> None:
    path = tmp_path / "plan.jmx"
    path.write_text(plan(group(element("LoopController", "Off", get("below"), enabled=False), get("on"))))
    (users,) = read_tree(path).below
    assert [(*below.place, below.name) for below in users.below] == [("Plan", "Users", "on")]


def test_an_entity_bomb_is_refused_at_its_dtd(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "lol">{entities}]><jmeterTestPlan>&l9;</jmeterTestPlan>'
    assert "found a DTD, expected none" in read(tmp_path, bomb)


def test_a_file_outside_is_not_read(tmp_path: Path) -> None:
    outside = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><jmeterTestPlan>&e;</jmeterTestPlan>'
    assert "found a DTD" in read(tmp_path, outside)


def test_a_bottomless_tree_is_refused(tmp_path: Path) -> None:
    assert "over 500 levels of elements" in read(tmp_path, "<hashTree>" * 100_000)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not valid XML"),
        ("threads: 5", "not valid XML"),
        (b"\xff\xfe\x00", "not valid XML"),
        ('<?xml version="1.0" encoding="klingon"?><a/>', "expected"),
        (plan(group(get()))[:-40], "not valid XML"),
        ("<html><body/></html>", "found <html>, expected a JMeter test plan"),
        ("<jmeterTestPlan><hashTree/></jmeterTestPlan>", "found 0 enabled TestPlan elements, expected one"),
        ("<jmeterTestPlan/>", "expected a JMeter test plan"),
    ],
)
def test_what_is_no_test_plan_is_said_to_be_none(tmp_path: Path, content: str | bytes, words: str) -> None:
    assert words in read(tmp_path, content)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.jmx: cannot be read"):
        read_tree(tmp_path / "nowhere.jmx")
    with pytest.raises(UsageError, match="cannot be read"):
        read_tree(tmp_path)
