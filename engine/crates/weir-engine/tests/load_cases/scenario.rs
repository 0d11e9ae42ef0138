//! Scenarios, from the plan to the server and back.

use std::collections::BTreeSet;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::load_support::*;

/// A shop: who logs in gets a cookie and a token, and both are asked for afterwards. Notes down the paths that were
/// asked for.
fn shop() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    let address = server(move |stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while let Some((head, body)) = read_request(&mut reader) {
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let user = path.rsplit('/').next().unwrap().to_owned();
            let (status, cookie, body) = if path.starts_with("/login") {
                let name = String::from_utf8(body).unwrap();
                (
                    "200 OK",
                    format!("Set-Cookie: session={name}; Path=/\r\n"),
                    format!("{{\"auth\": {{\"token\": \"t-{name}\"}}}}"),
                )
            } else if head.contains(&format!("Authorization: t-{user}\r\n"))
                && head.contains(&format!("Cookie: session={user}\r\n"))
            {
                ("200 OK", String::new(), format!("{{\"name\": \"{user}\", \"items\": [1, 2]}}"))
            } else {
                ("403 Forbidden", String::new(), String::new())
            };
            notes.lock().unwrap().push(path);
            let response = format!("HTTP/1.1 {status}\r\n{cookie}Content-Length: {}\r\n\r\n{body}", body.len());
            // A piece at a time: head and body come apart.
            let (first, second) = response.as_bytes().split_at(response.len() / 2);
            if stream.write_all(first).and_then(|()| stream.write_all(second)).is_err() {
                return;
            }
        }
    });
    (address, asked)
}

fn file(name: &str, content: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("weir-{}-{}-{name}", std::process::id(), crate::BACKEND));
    std::fs::write(&path, content).unwrap();
    path
}

fn shopping(address: SocketAddr, connections: usize, users: &PathBuf, at_end: &str) -> Value {
    let mut plan = with_requests(closed(address, connections), 600);
    plan["duration_s"] = json!(20.0);
    plan["scenario"] = json!({
        "feeders": {"users": {"format": "csv", "file": users, "at_end": at_end}},
        "steps": [
            {
                "name": "login", "method": "POST", "path": "/login", "body": "{{csv users.name}}",
                "extract": {"token": {"json": "/auth/token"}},
            },
            {
                "name": "user", "path": "/user/{{csv users.name}}", "headers": [["Authorization", "{{token}}"]],
                "check": {"json": {"/items/1": 2}, "body_contains": "name"},
            },
        ],
    });
    plan
}

#[test]
fn variables_pass_between_steps() {
    let (address, _) = shop();
    let users = file("users.csv", "name\nada\nbob\ncleo\n");
    for threads in [1, 2] {
        let run = Run::of(&with(shopping(address, 4, &users, "wrap"), "threads", threads));
        run.assert_all_ok();
        assert_eq!(run.requests("ok"), 600);
        let steps = &run.summary()["steps"];
        let names: Vec<&String> = steps.as_object().unwrap().keys().collect();
        assert_eq!(names, ["login", "user"]);
        let count = |step: &str, key: &str| steps[step][key].as_u64().unwrap();
        assert_eq!(count("login", "ok") + count("user", "ok"), 600);
        assert!(count("login", "sent").abs_diff(count("user", "sent")) <= 4);
        assert!(steps["user"]["response_time_us"]["p99"].as_f64().unwrap() > 0.0);
    }
    std::fs::remove_file(users).unwrap();
}

#[test]
fn load_ends_after_the_last_row() {
    let (address, asked) = shop();
    let names: BTreeSet<String> = (0..50).map(|n| format!("u{n}")).collect();
    let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
    let users = file("once.csv", &format!("name\n{lines}"));
    let run = Run::of(&with(shopping(address, 4, &users, "stop"), "threads", 2));
    run.assert_all_ok();
    assert_eq!(run.end["stopped"], "complete");
    assert_eq!(run.requests("unsent"), 0);
    let asked = asked.lock().unwrap();
    let seen: Vec<&str> = asked.iter().filter_map(|path| path.strip_prefix("/user/")).collect();
    let distinct: BTreeSet<String> = seen.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(seen.len(), distinct.len());
    assert!(distinct.is_subset(&names) && distinct.len() >= 46, "{}", distinct.len());
    std::fs::remove_file(users).unwrap();
}

#[test]
fn failed_check_counts_for_its_step() {
    let address = responding(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"ok\": 0}");
    let mut plan = closed(address, 2);
    plan["scenario"] = json!({"requests": [
        {"name": "right", "path": "/{{uuid}}", "check": {"json": {"/ok": 0}, "max_body_bytes": 9}},
        {"name": "wrong", "path": "/wrong", "check": {"json": {"/ok": 1}}},
    ]});
    let run = Run::of(&plan);
    run.assert_only_error("check");
    let steps = &run.summary()["steps"];
    assert_eq!(steps["right"]["failed"], 0);
    assert_eq!(steps["wrong"]["ok"], 0);
    assert_eq!(steps["wrong"]["failed"], run.summary()["errors"]["check"]);
    assert!(run.events.iter().any(|event| event["detail"] == "wrong: at \"/ok\" not 1"), "{:?}", run.events);
}

