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
from weir.compat.jmx.complaint import NotExactError
from weir.compat.jmx.native import list_native_loads
from weir.compat.jmx.references import write_template
from weir.compat.jmx.test_plan import NO_TIMEOUT_S, Sampler


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
    """Returns the complaints about a plan that the engine cannot run exactly, as `WHAT: WHY`."""
    with pytest.raises(NotExactError) as raised:
        read(text)
    return [f"{one.what}: {one.why}" for one in raised.value.complaints]


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
    (sampler,) = read(plan(group(get(path="http://[::1]:81/a b?c=d")))).groups[0].samplers
    assert (sampler.origin, write_template(sampler.path)) == ("http://[::1]:81", "/a%20b?c=d")


def test_a_path_that_begins_with_a_value_is_that_value(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("path\n/x\n")
    text = plan(group(get(path="${path}/y"), get(path="${__UUID}"), get("GET of ${__P(what,it)}"), data_set("a.csv")))
    first, second, third = read(text).groups[0].samplers
    assert (write_template(first.path), write_template(second.path)) == ("{{csv a.path}}/y", "/{{uuid}}")
    assert third.name == "GET of it"


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
    inner = element(
        "LoopController", "Inner", get("b"), LoopController__continue_forever=True, LoopController__loops="${__P(n,2)}"
    )
    outer = element(
        "LoopController", "Outer", get("a") + inner, LoopController__continue_forever=True, LoopController__loops=2
    )
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
    (tmp_path / "bare.txt").write_text("x\ty\tz\nu\tv\n")
    text = plan(
        group(
            get(path="/${id}/${two}"),
            data_set("named.csv", delimiter=";"),
            data_set("bare.txt", delimiter="\\t", variableNames="one, two", quotedData=False),
        )
    )
    (found,) = read(text).groups
    named, bare = found.data_sets
    assert (named.name, bare.name) == ("named", "bare")
    assert (named.columns, named.rows) == (("id", "name"), (("1", "a;b"), ("2", "c")))
    assert (bare.columns, bare.rows) == (("one", "two"), (("x", "y"), ("u", "v")))
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
    assert [one.name for one in found.groups[0].samplers] == ["get"]


def test_a_bill_counts_all_complaints_and_begins_with_the_most_frequent(read: Read) -> None:
    extractor = element("RegexExtractor", "token", RegexExtractor__refname="token")
    inside = get("inside", path="/${token}", below=extractor) + data_set("users.csv")
    text = plan(
        group(get("Login", below=element("JSR223PreProcessor", "sign")), element("IfController", "If", inside)),
        element("kg.apc.jmeter.threads.UltimateThreadGroup", "Ultimate", get("more", below=extractor, md5=True)),
        element("AuthManager", "Passwords"),
        group(get("time", path="/${__time()}"), threads="${__P(threads)}"),
    )
    with pytest.raises(NotExactError) as raised:
        read(text)
    found = raised.value
    assert found.exit_code == 2
    assert found.message.splitlines()[0].endswith(
        "plan.jmx: weir's engine cannot run this plan exactly (4 HTTP samplers):"
    )
    unsupported = "the engine does not support this element"
    assert [line.strip() for line in found.message.splitlines()[1:]] == [
        f"RegexExtractor 2, first at line 5 ('token'): {unsupported}",
        f"JSR223PreProcessor 1, first at line 3 ('sign'): {unsupported}",
        f"IfController 1, first at line 5 ('If'): {unsupported}",
        "${token} 1, first at line 5 ('inside'): the RegexExtractor at line 5 sets this variable, but is not "
        "supported by the engine",
        "CSVDataSet 1, first at line 7 ('users.csv'): found a data set inside a controller, expected a data set of the "
        "thread group",
        f"kg.apc.jmeter.threads.UltimateThreadGroup 1, first at line 10 ('Ultimate'): {unsupported}",
        "HTTPSamplerProxy 1, first at line 10 ('more'): found an MD5 hash instead of the response (HTTPSampler.md5), "
        "expected none",
        f"AuthManager 1, first at line 13 ('Passwords'): {unsupported}",
        "-Jthreads 1, first at line 14 ('Users'): this property is not set, and JMeter uses '1': add -Jthreads=...",
        "__time 1, first at line 14 ('time'): the engine's templates have no placeholder for this function "
        "with these arguments",
    ]
    assert found.summary == "RegexExtractor 2, JSR223PreProcessor 1, IfController 1 and 7 more"
    assert found.hint == "run the plan with JMeter: weir jmeter, without --engine"


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        (group(get(DO_MULTIPART_POST=True)), "HTTPSamplerProxy: found a body in several parts"),
        (group(get(image_parser=True)), "the resources that a page embeds"),
        (group(get(proxyHost="proxy")), "a proxy"),
        (group(get(implementation="Java")), "found the implementation Java, expected HttpClient4"),
        (group(get(contentEncoding="ISO-8859-1")), "found the encoding ISO-8859-1, expected UTF-8"),
        (group(get(method="get")), "found the method get"),
        (group(get(method="POST", given=[("a", "{{mustache}}", False)], postBodyRaw=True)), "found {{"),
        (group(get(), get("other", domain="example.org")), "found another server than http://127.0.0.1:8080"),
        (group(get(response_timeout="1"), get(response_timeout="2")), "another response timeout"),
        (group(get(use_keepalive=False), get()), "another keep-alive"),
        (group(get(below=headers(Connection="close")), get()), "another keep-alive"),
        (group(get(below=cookies()), get()), "another cookie manager"),
        (group(get(below=headers(X_D="1", x_d="2"))), "HeaderManager: found two headers x-d"),
        (group(get(below=headers(X_D="é"))), "HeaderManager: 1 of 1 values, such as 'é': JMeter sends other bytes"),
        (group(get(below=headers(Host="shop.test"))), "found a header Host of another server"),
        (group(get(), get(), same_user_on_next_iteration=False), "a new user with new connections"),
        (group(get(), on_sample_error="stoptestnow"), "action after a sampler error: found stoptestnow"),
        (group(get(), get(), on_sample_error="startnextloop"), "action after a sampler error: found startnextloop"),
        (group(get(), uniform_timer("0", "10"), uniform_timer("0", "10")), "a second random timer"),
        (group(element("LoopController", "L", get(), LoopController__continue_forever=True, LoopController__loops=-1)), "endless"),
        (group(element("LoopController", "L", get(), LoopController__continue_forever=True, LoopController__loops=10001)), "10001"),
        (group(element("LoopController", "L", get(), LoopController__loops=2)), "runs only in the first iteration"),
        (group(element("TransactionController", "T", get())), "TransactionController: the engine does not support"),
        (group(element("OnceOnlyController", "O", get("login")), get()), "OnceOnlyController: the engine does not support"),
        (group(get(), assertion(2, "x", field="response_headers")), "found response_headers"),
        (group(get(), assertion(2 + 4 + 32, "x", "y")), "Not and Or"),
        (group(get(), assertion(64, "x")), "Assertion.test_type: found '64'"),
        (group(get(), assertion(8, "404", field="response_code")), "no status from 200 to 399"),
        (group(get(below=headers(Accept_Encoding="gzip, br")), assertion(2, "x")), "compressed"),
        (group(get("${__Random(1,9)}-upload")), "${__Random(1,9)}: found a value that changes from request to request"),
        (group(get(path="/{a}")), "found '{' in the URL, with which JMeter sends no request"),
        (group(get(path="/[a]?b=[c]")), "found '[' in the URL"),
        (group(get(path="/%zz")), "found '%' in the URL"),
        (group(get(given=[("a", "b c", False)])), "found ' ' in the URL"),
        (group(get(method="POST", given=[("a", "50%", False)])), "HTTPSamplerProxy: 1 of 1 values, such as '50%'"),
        (group(get(), threads="many"), "ThreadGroup: ThreadGroup.num_threads: found 'many', expected a whole number"),
        (group(get(), threads="1e99"), "found '1e99', expected a whole number"),
        (group(get(), constant_timer("soon")), "ConstantTimer: ConstantTimer.delay: found 'soon'"),
        (group(get(port="http")), "HTTPSampler.port: found 'http'"),
        (group(get(port="70000")), "found the port 70000"),
        (group(get(domain="")), "found the server '', expected"),
        (group(get(domain="a b/c")), "found the server 'a b/c'"),
        (group(get(protocol="ftp")), "found the protocol 'ftp', expected http or https"),
        (group(get(), data_set("nowhere.csv")), "CSVDataSet: nowhere.csv: cannot be read: No such file"),
        (group(get(), data_set("${__BeanShell(1+(1))}/u.csv")), "__BeanShell: "),
        (group(get(), data_set("${__P(users.csv)}")), "-Jusers.csv: this property is not set"),
        (group(get(), loops="${__P(l,)}"), "found no thread group with threads, loops and HTTP requests"),
        (group(), "found no thread group with threads, loops and HTTP requests"),
        ("", "found no thread group"),
    ],
)  # fmt: skip
def test_what_the_engine_cannot_do_exactly_is_one_complaint(read: Read, parts: str, problem: str) -> None:
    told = problems(read, plan(parts))
    assert len(told) == 1, told
    assert problem in told[0]


