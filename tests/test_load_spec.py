"""Tests load specifications: flags make the load that they name, and errors name contradictory settings."""

import shlex
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.load_spec import FLAG_NAMES, KEY_NAMES, SETTINGS, LoadSpec, choose_user_settings, read_flags
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, ExponentialThink, Load, OpenLoad, Profile, Session, Think, Tls

URL = "http://127.0.0.1:8000/"
RAMP = ((0.0, 0.0), (50.0, 2000.0))


@pytest.mark.parametrize(
    ("flags", "load"),
    [
        ({}, ClosedLoad(64)),
        ({"connections": "8"}, ClosedLoad(8)),
        ({"users": "200", "loops": "5"}, ClosedLoad(200, requests_per_user=5)),
        ({"users": "2000", "ramp_s": "50s", "loops": "5"}, ClosedLoad(RAMP, requests_per_user=5)),
        ({"users": "0s:0,50s:2000"}, ClosedLoad(RAMP)),
        ({"connections": "3", "think": "1s", "pace_s": "100ms"}, ClosedLoad(3, Think(1.0, 1.0), pace_s=0.1)),
        ({"users": "3", "think": "uniform:1s..3s"}, ClosedLoad(3, Think(1.0, 3.0))),
        ({"users": "3", "think": "exp:500ms"}, ClosedLoad(3, ExponentialThink(0.5))),
        ({"rate_rps": "100"}, OpenLoad(100.0, 64)),
        (
            {"rate_rps": "0s:100,30s:1000", "connections": "5", "arrivals": True},
            OpenLoad(((0.0, 100.0), (30.0, 1000.0)), 5, "poisson"),
        ),
        ({"rate_rps": "10", "loops": "3", "think": "1s"}, OpenLoad(10.0, 64, session=Session(3, Think(1.0, 1.0)))),
    ],
)
def test_flags_make_the_load_they_name(flags: dict[str, Any], load: Load) -> None:
    assert read_flags((URL,), flags).to_plan().load == load


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"rate_rps": "fast"}, "-R/--rate: found 'fast', expected a number above 0, or points such as 0s:100,30s:1000"),
        ({"rate_rps": "0"}, "-R/--rate: found '0', expected at least one value above 0"),
        ({"rate_rps": "30s:1,10s:2"}, "-R/--rate: found '30s:1,10s:2', expected points sorted by time"),
        ({"rate_rps": "0s:1,5"}, "expected a time before each value"),
        ({"rate_rps": "0:1,5:2"}, "-R/--rate: found '0:1,5:2'"),
        ({"rate_rps": "1", "users": "5"}, "--users: found together with -R/--rate"),
        ({"rate_rps": "1", "pace_s": "1s"}, "--pace: found together with -R/--rate"),
        ({"rate_rps": "1", "think": "1s"}, "--think: found together with -R/--rate and without --loops"),
        ({"arrivals": True}, "--poisson: found without -R/--rate"),
        ({"users": "1.5"}, "--users: found 1.5, expected a whole number"),
        ({"users": "5", "connections": "5"}, "--users: found together with -c/--connections"),
        ({"ramp_s": "5s"}, "--ramp: found without --users"),
        ({"users": "0s:1,5s:2", "ramp_s": "5s"}, "--ramp: found together with --users 0s:1,5s:2"),
        ({"users": "5", "ramp_s": "soon"}, "--ramp: found 'soon'"),
        ({"pace_s": "0"}, "--pace: found '0'"),
        ({"think": "long"}, "--think: found 'long'"),
        ({"think": "uniform:3s..1s"}, "--think: found 'uniform:3s..1s'"),
        ({"think": "uniform:3s"}, "--think: found 'uniform:3s'"),
        ({"think": "normal:3s..4s"}, "--think: found 'normal:3s..4s'"),
    ],
)
def test_flags_that_cannot_be_used_are_named(flags: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_flags((URL,), flags).to_plan()
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "lasts_s"),
    [
        (LoadSpec(connections=5), 10),
        (LoadSpec(connections=5, requests=100), 3600),
        (LoadSpec(connections=5, loops=2), 3600),
        (LoadSpec(connections=5, until_first_failure=True), 3600),
        (LoadSpec(users=RAMP), 50),
        (LoadSpec(users=RAMP, until_first_failure=True), 50),
        (LoadSpec(users=2000.0, ramp_s=50.0), 60),
        (LoadSpec(rate_rps=10.0, loops=2), 10),
        (LoadSpec(rate_rps=((0.0, 5.0),)), 10),
        (LoadSpec(connections=5, duration_s=7.0), 7),
    ],
)
def test_a_load_lasts_as_long_as_its_profile_or_until_it_is_over(spec: LoadSpec, lasts_s: float) -> None:
    assert replace(spec, urls=(URL,)).to_plan().duration_s == lasts_s


