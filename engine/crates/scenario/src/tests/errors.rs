use serde_json::json;

use super::*;

fn error(spec: &Value, contents: &[(&str, &str)]) -> (String, String, String) {
    let ScenarioError { key, found, expected } = try_compile(spec, contents).unwrap_err();
    (key, found, expected)
}

/// Key and what was found of a scenario of one step.
fn of_step(step: Value) -> (String, String) {
    let (key, found, _) = error(&json!({"steps": [step]}), &[]);
    (key, found)
}

fn pair(key: &str, found: &str) -> (String, String) {
    (key.to_owned(), found.to_owned())
}

#[test]
fn a_scenario_is_steps_or_requests() {
    assert_eq!(error(&json!({}), &[]).0, "steps");
    assert_eq!(error(&json!({"steps": [{"path": "/"}], "requests": [{"path": "/"}]}), &[]).0, "requests");
    assert_eq!(error(&json!({"steps": [{"path": "/", "weight": 1}]}), &[]).0, "steps[0].weight");
    assert_eq!(error(&json!({"requests": [{"path": "/", "weight": 0}]}), &[]).0, "requests[0].weight");
    assert_eq!(
        error(&json!({"requests": [{"path": "/", "extract": {"a": {"json": ""}}}]}), &[]).0,
        "requests[0].extract"
    );
    assert_eq!(error(&json!({"steps": [{"path": "/"}], "capture_bytes": 0}), &[]).0, "capture_bytes");
}