def test_a_variable_without_a_value_is_told_with_the_element_that_sets_it(read: Read) -> None:
    names = '<collectionProp name="UserParameters.names"><stringProp name="1">scheme</stringProp></collectionProp>'
    parameters = element("UserParameters", "Ours", more=names)
    body = get("order", method="POST", given=[("", '{"id": "${itm}"}', False)])
    assert problems(read, plan(group(get(protocol="${scheme}"), body, parameters))) == [
        "${scheme}: the UserParameters at line 5 sets this variable, but is not supported by the engine",
        "${itm}: no element that the engine supports sets this variable",
        "UserParameters: the engine does not support this element",
    ]


def test_variables_of_one_element_do_not_see_each_other(read: Read) -> None:
    told = problems(read, plan(group(get(path="/${b}")), variables={"a": "A", "b": "${a}B"}))
    assert told == ["${a}: no element that the engine supports sets this variable"]


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=x)",
        r"(a)\1",
        "x{",
        "a{,2}",
        "<b>${name}</b>",
        r"a$\n",
        "[[a]",
        "[a&&b]",
        r"\h",
        "a++",
        "(?>a)",
        "(",
        "*",
        "a**",
    ],
)
def test_a_pattern_that_another_regular_expression_engine_reads_otherwise_is_told(read: Read, pattern: str) -> None:
    told = problems(read, plan(group(get(), assertion(2, pattern))))
    assert len(told) == 1, told
    assert told[0].startswith(("ResponseAssertion: the regular expression", "${name}: "))


