//! Several targets: connections take them in turn, and each has its outcome.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener};

use crate::load_support::*;
use serde_json::{Value, json};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Responds to requests for this path with 200, to others with 404.
fn responding_only(path: &'static str) -> SocketAddr {
    server(move |stream| {
        let address = stream.local_addr().unwrap();
        let wanted = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while let Some((head, _)) = read_request(&mut reader) {
            let response = match head == wanted {
                true => OK,
                false => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            };
            if stream.write_all(response).is_err() {
                return;
            }
        }
    })
}

/// A server that never responds.
fn silent() -> SocketAddr {
    server(|stream| {
        let mut stream = stream;
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    })
}

/// An address where nobody listens.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind(CLOSING).unwrap();
    listener.local_addr().unwrap()
}

/// The plan, of these targets.
fn of(plan: Value, urls: &[String]) -> Value {
    let mut plan = with(plan, "targets", urls);
    plan.as_object_mut().unwrap().remove("target");
    plan
}

/// The counts of all targets, which must add up to those of the load.
fn counts(run: &Run, key: &str) -> Vec<u64> {
    let targets = run.summary()["targets"].as_array().unwrap().iter();
    let counts: Vec<u64> = targets.map(|target| target[key].as_u64().unwrap()).collect();
    assert_eq!(counts.iter().sum::<u64>(), run.requests(key), "{key}");
    counts
}

#[test]
fn each_target_has_its_path_and_host() {
    let (first, second) = (responding_only("/one"), responding_only("/two?x=1"));
    let urls = [format!("http://{first}/one"), format!("http://{second}/two?x=1")];
    for (key, value) in [("threads", json!(2)), ("pipeline", json!(4)), ("keep_alive", json!(true))] {
        let plan = of(with(closed(first, 4), key, value), &urls);
        let run = Run::of(&plan);
        run.assert_all_ok();
        assert_eq!(run.summary()["target"], urls.join(" "));
        let targets = run.summary()["targets"].as_array().unwrap();
        assert_eq!(targets.len(), 2);
        for (target, url) in targets.iter().zip(&urls) {
            assert_eq!(target["url"], *url);
            assert!(target["ok"].as_u64().unwrap() > 0);
            assert!(target["response_time_us"]["p50"].as_f64().unwrap() > 0.0);
        }
        for key in ["sent", "completed", "ok", "failed"] {
            counts(&run, key);
        }
    }
}

#[test]
fn one_target_is_not_told_apart() {
    let run = Run::of(&closed(responding(OK), 2));
    assert!(!run.summary().as_object().unwrap().contains_key("targets"));
}

#[test]
fn connections_take_targets_in_turn() {
    // Of five connections the first target has two, the second two and the third one; each has one request on its way.
    let urls: Vec<String> = (0..3).map(|_| format!("http://{}/", silent())).collect();
    for threads in [1, 2, 3] {
        let plan = with(closed(nobody(), 5), "threads", threads);
        let run = Run::of(&with(of(plan, &urls), "timeout_s", 10.0));
        assert_eq!(counts(&run, "sent"), [2, 2, 1]);
        assert_eq!(run.requests("unanswered"), 5);
    }
}

#[test]
fn what_one_target_does_is_its_own() {
    let missing = responding_only("/elsewhere");
    let urls = [
        format!("http://{}/", responding(OK)),
        format!("http://{missing}/"),
        format!("http://{}/", server(drop)),
        format!("http://{}/", nobody()),
    ];
    let run = Run::of(&of(closed(missing, 4), &urls));
    let failed = counts(&run, "failed");
    assert_eq!(failed[0], 0);
    assert!(failed[1..].iter().all(|&count| count > 0), "{failed:?}");
    let completed = counts(&run, "completed");
    assert_eq!((completed[1], completed[2], completed[3]), (failed[1], 0, 0));
    assert_eq!(counts(&run, "sent")[3], 0);
    let kinds: Vec<String> = run.errors().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["check", "connect", "reset"]);
}

#[test]
fn failures_count_for_their_target() {
    let urls = [format!("http://{}/", responding(OK)), format!("http://{}/", server(drop))];
    let plan = of(with(closed(nobody(), 2), "pipeline", 4), &urls);
    let run = Run::of(&plan);
    assert_eq!(counts(&run, "failed")[0], 0);
    assert!(counts(&run, "failed")[1] > 0);
    assert_eq!(counts(&run, "ok")[1], 0);
}

#[test]
fn arrivals_go_to_all_targets() {
    let (first, second) = (responding_only("/"), responding_only("/"));
    let urls = [format!("http://{first}/"), format!("http://{second}/")];
    let plan = with_requests(open(first, 4, 500.0), 150);
    let run = Run::of(&of(with(plan, "duration_s", 20.0), &urls));
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 150);
    assert!(counts(&run, "ok").iter().all(|&count| count > 0));
}

#[test]
fn every_target_is_reached_from_every_address() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let urls = [0, 1].map(|number| {
        let seen = std::sync::Arc::clone(&seen);
        let address = server(move |stream| {
            let from = stream.peer_addr().unwrap().ip().to_string();
            seen.lock().unwrap().insert((number, from));
            respond(stream, OK, u64::MAX);
        });
        format!("http://{address}/")
    });
    let plan = of(closed(nobody(), 4), &urls);
    let run = Run::of(&with(plan, "local_addresses", vec!["127.0.0.2", "127.0.0.3"]));
    run.assert_all_ok();
    assert_eq!(seen.lock().unwrap().len(), 4);
}

#[test]
fn targets_may_be_unix_sockets() {
    let path = |name: &str| {
        let file = format!("weir-{}-{}-{name}.sock", std::process::id(), crate::BACKEND);
        std::env::temp_dir().join(file)
    };
    let paths = [path("one"), path("two")];
    for path in &paths {
        let _ = std::fs::remove_file(path);
        let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let mut stream = stream;
                    while read_request(&mut reader).is_some() && stream.write_all(OK).is_ok() {}
                });
            }
        });
    }
    let urls = paths.clone().map(|path| format!("unix:{}:/", path.display()));
    let run = Run::of(&of(closed(nobody(), 2), &urls));
    for path in paths {
        std::fs::remove_file(path).unwrap();
    }
    run.assert_all_ok();
    assert!(counts(&run, "ok").iter().all(|&count| count > 0));
}