#[test]
fn an_unknown_key_is_an_error() {
    for wrong in [
        json!({"steps": [], "stesp": []}),
        json!({"steps": [{"path": "/", "chekc": {}}]}),
        json!({"steps": [{"path": "/", "check": {"body": ""}}]}),
        json!({"steps": [{"path": "/", "extract": {"a": {"xpath": ""}}}]}),
        json!({"feeders": {"a": {"format": "csv", "file": "", "order": "random"}}}),
    ] {
        assert!(serde_json::from_value::<Scenario>(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn an_unknown_variable_is_named_with_the_ones_there_are() {
    let spec = json!({"steps": [
        {"path": "/", "extract": {"token": {"json": "/token"}}},
        {"path": "/{{tokn}}"},
    ]});
    assert_eq!(
        error(&spec, &[]),
        (
            "steps[1].path".to_owned(),
            "{{tokn}}".to_owned(),
            "a placeholder, or a variable that an earlier step extracts: token".to_owned()
        )
    );
}

#[test]
fn a_variable_is_not_known_before_its_step_and_nowhere_among_requests() {
    let own = of_step(json!({"path": "/{{a}}", "extract": {"a": {"json": ""}}}));
    assert_eq!(own, pair("steps[0].path", "{{a}}"));
    let (key, _, expected) = error(&json!({"requests": [{"path": "/{{a}}"}]}), &[]);
    assert_eq!(key, "requests[0].path");
    assert!(expected.ends_with("use steps"), "{expected}");
}

#[test]
fn a_bad_template_is_named_wherever_it_stands() {
    assert_eq!(of_step(json!({"path": "/{{int 9 1}}"})), pair("steps[0].path", "{{int 9 1}}"));
    assert_eq!(of_step(json!({"path": "/", "body": "{{word}}"})), pair("steps[0].body", "{{word}}"));
    assert_eq!(of_step(json!({"path": "/", "headers": [["X", "{{seq 1}}"]]})), pair("steps[0].headers.X", "{{seq 1}}"));
}

#[test]
fn a_path_begins_with_a_slash_or_a_value() {
    for wrong in ["", "a", "{{seq}}/a", "/a b", "/a\n", "/{{seq}} HTTP/1.0"] {
        assert_eq!(of_step(json!({"path": wrong})), (pair("steps[0].path", &format!("{wrong:?}"))), "{wrong}");
    }
}

#[test]
fn a_header_is_one_that_may_be_sent() {
    for (name, value) in
        [("", "x"), ("a b", "x"), ("a", "x\r\ny: z"), ("Content-Length", "1"), ("transfer-encoding", "chunked")]
    {
        assert_eq!(of_step(json!({"path": "/", "headers": [[name, value]]})).0, "steps[0].headers", "{name}");
    }
}

#[test]
fn a_feeder_is_there_of_its_format_and_has_the_columns() {
    let spec = |placeholder: &str, format: &str| json!({"steps": [{"path": format!("/{{{{{placeholder}}}}}")}], "feeders": {"users": {"format": format, "file": "u.csv"}}});
    let content = [("users", "id,name\n1,a\n")];
    assert_eq!(
        error(&spec("csv user.id", "csv"), &content),
        ("steps[0].path".to_owned(), "{{csv user.id}}".to_owned(), "a feeder: users".to_owned())
    );
    assert_eq!(error(&spec("json users.id", "csv"), &content).2, "{{csv users.id}}, as its feeder's format is");
    assert_eq!(
        error(&spec("csv users.nme", "csv"), &content),
        ("feeders.users.file".to_owned(), "u.csv with no column \"nme\"".to_owned(), "one of: id, name".to_owned())
    );
    assert_eq!(error(&spec("csv users.id", "csv"), &[("users", "id\n")]).0, "feeders.users.file");
    assert_eq!(error(&spec("csv users.id", "csv"), &[]).0, "feeders.users.file");
    assert!(error(&spec("json users.id", "json_lines"), &[("users", "{\"id\": 1}\nnot json")]).1.contains("line 2"));
}

#[test]
fn fewer_rows_than_threads_are_an_error_before_the_first_request() {
    let spec = json!({"steps": [{"path": "/{{csv a.b}}"}], "feeders": {"a": {"format": "csv", "file": "a"}}});
    let compiled = try_compile(&spec, &[("a", "b\n1\n2\n")]).unwrap();
    assert!(compiled.worker(Shard::new(1, 2).unwrap(), 0).is_ok());
    let error = compiled.worker(Shard::new(2, 3).unwrap(), 0).unwrap_err();
    assert_eq!((error.key.as_str(), error.found.as_str()), ("feeders.a.file", "2 rows"));
}

#[test]
fn extractions_and_checks_are_read_before_the_first_request() {
    let extract = |extract: Value| of_step(json!({"path": "/", "extract": extract})).0;
    assert_eq!(extract(json!({"a": {"json": "a"}})), "steps[0].extract.a.json");
    assert_eq!(extract(json!({"a": {"header": "a b"}})), "steps[0].extract.a.header");
    assert_eq!(extract(json!({"a": {"regex": "("}})), "steps[0].extract.a.regex");
    assert_eq!(extract(json!({"seq": {"json": ""}})), "steps[0].extract.seq");
    assert_eq!(extract(json!({"a-b": {"json": ""}})), "steps[0].extract.a-b");
    let check = |check: Value| of_step(json!({"path": "/", "check": check})).0;
    assert_eq!(check(json!({"status": []})), "steps[0].check.status");
    assert_eq!(check(json!({"status": [200, 99]})), "steps[0].check.status");
    assert_eq!(check(json!({"json": {"a": 1}})), "steps[0].check.json");
}

#[test]
fn a_regular_expressions_error_says_what_is_wrong_in_a_line() {
    let (key, _) = of_step(json!({"path": "/", "check": {"body_lacks": ["a", "(?=b)"]}}));
    assert_eq!(key, "steps[0].check.body_lacks");
    let (_, found) = of_step(json!({"path": "/", "extract": {"a": {"regex": "(a"}}}));
    assert_eq!(found, "\"(a\": unclosed group");
}

#[test]
fn a_name_that_was_given_twice_is_an_error() {
    let spec = json!({"steps": [{"path": "/", "name": "a"}, {"path": "/b", "name": "a"}]});
    assert_eq!(error(&spec, &[]).0, "steps[1].name");
}

#[test]
fn an_error_reads_as_one_sentence() {
    let error = try_compile(&json!({"steps": [{"path": "a"}]}), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "plan, key scenario.steps[0].path: found \"a\", expected a path that begins with / or a variable, without spaces but in placeholders"
    );
    assert!(error.hint().starts_with("set scenario.steps[0].path to a path"));
}