def test_requests_that_wait_for_no_answer_are_pipelined() -> None:
    scenario = {"steps": [{"path": "/{{seq}}"}], "cookies": "off"}
    closed = LoadSpec(connections=900, pipeline=1024)
    for spec in (closed, LoadSpec(rate_rps=10.0, connections=5, pipeline=2), replace(closed, scenario=scenario)):
        assert replace(spec, urls=(URL,)).to_plan().pipeline == spec.pipeline


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (LoadSpec(pipeline=1025), "--pipeline: found 1025, expected a number from 1 to 1024"),
        (LoadSpec(pipeline=2, keep_alive=False), "--pipeline: found 2 together with --no-keepalive"),
        (LoadSpec(pipeline=2, scenario={}), "--pipeline: found 2 together with --scenario with cookies, extraction"),
        (
            LoadSpec(pipeline=2, think=Think(1, 1)),
            "--pipeline: found 2 together with a profile of users, --think, --loops or --pace",
        ),
        (LoadSpec(pipeline=2, users=RAMP), "--pipeline: found 2 together with a profile of users"),
        (LoadSpec(pipeline=2, rate_rps=10.0, loops=2), "--pipeline: found 2 together with --loops"),
        (
            LoadSpec(pipeline=1000, connections=1001),
            "--pipeline: found 1000 requests on each of 1001 connections, expected at most 1,000,000 requests",
        ),
        (LoadSpec(urls=("a:80",)), "URL: found 'a:80', expected http://HOST[:PORT]/PATH"),
        (LoadSpec(urls=(URL, "b")), "URL: found 'b', expected http://HOST[:PORT]/PATH"),
        (LoadSpec(urls=(URL, URL), scenario={}), "URL: found 2 URLs together with --scenario, expected one"),
        (LoadSpec(urls=("unix:/a", URL)), "URL: found http and unix, expected the same scheme in all URLs"),
        (
            LoadSpec(urls=(URL, URL), connections=1),
            "URL: found 2 URLs for 1 connections, expected at least one connection for each",
        ),
        (LoadSpec(scenario={}, method="PUT"), "-m/--method: found 'PUT' together with --scenario"),
        (LoadSpec(tls_insecure=True), "--insecure: found with 'http://127.0.0.1:8000/'"),
        (LoadSpec(urls=("https://a/",), tls_key="k"), "--key: found without --cert, expected both or neither"),
        (
            LoadSpec(urls=("https://a/",), tls_ca="c", tls_insecure=True),
            "--insecure: found together with --cacert, expected only one of the two",
        ),
        (LoadSpec(urls=("http://a:b@h/", "http://c:d@h/")), "--user: found two names or passwords"),
        (
            LoadSpec(user=("a", "b"), headers=(("authorization", "x"),)),
            "--user: found together with Authorization in -H/--header",
        ),
        (LoadSpec(user=("a", "b"), scenario={}), "--user: found together with --scenario"),
        (LoadSpec(urls=("unix:/a",), kernel_timestamps=True), "--kernel-timestamps: found with 'unix:/a'"),
        (
            LoadSpec(urls=("unix:/a",), all_addresses=True),
            "--all-addresses: found together with unix:/a, expected a host",
        ),
        (
            LoadSpec(connect_to="[::1]:1", all_addresses=True),
            "--all-addresses: found together with --connect-to, expected",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_named(spec: LoadSpec, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        replace(spec, urls=spec.urls or (URL,)).to_plan()
    assert str(caught.value).startswith(problem)


def test_settings_of_a_study_are_named_by_their_keys() -> None:
    with pytest.raises(UsageError, match=r"matrix\.users: found together with matrix\.connections"):
        LoadSpec(users=5.0, connections=5).to_load(KEY_NAMES)


def test_several_urls_are_the_targets_of_one_load() -> None:
    assert LoadSpec(urls=(URL,)).to_plan().targets == ()
    urls = ("http://a/", "HTTP://b/")
    assert LoadSpec(urls=urls).to_plan().targets == urls


@pytest.mark.parametrize(
    "spec",
    [
        LoadSpec(urls=(URL,), user=("Aladdin", "open sesame")),
        LoadSpec(urls=("http://Aladdin:open%20sesame@127.0.0.1:8000/",)),
        LoadSpec(urls=("http://Aladdin:open%20sesame@127.0.0.1:8000/",), user=("Aladdin", "open sesame")),
    ],
)
def test_name_and_password_become_the_header_of_rfc_7617(spec: LoadSpec) -> None:
    plan = spec.to_plan()
    # The example is from RFC 7617, section 2.
    assert plan.request.headers == (("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),)
    assert plan.request.target == URL


def test_an_at_sign_in_a_path_is_no_password() -> None:
    plan = LoadSpec(urls=("http://127.0.0.1:8000/@a:b@c",)).to_plan()
    assert (plan.request.target, plan.request.headers) == ("http://127.0.0.1:8000/@a:b@c", ())


def test_settings_of_tls_are_those_of_the_plan() -> None:
    assert LoadSpec(urls=("https://a/", "https://b/"), tls_insecure=True).to_plan().tls == Tls(insecure=True)
    assert LoadSpec(urls=("https://a/",)).to_plan().tls is None


def test_every_setting_has_a_flag_a_help_that_is_a_sentence_and_a_default() -> None:
    flags = [flag for names in FLAG_NAMES.values() for flag in names.split("/")]
    assert len(flags) == len(set(flags))
    for setting in SETTINGS.values():
        assert setting.help.endswith(".")
        assert not setting.key_help or setting.key_help.endswith(".")
    assert {one.name for one in fields(LoadSpec)} - set(SETTINGS) == {"urls", "body_file", "scenario_file"}


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "connections": st.integers(1, 10**6),
    "users": st.integers(1, 10**6).map(float),
    "ramp_s": st.floats(1e-3, 1e6),
    "rate_rps": st.floats(1e-3, 1e6),
    "arrivals": st.just("poisson"),
    "loops": st.integers(1, 10**6),
    "think": st.sampled_from([Think(1.0, 1.0), Think(0.0, 0.3), ExponentialThink(0.25)]),
    "pace_s": st.floats(1e-3, 1e6),
    "duration_s": st.floats(1e-3, 1e6),
    "requests": st.integers(1, 10**8),
    "method": st.sampled_from(["PUT", "DELETE"]),
    "headers": st.lists(st.sampled_from([("A", "b"), ("X-C", "d: e")]), min_size=1).map(tuple),
    "body": st.text(st.characters(codec="utf-8", exclude_characters="\0"))
    .map(str.encode)
    .filter(lambda body: body[:1] != b"@"),
    "user": st.sampled_from([("anna", "secret"), ("anna", "a:b"), ("", "")]),
    "timeout_s": st.floats(1e-3, 3600),
    "pipeline": st.integers(1, 1024),
    "connect_to": st.sampled_from(["127.0.0.1:81", "[::1]:8080"]),
    "bind": st.sampled_from([("127.0.0.2",), ("127.0.0.2", "::1")]),
    "tls_server_name": st.just("a"),
    "threads": st.integers(1, 64),
    "cpus": st.just((0,)),
    "seed": st.integers(0, 2**63 - 1),
}
SWITCHES = [name for name, setting in SETTINGS.items() if not setting.metavar]
FILES = {"scenario", "tls_ca", "tls_certificate", "tls_key"}


@settings(max_examples=200)
@given(st.data(), st.sets(st.sampled_from(sorted({*VALUES, *SWITCHES})), max_size=6))
def test_flags_give_the_load_back_that_they_were_written_for(data: st.DataObject, names: set[str]) -> None:
    chosen = {name: SETTINGS[name].const if name in SWITCHES else data.draw(VALUES[name]) for name in names}
    spec = LoadSpec(urls=(URL,), **chosen)
    words = spec.to_arguments()
    assert words.pop(0) == URL
    by_flag = {flag: name for name, setting in SETTINGS.items() for flag in setting.flags.split("/")}
    texts: dict[str, Any] = {}
    while words:
        name = by_flag[words.pop(0)]
        setting = SETTINGS[name]
        value: Any = words.pop(0) if setting.metavar else True
        texts[name] = [*texts.get(name, []), value] if setting.repeats else value
    assert read_flags((URL,), texts) == spec


def test_what_the_engine_writes_by_itself_is_no_flag() -> None:
    headers = (("Host", "127.0.0.1:8000"), ("Content-Length", "3"), ("Connection", "close"), ("X-A", "1"))
    spec = LoadSpec(urls=(URL,), headers=headers)
    assert spec.without_implied_settings().headers == (("Connection", "close"), ("X-A", "1"))
    assert replace(spec, keep_alive=False).without_implied_settings().headers == (("X-A", "1"),)
    other = (("Host", "elsewhere"),)
    assert LoadSpec(urls=(URL,), headers=other).without_implied_settings().headers == other


@pytest.mark.parametrize("body", [b"@file", b"\xff\xfe", b"a\0b", b"x" * 200_000])
def test_a_body_that_is_no_argument_is_printed_as_a_file(body: bytes) -> None:
    spec = LoadSpec(urls=(URL,), body=body)
    assert spec.to_arguments()[-1] == "@body"
    assert replace(spec, body_file="some/request.json").to_arguments()[-1] == "@some/request.json"


def test_a_command_line_is_quoted_for_a_shell() -> None:
    command = LoadSpec(urls=(f"{URL}?a=1&b=2",), headers=(("X", "it's"),), body=b"$HOME `id`").to_command()
    assert "'http://127.0.0.1:8000/?a=1&b=2'" in command
    assert shlex.split(command)[-1] == "$HOME `id`"


@pytest.mark.parametrize(
    ("users", "fields"),
    [
        (5, {"connections": 5}),
        (((0.0, 0.0), (5.0, 10.0)), {"users": 10.0, "ramp_s": 5.0}),
        (((0.0, 1.0), (5.0, 10.0)), {"users": ((0.0, 1.0), (5.0, 10.0))}),
    ],
)
def test_users_over_time_are_the_settings_that_give_them(users: Profile, fields: dict[str, Any]) -> None:
    assert choose_user_settings(users) == fields
    load = LoadSpec(urls=(URL,), **fields).to_plan().load
    assert isinstance(load, ClosedLoad)
    assert load.users == users


def test_the_settings_above_are_all_that_there_are() -> None:
    assert {*VALUES, *SWITCHES, *FILES} == set(SETTINGS)
