"""Tests the requests of a test plan, and which elements apply to which samplers."""

from pathlib import Path
from typing import Any

import pytest

from tests.compat.jmx.conftest import Read
from tests.support.jmx import (
    arguments,
    assertion,
    constant_timer,
    data_set,
    element,
    get,
    group,
    headers,
    plan,
    uniform_timer,
)
from weir.compat.jmx.references import write_template
from weir.compat.jmx.test_plan import NO_TIMEOUT_S, Sampler
from weir.model.errors import UsageError


def defaults(**values: Any) -> str:
    return element(
        "ConfigTestElement",
        "Defaults",
        gui="HttpDefaultsGui",
        **{f"HTTPSampler__{key}": value for key, value in values.items()},
    )


def cookies(**values: Any) -> str:
    return element("CookieManager", **_prefixed("CookieManager", values))


def _prefixed(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}__{key}": value for key, value in values.items()}


def sent(sampler: Sampler) -> dict[str, str]:
    return {name: write_template(value) for name, value in sampler.headers}


def problems(read: Read, text: str) -> list[str]:
    return [str(one).split(": ", 1)[1] for one in read(text).unsupported]


def test_a_thread_group_says_how_many_come_how_fast_and_how_often_they_ask(read: Read) -> None:
    (found,) = read(plan(group(get(), threads="${__P(threads,2000)}", ramp="50", loops=5)), threads="20").groups
    assert (found.threads, found.ramp_s, found.loops) == (20, 50.0, 5)
    assert (found.delay_s, found.duration_s, found.on_error, found.cookies, found.keep_alive) == (
        0,
        None,
        "continue",
        "off",
        True,
    )
    assert found.timeout_s == NO_TIMEOUT_S


def test_a_thread_group_that_goes_on_for_ever_does_so_whatever_its_number_of_loops(read: Read) -> None:
    assert [one.loops for one in read(plan(group(get(), loops=5, is_endless=True), group(get(), loops=-1))).groups] == [
        None,
        None,
    ]


def test_a_scheduler_counts_only_where_it_is_on(read: Read) -> None:
    on, off = read(
        plan(
            group(get(), loops=-1, scheduler=True, duration="10", delay="2"),
            group(get(), scheduler=False, duration="10", delay="2"),
        )
    ).groups
    assert (on.loops, on.duration_s, on.delay_s) == (None, 10.0, 2.0)
    assert (off.loops, off.duration_s, off.delay_s) == (1, None, 0.0)


def test_thread_groups_that_ask_for_nothing_are_left_out_and_keep_their_numbers(read: Read) -> None:
    found = read(plan(group(get(), threads=0), group(get(), loops=0), group(), group(get(), name="Last"))).groups
    assert [(one.name, one.number) for one in found] == [("Last", 4)]


def test_groups_that_set_up_come_first_and_those_that_tear_down_last(read: Read) -> None:
    groups = [
        group(get(), name="b"),
        group(get(), kind="PostThreadGroup", name="z"),
        group(get(), kind="SetupThreadGroup", name="a"),
    ]
    groups.append(group(get(), name="c"))
    assert [[one.name for one in phase] for phase in read(plan(*groups)).phases()] == [["a"], ["b", "c"], ["z"]]
    serial = read(plan(*groups, is_serial=True))
    assert [[one.name for one in phase] for phase in serial.phases()] == [["a"], ["b"], ["c"], ["z"]]


def test_an_element_applies_to_all_samplers_below_its_parent_wherever_it_stands(read: Read) -> None:
    inner = element("GenericController", "Inner", get("deep") + constant_timer("300") + headers(X_Level="inner"))
    text = plan(
        group(
            get("first"),
            inner,
            get("last", below=headers(X_Level="own") + constant_timer("50")),
            constant_timer("100"),
            headers(X_Level="group"),
        ),
        headers(X_Level="plan", X_All="yes"),
    )
    first, deep, last = read(text).groups[0].samplers
    assert [sent(one) for one in (first, deep, last)] == [
        {"X-Level": level, "X-All": "yes"} for level in ("group", "inner", "own")
    ]
    assert [one.delay.shortest_s for one in (first, deep, last)] == pytest.approx([0.1, 0.4, 0.15])