@pytest.mark.parametrize(
    "pattern",
    ["", "ok", "^ok$|(no$)", "^a.*b", r"\d+\s?", "(?:a|b){1,3}", "[^a-z0-9_-]+?", r"\{\}\[x\]", r"[\w.]{2}", "<b>é</b>", r"\$", "[-a]",
     r"[\]]"],
)  # fmt: skip
def test_a_pattern_that_all_regular_expression_engines_read_alike_is_exact(read: Read, pattern: str) -> None:
    assert read(plan(group(get(), assertion(2, pattern)))).groups[0].samplers[0].assertions[0].texts == (pattern,)


@pytest.mark.parametrize(
    ("written", "sent_path"),
    [
        ("/a//b///c?x=//y", "/a/b/c?x=//y"),
        ("//a/b//", "/a/b/"),
        ("/a/../b/./c", "/a/../b/./c"),
        ("/a?x=1#top", "/a?x=1"),
        ("/a#b?c", "/a"),
        ("/a b/?x=y z", "/a%20b/?x=y%20z"),
        ("http://127.0.0.1:8080//a", "/a"),
        ("//${__UUID}//x#${__UUID}", "/{{uuid}}/x"),
        ("/e\u0301", "/é"),
    ],
)
def test_a_path_is_written_as_jmeter_does(read: Read, written: str, sent_path: str) -> None:
    (sampler,) = read(plan(group(get(path=written)))).groups[0].samplers
    assert write_template(sampler.path) == sent_path


def test_a_query_behind_a_fragment_is_not_sent(read: Read) -> None:
    (sampler,) = read(plan(group(get(path="/a#top", given=[("k", "v", False)])))).groups[0].samplers
    assert write_template(sampler.path) == "/a"


@pytest.mark.parametrize(
    ("method", "is_raw", "path", "body", "content_type"),
    [
        ("DELETE", False, "/p?a=1", "a=1", "application/x-www-form-urlencoded; charset=UTF-8"),
        ("DELETE", True, "/p", "1", "text/plain; charset=UTF-8"),
        ("HEAD", False, "/p", None, None),
        ("HEAD", True, "/p", None, None),
        ("OPTIONS", False, "/p?a=1", None, None),
        ("OPTIONS", True, "/p", None, None),
        ("GET", False, "/p?a=1", None, None),
        ("GET", True, "/p", "1", "text/plain; charset=UTF-8"),
        ("PATCH", False, "/p", "a=1", "application/x-www-form-urlencoded; charset=UTF-8"),
    ],
)
def test_each_method_has_the_query_and_the_body_that_jmeter_gives_it(
    read: Read, method: str, is_raw: bool, path: str, body: str | None, content_type: str | None
) -> None:
    given = [("a", "1", False)]
    (sampler,) = read(plan(group(get(path="/p", method=method, given=given, postBodyRaw=is_raw)))).groups[0].samplers
    assert write_template(sampler.path) == path
    assert (None if sampler.body is None else write_template(sampler.body)) == body
    assert sent(sampler).get("Content-Type") == content_type


def test_a_request_without_parameters_says_that_its_body_is_empty(read: Read) -> None:
    deleted, asked = read(plan(group(get(method="DELETE"), get(postBodyRaw=True)))).groups[0].samplers
    assert (deleted.body, sent(deleted)["Content-Type"]) == ((), "application/x-www-form-urlencoded; charset=UTF-8")
    assert (asked.body, sent(asked)["Content-Type"]) == ((), "text/plain; charset=UTF-8")


