#![allow(clippy::unwrap_used)]

use super::*;

const SMALLEST: &str =
    r#"{"schema": 1, "target": "http://127.0.0.1:8080/", "load": {"closed": {"connections": 20}}, "duration_s": 10}"#;

fn message(text: &str) -> String {
    Plan::from_json(text).unwrap_err().to_string()
}

fn with(key: &str, value: &str) -> String {
    SMALLEST.replace("\"duration_s\": 10", &format!("\"duration_s\": 10, \"{key}\": {value}"))
}

/// The smallest plan with these for targets.
fn several(urls: &str) -> String {
    let one = "\"target\": \"http://127.0.0.1:8080/\"";
    SMALLEST.replace(one, &format!("\"targets\": [{urls}]"))
}

#[test]
fn several_targets_parse() {
    let plan = Plan::from_json(&several("\"http://a/\", \"http://b:81/x\"")).unwrap();
    assert_eq!(plan.urls(), ["http://a/", "http://b:81/x"]);
    let targets = plan.parsed_targets().unwrap();
    assert_eq!((targets[1].port, targets[1].path_and_query.as_str()), (81, "/x"));
    let plan = Plan::from_json(SMALLEST).unwrap();
    assert_eq!(plan.urls(), ["http://127.0.0.1:8080/"]);
}

#[test]
fn smallest_plan_has_documented_defaults() {
    let plan = Plan::from_json(SMALLEST).unwrap();
    assert_eq!(plan.request.method, Method::Get);
    assert_eq!(plan.timeout_s, 2.0);
    assert_eq!(plan.interval_s, 0.1);
    assert_eq!(plan.threads, 1);
    assert!(plan.cpus.is_empty());
    assert_eq!(plan.backend, Backend::Auto);
    assert_eq!(plan.check.status, None);
    assert_eq!(plan.load.connections(), 20);
    assert!(plan.keep_alive && plan.retry && !plan.all_addresses);
    assert_eq!(plan.pipeline, 1);
    assert!(plan.local_addresses.is_empty());
    assert_eq!((plan.unix, plan.tls, plan.request_log), (None, None, None));
    assert!(Tls::default().resumption);
}

#[test]
fn plan_of_the_reference_page_parses() {
    let text = r#"{"schema": 1, "target": "http://127.0.0.1:8080/bench/receive_data", "address": "127.0.0.1:8080",
        "request": {"method": "POST", "headers": [["Content-Type", "application/json"]], "body": {"text": "{}"}},
        "load": {"open": {"rate_rps": 100.5, "connections": 20}}, "duration_s": 10.0, "timeout_s": 2.0, "interval_s": 0.1,
        "check": {"status": [200]}, "threads": 1, "cpus": [0]}"#;
    let plan = Plan::from_json(text).unwrap();
    assert_eq!(plan.request.method, Method::Post);
    assert_eq!(plan.request.body, Some(Body::Text("{}".to_owned())));
    assert_eq!(plan.check.status, Some(vec![200]));
    assert_eq!(
        plan.load,
        Load::Open(Open {
            rate_rps: Profile::Constant(100.5),
            arrivals: Process::Constant,
            connections: 20,
            session: None
        })
    );
}

