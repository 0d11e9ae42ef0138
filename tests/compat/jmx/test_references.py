"""Tests references such as `${host}` in the texts of a test plan."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir.compat.jmx.references
from weir.compat.jmx.references import parse, write_template
from weir.compat.jmx.scope import Scope
from weir.compat.jmx.test_plan import DataSet
from weir.compat.jmx.tree import Element

ELEMENT = Element("HTTPSamplerProxy", {}, line=1)


def scope(problems: list[str]) -> Scope:
    """Returns a scope that adds its reports about `ELEMENT` to `problems`."""
    return Scope(
        lambda element, why, what: problems.append(f"{what}: {why}"),
        properties={"threads": "20", "empty": ""},
        root=Element("TestPlan", {}, line=1),
        variables={"host": "example.org", "user": "ada"},
        data_sets=[DataSet("users", ("id", "user"), (("1", "ada"),))],
    )


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(weir.compat.jmx.references).failed == 0


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${host}/a", "example.org/a"),
        ("${__P(threads)}", "20"),
        ("${__P(threads,5)}", "20"),
        ("${__P(loops,5)}", "5"),
        ("${__P(loops,)}", ""),
        ("${__P(empty,5)}", ""),
        ("${__property(threads)}", "20"),
        ("${__property(loops,,7)}", "7"),
        ("${__P(loops,${__P(threads,1)})}", "20"),
        ("${__P(loops,(a(b)))}", "(a(b))"),
        ("${__V(host)}", "example.org"),
        ("${__Random(1,9)}", "{{int 1 9}}"),
        ("${__Random(-5, ${__P(threads)},)}", "{{int -5 20}}"),
        ("a${__UUID}b${__UUID()}", "a{{uuid}}b{{uuid}}"),
        ("${id}", "{{csv users.id}}"),
        ("${user}", "{{csv users.user}}"),
        ("100 $", "100 $"),
        # A backslash is special only beside a reference.
        (r"a\,b", r"a\,b"),
        (r"${__P(none,a\,b)}", "a,b"),
        (r"\d+ ${host}", r"\d+ example.org"),
    ],
)
def test_references_are_resolved_as_jmeter_does(written: str, said: str) -> None:
    problems: list[str] = []
    assert write_template(scope(problems).resolve(ELEMENT, written)) == said
    assert problems == []


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("${__counter(TRUE)}", "__counter: the engine's templates have no placeholder for this function"),
        ("${__time()}", "__time: "),
        ("${__threadNum}", "__threadNum: "),
        ("${__Random(9,1)}", "__Random: "),
        ("${__Random(1,2,name)}", "__Random: "),
        ('${__groovy(vars.get("a") + (1))}', "__groovy: "),
        ("${__P(loops)}", "-Jloops: this property is not set, and JMeter uses '1': add -Jloops="),
        ("${__property(loops)}", "-Jloops: this property is not set, and JMeter uses 'loops'"),
        ("${unknown}", "${unknown}: no element that the engine supports sets this variable"),
        ("${ host }", "${ host }: no element"),
        ("${__V(unknown)}", "${unknown}: no element"),
        ("${host", "found text that is not a reference"),
        ("${__P(threads", "found text that is not a reference"),
        (r"\${host} ${host}", "found text that is not a reference"),
        ("${__P(${id})}", "changes from request to request"),
    ],
)
def test_what_no_template_says_is_told(written: str, problem: str) -> None:
    problems: list[str] = []
    scope(problems).resolve(ELEMENT, written)
    assert any(problem in one for one in problems), problems


def test_what_must_be_known_before_the_load_is_told_where_it_is_not() -> None:
    problems: list[str] = []
    assert scope(problems).resolve_fixed(ELEMENT, "${__P(threads)}") == "20"
    assert problems == []
    assert scope(problems).resolve_fixed(ELEMENT, "${id}") == "${id}"
    assert "expected a fixed value" in problems[0]


@given(st.text(alphabet="ab${}(),\\_ P", max_size=60))
def test_any_text_is_taken_apart_without_loss_or_delay(text: str) -> None:
    pieces = parse(text)
    if all(isinstance(piece, str) for piece in pieces):
        assert "".join(map(str, pieces)) == text


def test_references_in_one_another_without_an_end_are_text() -> None:
    deep = "${__P(" * 20_000
    assert parse(deep) == [deep]