def test_headers_keep_their_spaces_and_a_header_that_closes_ends_keep_alive(read: Read) -> None:
    (found,) = read(plan(group(get(), headers(Connection="close", X_F=" v ", Host="127.0.0.1:8080")))).groups
    assert not found.keep_alive
    assert sent(found.samplers[0]) == {"X-F": " v "}


@pytest.mark.parametrize(
    ("value", "use", "is_exact"),
    [
        ("a/b", {"path": "/x/${v}"}, True),
        ("/a", {"path": "/x/${v}"}, False),
        ("", {"path": "/x/${v}"}, False),
        ("a%20b", {"path": "/x/${v}"}, False),
        ("/a", {"path": "${v}/x"}, True),
        ("/a?b=%20&c=+", {"path": "${v}"}, True),
        ("//a", {"path": "${v}"}, False),
        ("http://example.org/a", {"path": "${v}"}, False),
        ("a+b", {"path": "/?x=${v}"}, False),
        ("a/b:c", {"path": "/?x=${v}"}, True),
        ("a/b", {"given": [("x", "${v}", True)]}, False),
        ("a.b-1", {"given": [("x", "${v}", True)]}, True),
        ("a/b", {"given": [("x", "${v}", False)]}, True),
        ("a b&%20", {"given": [("x", "${v}", True)], "method": "POST"}, True),
        ("a%20b", {"given": [("x", "${v}", False)], "method": "POST"}, True),
        ("50%", {"given": [("x", "${v}", False)], "method": "POST"}, False),
        ("50% é", {"given": [("x", "${v}", False)], "method": "POST", "postBodyRaw": True}, True),
        ("a b", {"below": headers(X_V="${v}")}, True),
        ("é", {"below": headers(X_V="${v}")}, False),
    ],
)  # fmt: skip
def test_values_of_a_data_set_are_exact_where_the_engine_writes_them_as_jmeter(
    read: Read, tmp_path: Path, value: str, use: dict[str, Any], is_exact: bool
) -> None:
    (tmp_path / "a.csv").write_text(f"v,w\n{value},1\n")
    text = plan(group(get(**use), data_set("a.csv")))
    if is_exact:
        read(text)
    else:
        (told,) = problems(read, text)
        assert told.startswith(f"${{v}}: 1 of 1 values, such as {value!r}")


def test_a_value_in_a_form_that_is_not_to_be_encoded_is_decoded_first(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("v\na%20b\na+b\n")
    form = get(method="POST", given=[("x", "${v}", False), ("y", "a%20b", False)])
    (native,) = list_native_loads(read(plan(group(form, data_set("a.csv")))))
    assert native.files["a.csv"] == '"v encoded again"\n"a+b"\n"a+b"\n'
    assert native.scenario.steps[0].body == "x={{csv a.v encoded again}}&y=a+b"


def test_a_parameter_has_the_equals_sign_that_the_plan_says(read: Read) -> None:
    text = plan(group(get(given=[("k", "", False)]), get(method="POST", given=[("k", "", False)])))
    asked, posted = read(text.replace('<stringProp name="Argument.metadata">=</stringProp>', "")).groups[0].samplers
    assert (write_template(asked.path), posted.body) == ("/?k", ("k=",))


def test_what_loops_repeat_is_told_once(read: Read) -> None:
    loop = element(
        "LoopController", "L", get(image_parser=True), LoopController__continue_forever=True, LoopController__loops=5
    )
    assert len(problems(read, plan(group(loop)))) == 1


def test_data_sets_whose_rows_jmeter_takes_otherwise_are_told(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    own = plan(group(get(), data_set("a.csv", shareMode="shareMode.thread"), threads=2))
    shared = plan(data_set("a.csv"), group(get(), name="a"), group(get(), name="b"))
    ending = plan(group(get(), data_set("a.csv", recycle=False, stopThread=True)))
    within = plan(group(element("GenericController", "C", get() + data_set("a.csv"))))
    for text, problem in (
        (own, "for each thread"),
        (shared, "thread groups share"),
        (ending, "found Recycle on EOF off"),
        (within, "inside a controller"),
    ):
        told = problems(read, text)
        assert any(problem in one for one in told), told


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id\n", "found no rows"),
        ("", "found no rows"),
        ('id\n"1', "not valid CSV"),
        (b"\xff", "cannot be decoded"),
        ("id,name\n1,a\n2\n", "found a row with fewer than 2 values"),
        ("id\n1\n\n2\n", "or an empty line"),
    ],
)
def test_a_data_set_that_cannot_be_read_alike_is_told(
    read: Read, tmp_path: Path, content: str | bytes, message: str
) -> None:
    (tmp_path / "a.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    (told,) = problems(read, plan(group(get(), data_set("a.csv"))))
    assert told.startswith("CSVDataSet: a.csv: ")
    assert message in told