#[test]
fn unknown_key_is_named() {
    assert!(message(&with("durations", "3")).contains("unknown field `durations`"));
    assert!(message(&with("request", r#"{"verb": "GET"}"#)).contains("unknown field `verb`"));
    let open = SMALLEST.replace("closed", "bursty");
    assert!(message(&open).contains("unknown variant `bursty`, expected `closed` or `open`"));
}

#[test]
fn wrong_type_is_described() {
    let error = message(&with("threads", "\"two\""));
    assert!(error.contains("invalid type: string \"two\", expected usize"), "{error}");
}

#[test]
fn missing_key_is_named() {
    let error = message(&SMALLEST.replace("\"schema\": 1, ", ""));
    assert!(error.contains("missing field `schema`"), "{error}");
}

#[test]
fn value_out_of_range_names_its_key() {
    let cases = [
        (SMALLEST.replace("\"schema\": 1", "\"schema\": 2"), "key schema: found 2, expected 1"),
        (SMALLEST.replace("\"connections\": 20", "\"connections\": 0"), "key load.closed.connections: found 0"),
        (SMALLEST.replace("\"duration_s\": 10", "\"duration_s\": 0"), "key duration_s: found 0"),
        (SMALLEST.replace("\"duration_s\": 10", "\"duration_s\": -1"), "key duration_s: found -1"),
        (SMALLEST.replace("http://", "ftp://"), "expected a URL that begins with http:// or https://"),
        (with("timeout_s", "0"), "key timeout_s: found 0"),
        (with("interval_s", "0.01"), "key interval_s: found 0.01, expected a number of seconds from 0.1 to 10"),
        (with("threads", "0"), "key threads: found 0"),
        (
            SMALLEST.replace("\"target\": \"http://127.0.0.1:8080/\", ", ""),
            "key target: found neither target nor targets, expected one of the two",
        ),
        (with("targets", "[\"http://a/\"]"), "key targets: found both target and targets, expected one of the two"),
        (
            several("\"http://a/\", \"b\""),
            "key targets: found \"b\", expected a URL that begins with http:// or https://",
        ),
        (
            several("\"http://a/\", \"https://b/\""),
            "key targets: found http:// and https://, expected URLs of one scheme",
        ),
        (
            several("\"http://a/\", \"http://b/\"").replace("20", "1"),
            "key targets: found 2 URLs for 1 connections, expected no more URLs than connections",
        ),
        (
            several("\"http://a/\", \"http://b/\"")
                .replace("\"schema\"", "\"scenario\": {\"steps\": [{\"path\": \"/\"}]}, \"schema\""),
            "key targets: found 2 URLs beside a scenario, expected one target",
        ),
        (
            several(&vec!["\"http://a/\""; 1_001].join(", ")).replace("20", "2000"),
            "key targets: found 1001 URLs, expected at most 1000",
        ),
        (with("pipeline", "0"), "key pipeline: found 0, expected a number from 1 to 1024"),
        (with("pipeline", "1025"), "key pipeline: found 1025, expected a number from 1 to 1024"),
        (
            with("pipeline", "2, \"keep_alive\": false"),
            "key pipeline: found 2 beside keep_alive: false, expected 1, or reused connections",
        ),
        (
            with("pipeline", "2, \"scenario\": {\"steps\": [{\"path\": \"/\"}]}"),
            "key pipeline: found 2 beside a scenario with cookies, extraction, a pause, or users that leave",
        ),
        (
            with("pipeline", "2").replace("20", "20, \"loops\": 3"),
            "key pipeline: found 2 beside users over time, a think time, loops or a pace",
        ),
        (
            with("pipeline", "2").replace(
                r#""closed": {"connections": 20}"#,
                r#""open": {"rate_rps": 5, "connections": 20, "session": {"requests": 2}}"#,
            ),
            "key pipeline: found 2 beside sessions",
        ),
        (
            with("pipeline", "1000").replace("20", "1001"),
            "key pipeline: found 1000 on each of 1001 connections, expected at most 1000000 requests at a time",
        ),
        (with("threads", "21"), "key threads: found 21"),
        (with("check", r#"{"status": []}"#), "key check.status: found []"),
        (with("check", r#"{"status": [99]}"#), "key check.status: found 99"),
        (with("request", r#"{"headers": [["a b", "c"]]}"#), "key request.headers: found the name \"a b\""),
        (with("request", r#"{"headers": [["a", "c\r\nd: e"]]}"#), "expected a value of one line"),
        (with("request", r#"{"headers": [["Transfer-Encoding", "chunked"]]}"#), "no Transfer-Encoding"),
        (with("request", r#"{"body": {"base64": "???"}}"#), "key request.body.base64"),
        (with("request", r#"{"body": {"file": ""}}"#), "key request.body.file"),
        (
            SMALLEST.replace(r#"{"closed": {"connections": 20}}"#, r#"{"open": {"connections": 20, "rate_rps": 0}}"#),
            "key load.open.rate_rps: found 0",
        ),
        (with("requests", "0"), "key requests: found 0"),
        (with("slowest", "1001"), "key slowest: found 1001"),
        (with("request_log", "\"\""), "key request_log: found \"\""),
        (with("until", "\"tomorrow\""), "expected `first_failure`"),
    ];
    for (text, expected) in cases {
        let error = message(&text);
        assert!(error.contains(expected), "{error}\n does not contain\n{expected}");
    }
}

fn loaded(load: &str) -> String {
    SMALLEST.replace(r#"{"closed": {"connections": 20}}"#, load)
}

#[test]
fn closed_loads_parse() {
    let load = |text: &str| Plan::from_json(&loaded(text)).unwrap().load;
    assert!(!load(r#"{"closed": {"connections": 20}}"#).is_timed());
    assert!(!load(r#"{"closed": {"users": 20}}"#).is_timed());
    let stages = load(r#"{"closed": {"users": [[0, 0], [10, 99.5], [20, 0]], "loops": 5}}"#);
    assert!(stages.is_timed());
    assert_eq!(stages.connections(), 100);
    let Load::Closed(slow) =
        load(r#"{"closed": {"users": 2, "think": {"uniform_s": [1, 3]}, "pace_s": 0.5, "loops": 3}}"#)
    else {
        panic!("not closed")
    };
    assert_eq!(slow.think, Some(Think::UniformS(1.0, 3.0)));
    assert_eq!((slow.pace_s, slow.loops), (Some(0.5), Some(3)));
    for think in [r#"{"constant_s": 1}"#, r#"{"exponential_s": 2.5}"#] {
        assert!(load(&format!(r#"{{"closed": {{"users": 2, "think": {think}}}}}"#)).is_timed());
    }
}

#[test]
fn open_loads_parse() {
    let text = loaded(
        r#"{"open": {"rate_rps": [[0, 10], [30, 100]], "arrivals": "poisson", "connections": 5,
            "session": {"requests": 3, "think": {"constant_s": 1}}}}"#,
    );
    let Load::Open(open) = Plan::from_json(&text).unwrap().load else { panic!("not open") };
    assert_eq!(open.rate_rps, Profile::Points(vec![(0.0, 10.0), (30.0, 100.0)]));
    assert_eq!(open.arrivals, Process::Poisson);
    assert_eq!(open.session, Some(Session { requests: 3, think: Some(Think::ConstantS(1.0)) }));
}

#[test]
fn invalid_load_names_its_key() {
    let cases = [
        (r#"{"closed": {}}"#, "found neither users nor connections"),
        (r#"{"closed": {"users": 1, "connections": 1}}"#, "found both users and connections"),
        (r#"{"closed": {"users": "all"}}"#, "expected a number or a list of points [t_s, value]"),
        (r#"{"closed": {"users": []}}"#, "key load.closed.users: found 0 points"),
        (
            r#"{"closed": {"users": [[0, 1], [2, 3], [1, 3]]}}"#,
            "key load.closed.users: found a point at 1 s after one at 2 s",
        ),
        (r#"{"closed": {"users": [[0, 0], [2, 0]]}}"#, "key load.closed.users: found 0, expected a value above 0"),
        (r#"{"closed": {"users": 1, "loops": 0}}"#, "key load.closed.loops: found 0"),
        (r#"{"closed": {"users": 1, "pace_s": 0}}"#, "key load.closed.pace_s: found 0"),
        (r#"{"closed": {"users": 1, "think": {"uniform_s": [3, 1]}}}"#, "key load.closed.think: found 3 to 1"),
        (r#"{"open": {"connections": 1, "rate_rps": [[0, -1]]}}"#, "key load.open.rate_rps: found -1"),
        (
            r#"{"open": {"connections": 1, "rate_rps": 1, "session": {"requests": 0}}}"#,
            "key load.open.session.requests: found 0",
        ),
    ];
    for (load, expected) in cases {
        let error = message(&loaded(load));
        assert!(error.contains(expected), "{error}\n does not contain\n{expected}");
    }
}

#[test]
fn targets_parse() {
    let cases = [
        ("http://localhost", "localhost", 80, "localhost", "/"),
        ("http://localhost:8080", "localhost", 8080, "localhost:8080", "/"),
        ("http://a.b:80/x", "a.b", 80, "a.b", "/x"),
        ("http://a.b?q=1", "a.b", 80, "a.b", "/?q=1"),
        ("http://a.b/x/y?q=1#part", "a.b", 80, "a.b", "/x/y?q=1"),
        ("http://[::1]:9/x", "::1", 9, "[::1]:9", "/x"),
        ("http://[::1]", "::1", 80, "[::1]", "/"),
        ("HTTP://A/", "A", 80, "A", "/"),
        ("https://a.b/x", "a.b", 443, "a.b", "/x"),
        ("https://a.b:443/", "a.b", 443, "a.b", "/"),
        ("https://a.b:80/", "a.b", 80, "a.b:80", "/"),
        ("unix:/run/a.sock", "localhost", 80, "localhost", "/"),
        ("unix:/run/a.sock:/x/y?q=1", "localhost", 80, "localhost", "/x/y?q=1"),
    ];
    for (url, host, port, authority, path_and_query) in cases {
        let target = Target::parse(url).unwrap();
        assert_eq!(
            (target.host.as_str(), target.port, target.authority.as_str(), target.path_and_query.as_str()),
            (host, port, authority, path_and_query),
            "{url}"
        );
    }
}

#[test]
fn invalid_urls_are_refused() {
    for url in [
        "",
        "localhost",
        "http://",
        "http://:80/",
        "http://a:b/",
        "http://a:0/",
        "http://a:65536/",
        "http://u:p@a/",
        "http://a/ b",
        "http://[::1",
        "http://[x]/",
        "https://",
        "unix:",
        "unix:a.sock",
    ] {
        assert!(Target::parse(url).is_err(), "{url}");
    }
}

#[test]
fn socket_and_tls_come_from_the_target() {
    let parsed = |url| Target::parse(url).unwrap();
    assert!(parsed("https://a/").is_tls && !parsed("http://a/").is_tls);
    let unix = parsed("unix:/run/a.sock:/x");
    assert_eq!((unix.unix.as_deref(), unix.is_tls), (Some("/run/a.sock"), false));
}

#[test]
fn contradictory_transports_are_refused() {
    let https = |text: String| text.replace("http://", "https://");
    let cases = [
        (with("unix", "\"\""), "key unix: found \"\", expected the path of a socket"),
        (
            with("unix", "\"/a\"").replace("http://127.0.0.1:8080/", "unix:/b"),
            "key unix: found \"/a\" beside a target that names a socket",
        ),
        (with("unix", "\"/a\", \"address\": \"127.0.0.1:1\""), "key address: found 127.0.0.1:1 beside a Unix socket"),
        (
            with("address", "\"127.0.0.1:1\", \"all_addresses\": true"),
            "key all_addresses: found true beside address, expected false",
        ),
        (
            with("unix", "\"/a\", \"all_addresses\": true"),
            "key all_addresses: found true beside a Unix socket, expected false",
        ),
        (
            with("unix", "\"/a\", \"local_addresses\": [\"127.0.0.2\"]"),
            "key local_addresses: found 127.0.0.2 beside a Unix socket",
        ),
        (
            with("local_addresses", "[\"127.0.0.2\", \"::1\"]"),
            "key local_addresses: found ::1, expected addresses of the target's family",
        ),
        (with("tls", "{}"), "key tls: found settings for \"http://"),
        (https(with("tls", "{\"certificate\": \"a.pem\"}")), "key tls.key: found a certificate without its key"),
        (https(with("tls", "{\"key\": \"a.pem\"}")), "key tls.certificate: found a key without its certificate"),
        (https(with("tls", "{\"ca\": \"a.pem\", \"insecure\": true}")), "key tls.insecure: found true beside tls.ca"),
    ];
    for (text, expected) in cases {
        let error = message(&text);
        assert!(error.contains(expected), "{error}\n does not contain\n{expected}");
    }
}
