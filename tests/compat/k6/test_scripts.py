"""k6 scripts in the shapes that people write them in, read into scenarios."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.compat.k6.conftest import HEAD, USER, Converted, gaps, steps, users
from weir.compat.k6 import read
from weir.model.errors import UsageError

# --- What users do


@pytest.mark.parametrize(
    ("call", "step"),
    [
        ("http.get('http://h:1')", {"path": "/"}),
        ("http.get('http://h:1?a=b')", {"path": "/?a=b"}),
        ("http.get('http://h:1/a?b=c#d')", {"path": "/a?b=c"}),
        ("http.get('http://h:1/a', { headers: { 'X-A': '1', B: 2 } })", {"path": "/a", "headers": {"X-A": "1", "B": "2"}}),
        ("http.get('http://h:1/a', { tags: { name: 'an a' } })", {"path": "/a", "name": "an a"}),
        ("http.get(http.url`http://h:1/a/${1 + 1}`)", {"path": "/a/2"}),
        ("http.post('http://h:1/a', 'text')", {"method": "POST", "path": "/a", "body": "text"}),
        (
            "http.put('http://h:1/a', JSON.stringify({ a: [1, 2.5, null, true], b: 'é' }))",
            {"method": "PUT", "path": "/a", "body": '{"a":[1,2.5,null,true],"b":"é"}'},
        ),
        ("http.patch('http://h:1/a')", {"method": "PATCH", "path": "/a"}),
        ("http.del('http://h:1/a')", {"method": "DELETE", "path": "/a"}),
        ("http.del('http://h:1/a', null, { headers: { A: 'b' } })", {"method": "DELETE", "path": "/a", "headers": {"A": "b"}}),
        ("http.head('http://h:1/a', { headers: { A: 'b' } })", {"method": "HEAD", "path": "/a", "headers": {"A": "b"}}),
        ("http.options('http://h:1/a')", {"method": "OPTIONS", "path": "/a"}),
        (
            "http.request('post', 'http://h:1/a', 'b', { headers: { A: 'b' } })",
            {"method": "POST", "path": "/a", "body": "b", "headers": {"A": "b"}},
        ),
        (
            "http.post('http://h:1/a', { name: 'a b', n: 1 })",
            {"method": "POST", "path": "/a", "body": "name=a+b&n=1", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
        ),
        ("http.get('http://h:1/' + encodeURIComponent('a b/c'))", {"path": "/a%20b%2Fc"}),
        ("http.get('http://h:1/' + 'a'.toUpperCase() + [1, 2].join('-') + (true ? 'x' : 'y'))", {"path": "/A1-2x"}),
    ],
)
def test_every_kind_of_request_is_a_step(call: str, step: dict[str, Any], converted: Converted) -> None:
    found = converted(users(f"{call};"))
    assert steps(found) == [step]
    assert found.plan.request.target in ("http://h:1", "https://h:1")
    assert gaps(found) == []


@pytest.mark.parametrize(
    ("expression", "placeholder"),
    [
        ("Math.floor(Math.random() * 100)", "{{int 0 99}}"),
        ("Math.floor(Math.random() * 100) + 1", "{{int 1 100}}"),
        ("randomIntBetween(1, 6)", "{{int 1 6}}"),
        ("randomString(8)", "{{word 8}}"),
        ("uuidv4()", "{{uuid}}"),
        ("exec.scenario.iterationInTest", "{{seq}}"),
        ("__ITER", "{{seq}}"),
    ],
)
def test_what_is_random_or_counts_is_a_placeholder(expression: str, placeholder: str, converted: Converted) -> None:
    head = HEAD + "import { randomIntBetween, randomString, uuidv4 } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';\n"
    head += "import exec from 'k6/execution';\n"
    found = converted(users(f"http.get(`http://h:1/${{{expression}}}?a`);"), head=head)
    assert steps(found) == [{"path": f"/{placeholder}?a"}]
    assert gaps(found) == []


def test_pauses_are_those_of_the_step_before(converted: Converted) -> None:
    found = converted(
        users(
            "sleep(0.25); http.get('http://h:1/a'); sleep(1); sleep(0.5); http.get('http://h:1/b'); sleep(Math.random() * 3);"
            " http.get('http://h:1/c'); sleep(1 + Math.random()); http.get('http://h:1/d');"
        )
    )
    assert [step.get("think") for step in steps(found)] == [
        {"constant_s": 1.5}, {"uniform_s": [0.0, 3.0]}, {"uniform_s": [1.0, 2.0]}, {"constant_s": 0.25},
    ]  # fmt: skip
    assert gaps(found) == []


@pytest.mark.parametrize(
    ("predicates", "check"),
    [
        ("{ 'is 200': (r) => r.status === 200 }", {"status": [200]}),
        ("{ ok: function (r) { return r.status == 404; } }", {"status": [404]}),
        ("{ ok: (r) => r.status === 200 || r.status === 201 }", {"status": [200, 201]}),
        ("{ ok: (r) => r.status > 199 && r.status <= 204 }", {"status": [200, 201, 202, 203, 204]}),
        ("{ ok: (r) => [200, 304].includes(r.status) }", {"status": [200, 304]}),
        ("{ ok: (r) => r.status < 400 }", {}),
        ("{ ok: () => res.status === 200 }", {"status": [200]}),
        ("{ ok: res.status === 200 }", {"status": [200]}),
        ("{ a: (r) => r.status >= 200, b: (r) => r.status < 202 }", {"status": [200, 201]}),
        ("{ a: (r) => r.body.includes('hello') }", {"body_contains": "hello"}),
        ("{ a: (r) => r.body.indexOf('hello') !== -1 }", {"body_contains": "hello"}),
        ("{ a: (r) => 'hello' === r.body }", {"body_equals": "hello"}),
        ("{ a: (r) => r.body.length < 1000 }", {"max_body_bytes": 999}),
        ("{ a: (r) => r.json('user.name') === 'ada' }", {"json": {"/user/name": "ada"}}),
        ("{ a: (r) => r.json().items[0].id === 1 }", {"json": {"/items/0/id": 1}}),
        ("{ a: (r) => JSON.parse(r.body).ok === true }", {"json": {"/ok": True}}),
        (
            "{ a: (r) => r.status === 200 && r.body.includes('x') && r.json('a') === 1.5 }",
            {"status": [200], "body_contains": "x", "json": {"/a": 1.5}},
        ),
    ],
)
def test_checks_are_those_of_the_step(predicates: str, check: dict[str, Any], converted: Converted) -> None:
    found = converted(users(f"const res = http.get('http://h:1/'); check(res, {predicates});"))
    assert steps(found)[0].get("check", {}) == check
    assert gaps(found) == []
    assert any("failed checks" in note for note in found.notes)


def test_a_value_of_an_answer_is_carried_to_later_requests(converted: Converted) -> None:
    found = converted(
        """
        function login() {
          const res = http.post('http://h:1/login', JSON.stringify({ name: 'ada' }));
          return res.json('data.token');
        }
        export default function () {
          const token = login();
          const params = { headers: { Authorization: `Bearer ${token}` } };
          const made = http.post('http://h:1/items', '{}', params);
          const id = made.json().id;
          http.get(`http://h:1/items/${id}`, params);
          http.put(`http://h:1/items/${id}`, JSON.stringify({ id: Number(id), at: made.headers['Location'] }));
        }"""
    )
    first, second, third, fourth = steps(found)
    assert first["extract"] == {"token": {"json": "/data/token"}}
    assert second["headers"] == third["headers"] == {"Authorization": "Bearer {{token}}"}
    assert second["extract"] == {"id": {"json": "/id"}, "Location": {"header": "Location"}}
    assert third["path"] == fourth["path"] == "/items/{{id}}"
    assert fourth["body"] == '{"id":{{id}},"at":"{{Location}}"}'
    assert gaps(found) == []


def test_groups_loops_and_constants_are_followed(converted: Converted) -> None:
    found = converted(
        """
        const BASE = __ENV.BASE || 'http://h:1';
        const PATHS = ['a', 'b'];
        let shared = { headers: { A: '1' } };
        export default () => {
          group('shop', () => {
            for (const path of PATHS) { http.get(`${BASE}/${path}`, shared); }
            PATHS.forEach((path, index) => http.get(`${BASE}/${path}/${index}`));
          });
          for (let i = 0; i < 3; i += 2) { if (i > 1) { http.get(BASE + '/' + i); } else { http.get(`${BASE}/none`); } }
          const { headers } = shared;
          http.get(BASE, { headers: { ...headers, B: '2' }, timeout: '5s' });
        };""",
        "-e",
        "BASE=http://other:2",
    )
    assert found.plan.request.target == "http://other:2"
    assert found.plan.timeout_s == 5.0
    assert [(step.get("name"), step["path"]) for step in steps(found)] == [
        ("shop: GET /a", "/a"), ("shop: GET /b", "/b"), ("shop: GET /a/0", "/a/0"), ("shop: GET /b/1", "/b/1"),
        (None, "/none"), (None, "/2"), (None, "/"),
    ]  # fmt: skip
    assert steps(found)[-1]["headers"] == {"A": "1", "B": "2"}
    assert gaps(found) == []


def test_a_file_that_the_script_opens_is_its_body(converted: Converted, tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text('{"n": 1}')
    found = converted("const order = open('./order.json');\n" + users("http.post('http://h:1/', order);"))
    assert steps(found)[0]["body"] == '{"n": 1}'
    parsed = converted("const order = JSON.parse(open('./order.json'));\n" + users("http.post('http://h:1/', `n is ${order.n}`);"))
    assert steps(parsed)[0]["body"] == "n is 1"


def test_texts_are_read_as_javascript_reads_them(converted: Converted) -> None:
    found = converted(users(r"""http.post('http://h:1/', 'a\n\x41B\u{43}\ud83d\ude00\'' + `\`${'$'}`);"""))
    assert steps(found)[0]["body"] == "a\nABC😀'`$"


def test_one_of_a_list_by_chance_is_a_row_of_a_feeder(converted: Converted, tmp_path: Path) -> None:
    rows = [{"name": "ada", "n": 1, "at": {"city": "x"}}, {"name": "bob", "n": 2.5, "at": {"city": "y"}}]
    (tmp_path / "users.json").write_text(json.dumps({"users": rows}))
    (tmp_path / "ids.csv").write_text("id,b\n1,2\n3,4\n")
    found = converted(
        """
        import { SharedArray } from 'k6/data';
        import papaparse from 'https://jslib.k6.io/papaparse/5.1.1/index.js';
        import { randomItem } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
        const users = new SharedArray('users', function () { return JSON.parse(open('./users.json')).users; });
        const ids = new SharedArray('ids', () => papaparse.parse(open('./ids.csv'), { header: true }).data);
        export default function () {
          const user = users[Math.floor(Math.random() * users.length)];
          http.post('http://h:1/login', JSON.stringify(user), { headers: { City: user.at.city } });
          const other = users[Math.floor(Math.random() * users.length)];
          http.get(`http://h:1/${user.name}/${other.name}/${randomItem(ids).id}?q=${randomItem(['a', 'b'])}`);
        }"""
    )
    assert gaps(found) == []
    assert found.scenario is not None
    first, second = steps(found)
    assert first["body"] == '{"name":"{{json rows_1./name}}","n":{{json rows_1./n}},"at":{"city":"{{json rows_1./at/city}}"}}'
    assert first["headers"] == {"City": "{{json rows_1./at/city}}"}
    assert second["path"] == "/{{json rows_1./name}}/{{json rows_2./name}}/{{json rows_3./id}}?q={{json rows_4./value}}"
    assert {name: feeder.file for name, feeder in found.scenario.feeders.items()} == {
        "rows_1": "rows-1.jsonl", "rows_2": "rows-1.jsonl", "rows_3": "rows-2.jsonl", "rows_4": "rows-3.jsonl",
    }  # fmt: skip
    assert all(feeder.mode == "random" for feeder in found.scenario.feeders.values())
    assert found.files["rows-2.jsonl"] == '{"id": "1", "b": "2"}\n{"id": "3", "b": "4"}\n'
    assert found.files["rows-3.jsonl"] == '{"value": "a"}\n{"value": "b"}\n'


@pytest.mark.parametrize(
    ("items", "use", "what"),
    [
        ("['a?b', 'c']", "http.get(`http://h:1/${item}`)", "with rows that a path would hold in another form"),
        ("['a', 1]", "http.post('http://h:1/', JSON.stringify({ item }))", "neither known nor said to be a text or a number"),
        ("['a\"b', 'c']", "http.post('http://h:1/', JSON.stringify({ item }))", "neither known nor said to be a text or a number"),
        ("[[1], [2]]", "http.get(`http://h:1/${item}`)", "whose URL a scenario cannot say"),
        ("[{ a: 1 }, { b: 2 }]", "http.get(`http://h:1/${item.a}`)", "which is not read"),
        ("[]", "http.get(`http://h:1/${item}`)", "expected one of a list that is known beforehand"),
    ],
)
def test_rows_that_a_request_cannot_hold_are_told(items: str, use: str, what: str, converted: Converted) -> None:
    head = HEAD + "import { randomItem } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';\n"
    found = converted(users(f"http.get('http://h:1/'); const item = randomItem({items}); {use};"), head=head)
    assert len(gaps(found)) == 1
    assert what in gaps(found)[0]


def test_a_function_whose_return_is_left_out_is_told_once(converted: Converted) -> None:
    body = "function at() {\n  return Date.now();\n}\n" + users(
        "const r = http.get('http://h:1/'); http.get(`http://h:1/${at()}`);"
        "check(r, { a: function (r) { return r.timings.duration < 9; } });"
    )
    assert [gap.where.rpartition(":")[2] for gap in converted(body).gaps] == ["4", "6"]


# --- What cannot be said


@pytest.mark.parametrize(
    ("body", "line", "what"),
    [
        ("http.get('http://h:1/');\nhttp.batch([['GET', 'http://h:1/a']]);", 2, "found http.batch()"),
        (
            "const res = http.get('http://h:1/');\nif (res.status) { http.get('http://h:1/more'); }",
            2,
            "found a condition on what only a user knows",
        ),
        ("http.get('http://h:1/');\nhttp.get('http://elsewhere:2/');", 2, "found http://elsewhere:2, expected http://h:1"),
        ("http.get('http://h:1/');\nhttp.get(`http://h:1/${__VU}`);", 2, "found '__VU' the number of a user"),
        ("http.get('http://h:1/');\nhttp.get(`http://h:1/${__ITER}`);", 2, "found the number of an iteration"),
        ("http.get('http://h:1/');\nhttp.get(`http://h:1/${Date.now()}`);", 2, "found 'Date', which is not read"),
        (
            "http.get('http://h:1/');\nhttp.get(`http://h:1/${__ENV.NOTHING}`);",
            2,
            "__ENV.NOTHING has no value; -e NOTHING=VALUE gives it one",
        ),
        (
            "const n = Math.floor(Math.random() * 9);\nhttp.get(`http://h:1/${n}`);\nhttp.get(`http://h:1/${n}`);",
            3,
            "found a random value for the second time",
        ),
        ("http.get('http://h:1/');\nhttp.get(`http://h:1/${Math.random()}`);", 2, "whose URL a scenario cannot say"),
        ("const r = http.get('http://h:1/');\ncheck(r, { fast: (r) => r.timings.duration < 200 });", 2, "a limit on times is --objective"),
        (
            "const r = http.get('http://h:1/');\ncheck(r, {\n  a: (r) => r.body.includes('a'),\n  b: (r) => r.body.includes('b') });",
            2,
            "found a second text",
        ),
        ("const r = http.get('http://h:1/');\ncheck(r, { a: (r) => r.headers['A'] === 'b' });", 2, "a comparison that a step cannot check"),
        ("const r = http.get('http://h:1/');\ncheck(r, { a: (r) => r.json('#.id') === 1 });", 2, "expected names with dots between them"),
        ("const r = http.get('http://h:1/');\ncheck(r, { a: (r) => r.json('a') === null });", 2, "which a step cannot check"),
        ("http.get('http://h:1/');\nsleep(1e999);", 2, "a pause without an end"),
        ("http.get('http://h:1/');\nhttp.get('http://h:1/\\u{110000}');", 2, "expected a character that there is"),
        ("http.get('http://h:1/');\nhttp.post('http://h:1/', '{{mustache}}');", 2, "found {{ in the body"),
        ("http.get('http://h:1/', { cookies: { a: 'b' } });", 1, "found params.cookies"),
        ("http.get('http://h:1/');\nwhile (true) { http.get('http://h:1/'); }", 2, "a while statement is not read"),
        ("http.get('http://h:1/');\nconst x = new Unheard(1);", 2, "found 'Unheard', which is not read"),
        ("http.get('http://h:1/');\nsleep(res.delay);", 2, "found 'res', which is not read"),
    ],
)
def test_what_cannot_be_said_is_told_with_its_line(body: str, line: int, what: str, converted: Converted) -> None:
    found = converted(users(body), head=HEAD.replace("\n", " "))
    assert found.gaps
    assert found.gaps[0].where.endswith(f"script.js:{line}")
    assert what in found.gaps[0].what
    assert steps(found)[0]["path"].startswith("/")


def test_what_follows_from_a_gap_is_not_told_again(converted: Converted) -> None:
    found = converted(
        """
        import { SharedArray } from 'k6/data';
        import { Rate } from 'k6/metrics';
        const failed = new Rate('failed');
        const data = new SharedArray('users', () => JSON.parse(open('./users.json')).users);
        export default function () {
          const user = data[Math.floor(Math.random() * data.length)];
          http.post('http://h:1/login', JSON.stringify(user));
          const res = http.get('http://h:1/');
          failed.add(res.status !== 200);
        }"""
    )
    assert len(gaps(found)) == 2
    assert "users.json, which cannot be read" in gaps(found)[0]
    assert "a metric of the script's own" in gaps(found)[1]
    assert [step["path"] for step in steps(found)] == ["/"]


def test_what_is_done_once_is_told(converted: Converted) -> None:
    found = converted("export function setup() { return { a: 1 }; }\nexport default function (data) { http.get('http://h:1/'); }")
    assert "found setup(): a load has nothing that is done once" in gaps(found)[0]


def test_a_random_value_of_the_script_itself_is_one_for_each_user_and_told(converted: Converted) -> None:
    found = converted("const n = Math.floor(Math.random() * 9);\n" + users("http.get('http://h:1/'); http.get(`http://h:1/${n}`);"))
    assert [gap.where.rpartition(":")[2] for gap in found.gaps] == ["3"]
    assert "drawn once for each user" in found.gaps[0].what


# --- What is no script


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("export default function () { http.get('http://h:1/' }", "script.js:3: .*expected JavaScript"),
        ("const = 5;", "script.js:3: .*expected JavaScript"),
        ("export const options = {};", "found no function 'default' that it exports"),
        (users("sleep(1);"), "found no request that weir can make"),
        (users("http.get(`${__ENV.HOST}/x`);"), "__ENV.HOST has no value; -e HOST=VALUE gives it one"),
        ("export const options = { vus: 'many', duration: '1s' };" + USER, "options.vus: found 'many', expected a number"),
        ("export const options = { duration: 'soon' };" + USER, "options.duration: found 'soon', expected a duration"),
        ("export const options = { stages: [1] };" + USER, "options.stages.0: found 1"),
        ("export const options = { vus: 0, duration: '1s' };" + USER, "options.vus: found 0, expected a whole number above 0"),
        ("export const options = { scenarios: { a: { executor: 'externally-controlled' } } };" + USER, "found 'externally-controlled'"),
        (
            "export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 0, duration: '1s' } } };" + USER,
            "never above 0",
        ),
        (users("for (let i = 0; i < 1e12; i++) {}"), "script.js:3: found a loop that goes on and on"),
        ("(" * 400 + "1" + ")" * 400, "nested more than 150 levels deep"),
        ("[" * 100_000, "expected JavaScript|nested more than"),
    ],
)
def test_what_is_no_script_is_refused_with_its_line(script: str, problem: str, converted: Converted) -> None:
    with pytest.raises(UsageError, match=problem):
        converted(script)


def test_hostile_sizes_are_refused_or_told(converted: Converted, tmp_path: Path) -> None:
    doubling = "let s = 'x'; for (let i = 0; i < 64; i++) { s = s + s; }"
    assert "a text of more than 1,048,576 characters" in gaps(converted(users("http.get('http://h:1/'); " + doubling)))[0]
    lists = "let a = [1]; for (let i = 0; i < 64; i++) { a = [...a, ...a]; }"
    with pytest.raises(UsageError, match="found a loop that goes on and on"):
        converted(users("http.get('http://h:1/'); " + lists))
    large = "let s = 'x'; for (let i = 0; i < 19; i++) { s = s + s; } const a = []; "
    spread = "let l = [s]; for (let i = 0; i < 14; i++) { l = [...l, ...l]; } const t = %s;"
    for made in ("JSON.stringify(l)", "l.join()", "''.concat(...l)"):
        assert "a text of more than" in gaps(converted(users("http.get('http://h:1/'); " + large + spread % made)))[0]
    many = converted(users("for (let i = 0; i < 5000; i++) { http.get('http://h:1/'); }"))
    assert len(steps(many)) == 1000
    assert "found more than 1,000 requests in one iteration" in gaps(many)[0]
    endless = converted("function again() { again(); }\n" + users("http.get('http://h:1/'); again();"))
    assert "a function within more than 20 others" in gaps(endless)[0]
    file = tmp_path / "large.js"
    file.write_bytes(b"//" + b"x" * (5 << 20))
    with pytest.raises(UsageError, match="expected a k6 script of at most"):
        read([str(file)])


def test_a_script_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    script = HEAD + "export const options = { vus: 2, duration: '3s' };\n"
    script += users("const r = http.post(`http://h:1/${1 + 2}`, JSON.stringify({ a: [1] })); check(r, { ok: (r) => r.status === 200 });")
    path = tmp_path / "script.js"
    for cut in range(len(script)):
        path.write_text(script[:cut])
        with pytest.raises(UsageError):
            read([str(path)])


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "script.js"
    path.write_bytes(b"\xff\xfe\x00\x01" + json.dumps({}).encode())
    with pytest.raises(UsageError):
        read([str(path)])


def test_a_script_whose_words_are_exchanged_is_refused_or_read(tmp_path: Path) -> None:
    script = HEAD + "export const options = { vus: 2, duration: '3s', thresholds: { http_reqs: ['rate>1'] } };\n"
    script += users(
        "const r = http.post(`http://h:1/${1 + 2}`, JSON.stringify({ a: [1] }), { headers: { A: 'b' } }); "
        "check(r, { ok: (r) => r.status === 200 && r.json('a') === 1 }); sleep(Math.random() * 3); http.get('http://h:1/' + r.json().a);"
    )
    words = re.findall(r"\w+|[^\w\s]|\s+", script)
    strange = ["0", "1e999", "null", "{}", "()", "...x", "=>", "this", "/x/", "?.", "??", "typeof", "'\\x'", "`${}`", "r.json", "__proto__"]
    path = tmp_path / "script.js"
    draw = random.Random(8)
    refused = []
    for _ in range(500):
        exchanged = list(words)
        for _ in range(draw.randint(1, 3)):
            exchanged[draw.randrange(len(words))] = draw.choice([*strange, *words])
        path.write_text("".join(exchanged))
        try:
            read([str(path)])
        except UsageError as error:
            refused.append(error.message)
    assert 0 < len(refused) < 500
    assert all(message.startswith(str(path)) for message in refused)
