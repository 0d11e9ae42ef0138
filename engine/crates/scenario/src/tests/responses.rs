use proptest::prelude::*;
use serde_json::json;

use super::*;

fn verdict(check: Value, status: u16, body: &str) -> Result<(), Reason> {
    let mut alone = Alone::new(&json!({"steps": [{"path": "/", "check": check}]}));
    alone.request();
    alone.respond(0, status, "", body)
}

#[test]
fn a_status_is_right_below_400_or_as_the_check_says() {
    assert_eq!(verdict(json!({}), 399, ""), Ok(()));
    assert_eq!(verdict(json!({}), 400, ""), Err(Reason::Status(400)));
    assert_eq!(verdict(json!({"status": [201, 404]}), 404, ""), Ok(()));
    assert_eq!(verdict(json!({"status": [201, 404]}), 200, ""), Err(Reason::Status(200)));
}

#[test]
fn a_status_that_the_plan_says_holds_where_the_step_does_not_say() {
    let spec =
        serde_json::from_value(json!({"steps": [{"path": "/"}, {"path": "/", "check": {"status": [500]}}]})).unwrap();
    let base = Base { right_statuses: Some(&[418]), ..BASE };
    let compiled = compile::<Http1Writer>(&spec, &BTreeMap::new(), &base).unwrap();
    let mut worker = compiled.worker(Shard::WHOLE, 1).unwrap();
    let mut user = compiled.user(0, 1);
    let mut verdict = |step, status| {
        let response = Response { status, head: b"", body: b"", body_bytes: 0 };
        user.check_response(&compiled, &mut worker, step, &response)
    };
    assert_eq!(verdict(0, 418), Ok(()));
    assert_eq!(verdict(0, 200), Err(Reason::Status(200)));
    assert_eq!(verdict(1, 500), Ok(()));
}

#[test]
fn a_body_is_equal_contains_or_is_small_enough() {
    assert_eq!(verdict(json!({"body_equals": "abc"}), 200, "abc"), Ok(()));
    assert_eq!(verdict(json!({"body_equals": "abc"}), 200, "abd"), Err(Reason::Differs));
    assert_eq!(verdict(json!({"body_equals": "abc"}), 200, "abcd"), Err(Reason::Differs));
    assert_eq!(verdict(json!({"body_equals": ""}), 200, ""), Ok(()));
    assert_eq!(verdict(json!({"body_contains": "b"}), 200, "abc"), Ok(()));
    assert_eq!(verdict(json!({"body_contains": "x"}), 200, "abc"), Err(Reason::Lacks));
    assert_eq!(verdict(json!({"max_body_bytes": 3}), 200, "abc"), Ok(()));
    assert_eq!(verdict(json!({"max_body_bytes": 2}), 200, "abc"), Err(Reason::TooLarge(3)));
}

#[test]
fn regular_expressions_are_found_in_a_body_or_are_not() {
    let check = json!({"body_matches": ["^a", "c$"], "body_lacks": [r"\A(?:abc)\z", "x"]});
    assert_eq!(verdict(check.clone(), 200, "a b c"), Ok(()));
    assert_eq!(verdict(check.clone(), 200, "a b"), Err(Reason::NoMatch(1)));
    assert_eq!(verdict(check.clone(), 200, "abc"), Err(Reason::Match(0)));
    assert_eq!(verdict(check, 200, "a x c"), Err(Reason::Match(1)));
}