def test_headers_of_one_name_are_one_whatever_their_case(read: Read) -> None:
    (sampler,) = (
        read(plan(group(get(below=headers(accept="mine")), headers(Accept="theirs", Content_Length="9"))))
        .groups[0]
        .samplers
    )
    assert sent(sampler) == {"accept": "mine"}


def test_defaults_fill_what_a_sampler_leaves_empty_the_nearest_first(read: Read) -> None:
    text = plan(
        group(get(domain="", port="", path="", method=""), defaults(port="9090", path="near")),
        defaults(domain="example.org", port="1", path="/far", protocol="https", response_timeout="1500"),
    )
    (found,) = read(text).groups
    (sampler,) = found.samplers
    assert (sampler.method, sampler.origin, write_template(sampler.path)) == (
        "GET",
        "https://example.org:9090",
        "/near",
    )
    assert found.timeout_s == 1.5


def test_a_path_may_be_a_whole_url(read: Read) -> None:
    (sampler,) = read(plan(group(get(path="http://[::1]:81/a b?c=${d}")))).groups[0].samplers
    assert (sampler.origin, write_template(sampler.path)) == ("http://[::1]:81", "/a%20b?c=${d}")


def test_a_path_that_begins_with_a_value_is_that_value(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("path\n/x\n")
    text = plan(
        group(get(path="${path}/y"), get(path="${__UUID}"), get("GET ${path} of ${__P(what,it)}"), data_set("a.csv"))
    )
    first, second, third = read(text).groups[0].samplers
    assert (write_template(first.path), write_template(second.path)) == ("{{csv a.path}}/y", "/{{uuid}}")
    assert third.name == "GET ${path} of it"


def test_parameters_are_a_query_or_a_form_and_encoded_where_they_say_so(read: Read) -> None:
    given = [("a b", "c&d", True), ("e", "f%20g", False), ("", "dropped", True)]
    asked, posted = (
        read(plan(group(get(path="/p?q=1", given=given), get("post", path="/p", method="POST", given=given))))
        .groups[0]
        .samplers
    )
    assert (write_template(asked.path), asked.body) == ("/p?q=1&a+b=c%26d&e=f%20g", None)
    assert posted.body == ("a+b=c%26d&e=f+g",)
    assert sent(posted) == {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}


def test_a_raw_body_is_sent_as_it_is_written(read: Read) -> None:
    body = '{"a": {"b": "é ${__Random(1,9)}"}}'
    raw = get(method="PUT", postBodyRaw=True, given=[("", body, False)], below=headers(Content_Type="application/json"))
    unnamed = get("text", method="POST", given=[("", "text", True)])
    first, second = read(plan(group(raw, unnamed))).groups[0].samplers
    assert write_template(first.body or ()) == '{"a": {"b": "é {{int 1 9}}"}}'
    assert sent(first) == {"Content-Type": "application/json"}
    assert (second.body, sent(second)) == (("text",), {"Content-Type": "text/plain; charset=UTF-8"})


def test_timers_add_up_to_one_delay(read: Read) -> None:
    (sampler,) = (
        read(
            plan(group(get(below=uniform_timer("10", "${__P(range)}")), constant_timer("100")), constant_timer("0")),
            range="40",
        )
        .groups[0]
        .samplers
    )
    assert (sampler.delay.shortest_s, sampler.delay.longest_s) == pytest.approx((0.11, 0.15))


def test_variables_are_known_everywhere_and_may_use_those_before_them(read: Read) -> None:
    late = element(
        "Arguments",
        "Late",
        more=arguments("x", [("path", "${base}/${__P(leaf)}", False)]).partition(">")[2].rpartition("<")[0],
    )
    (sampler,) = read(plan(group(get(path="${path}"), late), variables={"base": "/b"}), leaf="l").groups[0].samplers
    assert write_template(sampler.path) == "/b/l"


def test_loops_and_controllers_are_unrolled_in_their_order(read: Read) -> None:
    inner = element("LoopController", "Inner", get("b"), LoopController__loops="${__P(n,2)}")
    outer = element("LoopController", "Outer", get("a") + inner, LoopController__loops=2)
    recorded = element("RecordingController", "Recorded", get("c"))
    (found,) = read(plan(group(outer, recorded))).groups
    assert [one.name for one in found.samplers] == ["a", "b", "b", "a", "b", "b", "c"]


@pytest.mark.parametrize(
    ("manager", "same_user", "kept"),
    [
        ({}, True, "user"),
        ({"clearEachIteration": True}, True, "round"),
        ({"controlledByThreadGroup": True}, True, "user"),
        ({"controlledByThreadGroup": True}, False, "round"),
    ],
)
def test_cookies_last_as_long_as_the_manager_says(
    read: Read, manager: dict[str, bool], same_user: bool, kept: str
) -> None:
    (found,) = read(plan(group(get(), same_user_on_next_iteration=same_user), cookies(**manager))).groups
    assert found.cookies == kept
    assert found.keep_alive is same_user


def test_rows_of_a_data_set_are_read_as_the_plan_says(read: Read, tmp_path: Path) -> None:
    (tmp_path / "named.csv").write_text('"id";name\n1;"a;b"\n2;c\n')
    (tmp_path / "bare.txt").write_text("x\ty\tz\nu\n")
    text = plan(
        group(
            get(path="/${id}/${two}"),
            data_set("named.csv", delimiter=";"),
            data_set(
                "bare.txt", delimiter="\\t", variableNames="one, two", quotedData=False, recycle=False, stopThread=True
            ),
        )
    )
    (found,) = read(text).groups
    named, bare = found.data_sets
    assert (named.name, bare.name) == ("named", "bare")
    assert (named.columns, named.rows, named.stops) == (("id", "name"), (("1", "a;b"), ("2", "c")), False)
    assert (bare.columns, bare.rows, bare.stops) == (("one", "two"), (("x", "y"), ("u", "")), True)
    assert write_template(found.samplers[0].path) == "/{{csv named.id}}/{{csv bare.two}}"


def test_of_two_data_sets_with_one_column_the_later_counts(read: Read, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id\n1\n")
    (found,) = read(
        plan(group(get(path="/${id}"), data_set("b.csv")), data_set("a.csv", shareMode="shareMode.group"))
    ).groups
    assert write_template(found.samplers[0].path) == "/{{csv b.id}}"


def test_listeners_and_what_is_not_run_are_passed_over_in_silence(read: Read) -> None:
    silent = [element(kind, kind, get("never")) for kind in ("TestFragmentController", "ProxyControl", "WorkBench")]
    listeners = [
        element(kind)
        for kind in (
            "ResultCollector",
            "Summariser",
            "BackendListener",
            "kg.apc.jmeter.vizualizers.CorrectedResultCollector",
        )
    ]
    found = read(plan(group(get(), *listeners), *listeners, *silent))
    assert found.unsupported == ()
    assert [one.name for one in found.groups[0].samplers] == ["get"]


def test_everything_that_is_not_supported_is_listed_with_its_place(read: Read) -> None:
    text = plan(
        group(get("Login", below=element("JSR223PreProcessor", "sign")), element("IfController", "If", get("inside"))),
        element("kg.apc.jmeter.threads.UltimateThreadGroup", "Ultimate", get("more")),
        element("AuthManager", "Passwords"),
    )
    found = read(text)
    assert [one.description.partition(":")[0] for one in found.unsupported] == [
        "JSR223PreProcessor 'sign' in Plan > Users > Login",
        "IfController 'If' in Plan > Users",
        "kg.apc.jmeter.threads.UltimateThreadGroup 'Ultimate' in Plan",
        "AuthManager 'Passwords' in Plan",
    ]
    assert [one.name for one in found.groups[0].samplers] == ["Login"]
    assert str(found.unsupported[0]).startswith("line 3: JSR223PreProcessor 'sign' in Plan > Users > Login: ")


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        (group(get(DO_MULTIPART_POST=True)), "HTTPSamplerProxy 'get' in Plan > Users: found a body in several parts"),
        (group(get(image_parser=True)), "the resources that a page embeds"),
        (group(get(proxyHost="proxy")), "a proxy"),
        (group(get(method="TRACE"), get()), "found the method TRACE"),
        (group(get(path="/{{mustache}}"), get()), "found {{"),
        (group(get(), get("other", domain="example.org")), "found another server, expected http://127.0.0.1:8080"),
        (group(get(response_timeout="1"), get(response_timeout="2")), "a shorter response timeout"),
        (group(get(use_keepalive=False), get()), "another keep-alive"),
        (group(get(below=cookies()), get()), "another cookie manager"),
        (group(get(), get(), same_user_on_next_iteration=False), "a new user with new connections"),
        (group(get(), on_sample_error="stoptestnow"), "action after a sampler error: found stoptestnow"),
        (group(get(), get(), on_sample_error="startnextloop"), "action after a sampler error: found startnextloop"),
        (group(get(), uniform_timer("0", "10"), uniform_timer("0", "10")), "a second random timer"),
        (group(element("LoopController", "L", get(), LoopController__loops=-1)), "endless loops"),
        (group(element("LoopController", "L", get(), LoopController__loops=10001)), "10001 loops"),
        (group(element("TransactionController", "T", get())), "reports no sample for the whole transaction"),
        (group(element("OnceOnlyController", "O", get("login")), get()), "omits all elements below it"),
        (group(get(), assertion(2, "x", field="response_headers")), "found response_headers"),
        (group(get(), assertion(2 + 4 + 32, "x", "y")), "Not and Or"),
        (group(get(), assertion(2, "(?=x)")), "weir's regular expressions do not support (?="),
        (group(get(), assertion(2, r"(a)\1")), "weir's regular expressions do not support"),
        (group(get(), assertion(2, "(")), "the regular expression '('"),
        (group(get(), assertion(64, "x")), "Assertion.test_type: found '64'"),
        (group(get(), assertion(8, "404", field="response_code")), "no status from 200 to 399"),
        (group(get(below=headers(Accept_Encoding="gzip, br")), assertion(2, "x")), "compressed"),
        (group(get(path="/${__time()}")), "${__time()}"),
    ],
)  # fmt: skip
def test_what_weir_does_not_do_is_told_and_the_rest_is_read(read: Read, parts: str, problem: str) -> None:
    told = problems(read, plan(parts))
    assert len(told) == 1, told
    assert problem in told[0]
    assert read(plan(parts)).groups[0].samplers