#[test]
fn head_and_other_requests_share_a_connection() {
    let address = server(|stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while let Some((head, _)) = read_request(&mut reader) {
            let body: &[u8] = if head.starts_with("HEAD") { b"" } else { b"hello" };
            let response = [&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"[..], body].concat();
            if stream.write_all(&response).is_err() {
                return;
            }
        }
    });
    let mut plan = closed(address, 2);
    plan["scenario"] = json!({"steps": [
        {"method": "HEAD", "path": "/a"}, {"path": "/a", "check": {"body_equals": "hello"}},
    ]});
    Run::of(&plan).assert_all_ok();
}

#[test]
fn pause_of_a_step_delays_its_user_only() {
    let address = responding(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let mut plan = closed(address, 2);
    plan["duration_s"] = json!(1.0);
    plan["scenario"] = json!({"steps": [{"path": "/a"}, {"path": "/b", "think": {"constant_s": 0.2}}]});
    // Five rounds each, the last pause ending with the load.
    let as_often = |run: &Run| (16..=24).contains(&run.requests("ok"));
    let run = Run::punctual(&plan, as_often);
    run.assert_all_ok();
    assert!(as_often(&run), "{}", run.requests("ok"));
}

#[test]
fn a_scenario_serves_arrivals_too() {
    let (address, _) = shop();
    let users = file("open.csv", "name\nada\n");
    let mut plan = shopping(address, 4, &users, "wrap");
    plan["requests"] = Value::Null;
    plan["load"] = json!({"open": {"connections": 4, "rate_rps": 400.0}});
    plan["duration_s"] = json!(0.5);
    let run = Run::of(&plan);
    run.assert_all_ok();
    assert_eq!(run.requests("intended"), 200);
    std::fs::remove_file(users).unwrap();
}

#[test]
fn an_open_load_ends_after_the_last_row() {
    let rows = file("rows.csv", "name\nada\nbob\ncleo\n");
    for pipeline in [1, 8] {
        let address = responding(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        // More arrivals than one connection can carry, so that some wait when the rows run out.
        let mut plan = with(open(address, 1, 1e5), "duration_s", 20.0);
        plan["pipeline"] = json!(pipeline);
        plan["scenario"] = json!({
            "feeders": {"rows": {"format": "csv", "file": rows, "at_end": "stop"}},
            "cookies": "off",
            "steps": [{"path": "/{{csv rows.name}}"}],
        });
        let run = Run::of(&plan);
        run.assert_all_ok();
        assert_eq!(run.requests("ok"), 3);
        assert_eq!(run.end["stopped"], "complete");
    }
    std::fs::remove_file(rows).unwrap();
}

#[test]
fn large_bodies_from_templates_arrive_whole() {
    let address = server(|stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while let Some((_, body)) = read_request(&mut reader) {
            let is_right = body.len() > 300_000 && body.iter().all(u8::is_ascii_alphanumeric);
            let status = if is_right { "200 OK" } else { "400 Bad Request" };
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut plan = with_requests(closed(address, 3), 30);
    plan["duration_s"] = json!(20.0);
    plan["timeout_s"] = json!(10.0);
    plan["scenario"] = json!({"steps": [{"method": "POST", "path": "/", "body": "{{word 300000}}{{seq}}"}]});
    let run = Run::of(&plan);
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 30);
}

#[test]
fn invalid_scenario_is_an_error_before_the_load() {
    let failing = |change: &dyn Fn(&mut Value)| {
        let mut plan = closed("127.0.0.1:9".parse().unwrap(), 1);
        plan["scenario"] = json!({"steps": [{"path": "/"}]});
        change(&mut plan);
        let output = run_text(&plan.to_string());
        assert_eq!(output.status.code(), Some(2));
        records(&output.stdout)[0]["message"].as_str().unwrap().to_owned()
    };
    let unknown = failing(&|plan| plan["scenario"]["steps"][0]["path"] = json!("/{{nobody}}"));
    assert!(unknown.contains("scenario.steps[0].path: found {{nobody}}"), "{unknown}");
    let missing =
        failing(&|plan| plan["scenario"]["feeders"] = json!({"f": {"format": "csv", "file": "/nowhere.csv"}}));
    assert!(missing.contains("scenario.feeders.f.file: \"/nowhere.csv\" cannot be read"), "{missing}");
    let both = failing(&|plan| plan["request"] = json!({"method": "POST"}));
    assert!(both.contains("one of the two"), "{both}");
    let think = failing(&|plan| plan["scenario"]["steps"][0]["think"] = json!({"constant_s": -1.0}));
    assert!(think.contains("scenario.steps.think"), "{think}");
}