#[test]
fn json_is_compared_where_pointers_point() {
    let check = json!({"json": {"/id": 7, "/tags": ["a", {"b": null}]}});
    assert_eq!(verdict(check.clone(), 200, r#"{"tags":["a",{"b":null}],"id":7.0}"#), Ok(()));
    assert_eq!(verdict(check.clone(), 200, r#"{"tags":["a",{"b":null}],"id":8}"#), Err(Reason::Json(0)));
    assert_eq!(verdict(check.clone(), 200, r#"{"tags":["a"],"id":7}"#), Err(Reason::Json(1)));
    assert_eq!(verdict(check.clone(), 200, r#"{"id":7}"#), Err(Reason::Json(1)));
    assert_eq!(verdict(check, 200, "<html>"), Err(Reason::NotJson));
}

#[test]
fn a_check_that_needs_more_than_was_kept_says_so() {
    let cut = |check: Value, kept: &str, whole: u64| {
        let mut alone = Alone::new(&json!({"steps": [{"path": "/", "check": check}]}));
        let response = Response { status: 200, head: b"", body: kept.as_bytes(), body_bytes: whole };
        alone.user.check_response(&alone.compiled, &mut alone.worker, 0, &response)
    };
    assert_eq!(cut(json!({"body_equals": "abcd"}), "ab", 4), Err(Reason::Cut));
    assert_eq!(cut(json!({"body_equals": "abcd"}), "ab", 5), Err(Reason::Differs));
    assert_eq!(cut(json!({"body_equals": "abcd"}), "ax", 4), Err(Reason::Differs));
    assert_eq!(cut(json!({"body_contains": "c"}), "ab", 4), Err(Reason::Cut));
    assert_eq!(cut(json!({"body_contains": "b"}), "ab", 4), Ok(()));
    assert_eq!(cut(json!({"body_matches": ["b"]}), "ab", 4), Err(Reason::Cut));
    assert_eq!(cut(json!({"body_lacks": ["c"]}), "ab", 4), Err(Reason::Cut));
    assert_eq!(cut(json!({"json": {"/a": 1}}), r#"{"a":1,"#, 50), Ok(()));
    assert_eq!(cut(json!({"json": {"/a": 1}}), r#"{"b":2,"#, 50), Err(Reason::Cut));
    assert_eq!(cut(json!({"json": {"/a": 1}}), r#"{"a":1"#, 50), Err(Reason::Cut));
    assert_eq!(cut(json!({"max_body_bytes": 9}), "", 9), Ok(()));
}

#[test]
fn a_cut_body_ends_what_a_regular_expression_may_take() {
    let spec = json!({"steps": [{"path": "/", "extract": {"n": {"regex": "n=(\\d+)"}}}]});
    let extract = |kept: &str, whole: u64| {
        let mut alone = Alone::new(&spec);
        let response = Response { status: 200, head: b"", body: kept.as_bytes(), body_bytes: whole };
        alone.user.check_response(&alone.compiled, &mut alone.worker, 0, &response)
    };
    assert_eq!(extract("n=12;", 9), Ok(()));
    assert_eq!(extract("n=12", 9), Err(Reason::Cut));
    assert_eq!(extract("n=12", 4), Ok(()));
    assert_eq!(extract("m", 9), Err(Reason::Cut));
    assert_eq!(extract("m", 1), Err(Reason::Missing(0)));
}

#[test]
fn what_one_step_extracts_another_sends() {
    let mut alone = Alone::new(&json!({"steps": [
        {"path": "/login", "extract": {
            "token": {"json": "/auth/token"}, "trace": {"header": "x-trace"}, "page": {"regex": "\"page\": *(\\d+)"}, "all": {"json": ""},
        }},
        {"path": "/p/{{page}}", "headers": [["Authorization", "Bearer {{token}}"]], "body": "{{trace}} {{all}}"},
    ]}));
    alone.request();
    let body = r#"{"auth": {"token": "t\u00e9\""}, "page": 12}"#;
    alone
        .respond(0, 200, "HTTP/1.1 200 OK\r\nX-Trace-Id: no\r\nX-TRACE:  abc \r\nX-Trace: second\r\n\r\n", body)
        .unwrap();
    let request = alone.request();
    assert!(request.starts_with("GET /p/12 HTTP"), "{request}");
    assert!(request.contains("\r\nAuthorization: Bearer té\"\r\n"), "{request}");
    assert!(request.ends_with(&format!("\r\n\r\nabc {body}")), "{request}");
}

#[test]
fn an_extracted_path_or_url_is_where_the_next_step_goes() {
    for (location, path) in [
        ("/orders/7?x=a%20b&y=1", "/orders/7?x=a%20b&y=1"),
        ("http://other:1/orders/7", "/orders/7"),
        ("HTTPS://other", "/"),
        ("orders/7", "/orders/7"),
        ("/a b", "/a%20b"),
    ] {
        let mut alone = Alone::new(&json!({"steps": [
            {"method": "POST", "path": "/orders", "extract": {"next": {"header": "Location"}}},
            {"path": "{{next}}"},
        ]}));
        alone.request();
        alone.respond(0, 201, &format!("HTTP/1.1 201 Created\r\nLocation: {location}\r\n\r\n"), "").unwrap();
        assert_eq!(alone.path(), path);
    }
}

#[test]
fn a_user_that_could_not_extract_begins_a_new_round() {
    let mut alone = Alone::new(&json!({"steps": [
        {"path": "/a", "extract": {"token": {"json": "/token"}}}, {"path": "/b/{{token}}"}, {"path": "/c"},
    ]}));
    alone.request();
    let wrong = alone.respond(0, 200, "", "{}");
    assert_eq!(wrong, Err(Reason::Missing(0)));
    assert_eq!(alone.path(), "/a");
    alone.user.failed(&alone.compiled, 0);
    assert_eq!(alone.path(), "/a");
    alone.respond(0, 200, "", r#"{"token": 1}"#).unwrap();
    assert_eq!(alone.path(), "/b/1");
    // Nothing was to be extracted from this one: the user goes on.
    alone.user.failed(&alone.compiled, 1);
    assert_eq!(alone.path(), "/c");
    assert_eq!(alone.respond(2, 500, "", ""), Err(Reason::Status(500)));
    assert_eq!(alone.path(), "/a");
}

#[test]
fn a_wrong_response_that_can_be_extracted_from_is_wrong_and_the_user_goes_on() {
    let mut alone = Alone::new(&json!({"steps": [
        {"path": "/a", "extract": {"t": {"regex": "."}}, "check": {"status": [201]}}, {"path": "/{{t}}"},
    ]}));
    alone.request();
    assert_eq!(alone.respond(0, 200, "", "x"), Err(Reason::Status(200)));
    assert_eq!(alone.path(), "/x");
}

#[test]
fn cookies_go_back_to_where_they_came_from() {
    let mut alone = Alone::new(&json!({"steps": [{"path": "/a/login"}, {"path": "/a/b"}, {"path": "/{{seq}}"}]}));
    assert!(alone.issue().unwrap().0.is_constant);
    alone
        .respond(0, 200, "HTTP/1.1 200 OK\r\nSet-Cookie: id=1; HttpOnly\r\nset-cookie: all=2; Path=/\r\n\r\n", "")
        .unwrap();
    let (issued, request) = alone.issue().unwrap();
    assert!(!issued.is_constant);
    assert_eq!(request, "GET /a/b HTTP/1.1\r\nHost: host:80\r\nCookie: id=1; all=2\r\n\r\n");
    assert!(alone.request().contains("\r\nCookie: all=2\r\n"));
    alone.respond(2, 200, "HTTP/1.1 200 OK\r\nSet-Cookie: deep=3\r\n\r\n", "").unwrap();
    assert!(alone.request().contains("\r\nCookie: id=1; all=2; deep=3\r\n"));
    alone.user.restart();
    assert!(!alone.request().contains("Cookie"));
}

#[test]
fn cookies_last_a_round_or_not_at_all_where_the_scenario_says_so() {
    let sent = |cookies: &str| {
        let mut alone = Alone::new(&json!({"steps": [{"path": "/a"}, {"path": "/b"}], "cookies": cookies}));
        alone.request();
        alone.respond(0, 200, "HTTP/1.1 200 OK\r\nSet-Cookie: id=1\r\n\r\n", "").unwrap();
        [alone.request(), alone.request()].map(|request| request.contains("Cookie: id=1"))
    };
    assert_eq!(sent("user"), [true, true]);
    assert_eq!(sent("round"), [true, false]);
    assert_eq!(sent("off"), [false, false]);
}

#[test]
fn a_cookie_header_of_the_steps_own_takes_the_jars_place() {
    let mut alone = Alone::new(&json!({"steps": [{"path": "/", "headers": [["cookie", "mine=1"]]}]}));
    alone.request();
    alone.respond(0, 200, "HTTP/1.1 200 OK\r\nSet-Cookie: id=1\r\n\r\n", "").unwrap();
    assert_eq!(alone.request().matches("ookie").count(), 1);
}

#[test]
fn what_is_wrong_is_said_with_the_steps_name() {
    let alone = Alone::new(&json!({"steps": [{
        "name": "login", "path": "/", "check": {"json": {"/ok": true}, "max_body_bytes": 5, "body_matches": ["o+k"], "body_lacks": ["error"]}, "extract": {"token": {"json": "/t"}},
    }]}));
    let say = |reason| alone.compiled.describe(0, reason);
    assert_eq!(say(Reason::Status(500)), "login: status 500");
    assert_eq!(say(Reason::Json(0)), "login: at \"/ok\" not true");
    assert_eq!(say(Reason::TooLarge(9)), "login: a body of 9 bytes, expected at most 5");
    assert_eq!(say(Reason::NoMatch(0)), "login: a body in which \"o+k\" is not found");
    assert_eq!(say(Reason::Match(0)), "login: a body in which \"error\" is found");
    assert_eq!(say(Reason::Missing(0)), "login: nothing to extract token from");
    assert!(say(Reason::Cut).contains("capture_bytes"));
}

proptest! {
    #[test]
    fn any_response_is_judged_without_a_panic(
        head in prop::collection::vec(any::<u8>(), 0..80),
        body in prop::collection::vec(any::<u8>(), 0..80),
        more in 0_u64..3,
    ) {
        let mut alone = Alone::new(&json!({"steps": [{
            "path": "/{{seq}}",
            "check": {"json": {"/a": 1}, "body_contains": "a"},
            "extract": {"a": {"json": "/a"}, "b": {"header": "set-cookie"}, "c": {"regex": "(?s)(.)."}},
        }]}));
        alone.request();
        let response = Response { status: 200, head: &head, body: &body, body_bytes: body.len() as u64 + more };
        let _ = alone.user.check_response(&alone.compiled, &mut alone.worker, 0, &response);
        alone.request();
    }
}