def test_what_loops_repeat_is_told_once(read: Read) -> None:
    assert (
        len(
            problems(read, plan(group(element("LoopController", "L", get(image_parser=True), LoopController__loops=5))))
        )
        == 1
    )


def test_data_sets_that_threads_do_not_share_as_weirs_do_are_told(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    own = plan(group(get(), data_set("a.csv", shareMode="shareMode.thread"), threads=2))
    shared = plan(data_set("a.csv"), group(get(), name="a"), group(get(), name="b"))
    ending = plan(group(get(), data_set("a.csv", recycle=False, stopThread=False)))
    within = plan(group(element("GenericController", "C", get() + data_set("a.csv"))))
    for text, problem in (
        (own, "for each thread"),
        (shared, "thread groups share"),
        (ending, "<EOF>"),
        (within, "inside a controller"),
    ):
        told = problems(read, text)
        assert any(problem in one for one in told), told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            plan(group(get(), threads="many")),
            "line 3: ThreadGroup 'Users': ThreadGroup.num_threads: found 'many', expected a number",
        ),
        (plan(group(get(), threads="1e99")), "found '1e99', expected a number"),
        (plan(group(get(), constant_timer("soon"))), "ConstantTimer.delay: found 'soon'"),
        (plan(group(get(port="http"))), "HTTPSampler.port: found 'http'"),
        (plan(group(get(port="70000"))), "found the port 70000"),
        (plan(group(get(domain=""))), "found the server '', expected"),
        (plan(group(get(domain="a b/c"))), "found the server 'a b/c'"),
        (plan(group(get(protocol="ftp"))), "found the protocol 'ftp', expected http or https"),
        (plan(group(get(), data_set("nowhere.csv"))), "nowhere.csv (line 4: CSVDataSet 'nowhere.csv'): cannot be read"),
        (plan(group()), "found no thread group with threads, loops and HTTP requests"),
        (plan(), "found no thread group"),
    ],
)
def test_what_cannot_be_run_at_all_is_an_error_with_its_line(read: Read, text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(text)
    assert "plan.jmx" in raised.value.message or "nowhere" in message
    assert message in raised.value.message


@pytest.mark.parametrize(
    ("content", "message"),
    [("id\n", "found no rows"), ("", "found no rows"), ('id\n"1', "not valid CSV"), (b"\xff", "cannot be decoded")],
)
def test_a_data_set_that_cannot_be_read_is_an_error(
    read: Read, tmp_path: Path, content: str | bytes, message: str
) -> None:
    (tmp_path / "a.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError, match=message):
        read(plan(group(get(), data_set("a.csv"))))
