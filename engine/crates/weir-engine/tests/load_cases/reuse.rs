//! Servers that close connections which a client uses again: a request is sent once more if the server may not have
//! seen it.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::load_support::*;
use serde_json::{Value, json};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The requests that a server has read, in order.
type Seen = Arc<Mutex<Vec<String>>>;

/// Calls `behaviour` with the number of each connection, from 0, and with a function that reads a request and notes it.
fn counting(
    behaviour: impl Fn(usize, &mut dyn FnMut() -> bool, &mut TcpStream) + Send + Sync + 'static,
) -> (SocketAddr, Seen) {
    let seen = Seen::default();
    let (noted, connections) = (Arc::clone(&seen), AtomicUsize::new(0));
    let address = server(move |mut stream| {
        let number = connections.fetch_add(1, Ordering::Relaxed);
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut read = || match read_request(&mut reader) {
            Some((head, body)) => {
                let text = head + &String::from_utf8_lossy(&body);
                noted.lock().unwrap().push(text);
                true
            }
            None => false,
        };
        behaviour(number, &mut read, &mut stream);
    });
    (address, seen)
}

/// Closes with a reset as soon as a request has come, without reading it.
fn reset_next(stream: &TcpStream) {
    let _ = stream.peek(&mut [0]);
}

/// A server that responds to the first request of its first connection, and to no other.
fn responding_once() -> (SocketAddr, Seen) {
    counting(|number, read, stream| {
        if number == 0 && read() {
            stream.write_all(OK).unwrap();
        }
        read();
    })
}

/// Asserts that requests were sent again, and that nothing else happened to them.
fn assert_retried(run: &Run) -> u64 {
    run.assert_all_ok();
    let retried = run.requests("retried");
    assert!(retried > 0);
    assert!(run.requests("sent") <= run.requests("intended"));
    let reasons = &run.summary()["verdict"]["kinds"];
    assert!(reasons.as_array().unwrap().contains(&json!("retried")), "{reasons}");
    run.assert_validity("suspect");
    retried
}

#[test]
fn request_on_a_silently_closed_connection_is_sent_again() {
    let address = server(|stream| respond(stream, OK, 10));
    let bytes = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").len() as u64;
    for threads in [1, 2] {
        let run = Run::of(&with(closed(address, 2), "threads", threads));
        let retried = assert_retried(&run);
        let rounds = run.requests("ok") / 10;
        assert!(retried.abs_diff(rounds) <= 2, "{retried} of {rounds}");
        let written = run.requests("sent") + retried;
        assert_eq!(run.summary()["bytes"]["sent"], written * bytes);
    }
}

#[test]
fn request_on_a_reset_connection_is_sent_again() {
    let address = server(|stream| {
        respond(stream.try_clone().unwrap(), OK, 1);
        reset_next(&stream);
    });
    assert_retried(&Run::of(&closed(address, 2)));
    assert_retried(&Run::of(&open(address, 4, 500.0)));
}

#[test]
fn connection_that_is_closed_while_it_is_idle_costs_nothing() {
    let address = server(|stream| respond(stream, OK, 1));
    let users = json!({"closed": {"users": 2, "think": {"constant_s": 0.02}}});
    let run = Run::of(&with(closed(address, 2), "load", users));
    run.assert_all_ok();
    let connections = histogram(&run.end["histograms"]["connect_time_ns"]).len();
    assert!(connections >= run.requests("ok"));
}

#[test]
fn request_is_sent_again_only_once() {
    let (address, seen) = responding_once();
    let run = Run::of(&with_requests(closed(address, 1), 2));
    assert_eq!((run.requests("ok"), run.requests("retried")), (1, 1));
    assert_eq!(run.assert_only_error("reset"), 1);
    assert_eq!(run.events[0]["detail"], "connection closed without a response");
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[test]
fn request_on_a_new_connection_is_not_sent_again() {
    let run = Run::of(&closed(server(drop), 2));
    run.assert_only_error("reset");
    assert_eq!(run.requests("retried"), 0);
}

#[test]
fn request_is_not_sent_again_after_a_byte_of_its_response() {
    for beginning in [&b"H"[..], b"HTTP/1.1 103 Early Hints\r\n\r\n"] {
        let (address, _) = counting(move |_, read, stream| {
            if read() && stream.write_all(OK).is_ok() && read() {
                let _ = stream.write_all(beginning);
            }
        });
        let run = Run::of(&with_requests(closed(address, 1), 4));
        assert_eq!(run.assert_only_error("reset"), 2);
        assert_eq!(run.requests("retried"), 0);
    }
}

#[test]
fn only_idempotent_methods_are_sent_again() {
    for (method, retried) in
        [("GET", 1), ("HEAD", 1), ("OPTIONS", 1), ("PUT", 1), ("DELETE", 1), ("POST", 0), ("PATCH", 0)]
    {
        let (address, seen) = counting(|number, read, stream| {
            let responses = if number == 0 { 1 } else { 2 };
            for _ in 0..responses {
                if !read() || stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").is_err() {
                    return;
                }
            }
            if number == 0 {
                reset_next(stream);
            }
        });
        let body = (method == "PUT").then(|| json!({"text": "content"}));
        let request = json!({"method": method, "body": body});
        let plan = with(closed(address, 1), "request", request);
        let run = Run::of(&with_requests(plan, 2));
        assert_eq!(run.requests("retried"), retried, "{method}");
        assert_eq!(run.requests("failed"), 1 - retried, "{method}");
        let seen = seen.lock().unwrap();
        assert!(seen.iter().all(|request| request == &seen[0]), "{seen:?}");
    }
}

#[test]
fn without_retry_the_request_fails() {
    let address = server(|stream| respond(stream, OK, 10));
    let run = Run::of(&with(closed(address, 2), "retry", false));
    let resets = run.assert_only_error("reset");
    let rounds = run.requests("ok") / 10;
    assert!(resets.abs_diff(rounds) <= 2, "{resets} of {rounds}");
    assert_eq!(run.requests("retried"), 0);
}

#[test]
fn pipelined_requests_are_not_sent_again() {
    let address = server(|stream| respond(stream, OK, 10));
    let run = Run::of(&with(closed(address, 2), "pipeline", 4));
    run.assert_only_error("reset");
    assert_eq!(run.requests("retried"), 0);
}

#[test]
fn response_time_of_a_request_that_is_sent_again_has_its_first_attempt() {
    let pause = Duration::from_millis(80);
    let (address, _) = counting(move |number, read, stream| {
        if number > 0 {
            std::thread::sleep(pause);
        }
        if read() && stream.write_all(OK).is_ok() && read() {
            std::thread::sleep(pause);
        }
    });
    let run = Run::of(&with_requests(closed(address, 1), 2));
    assert_eq!((run.requests("ok"), run.requests("retried")), (2, 1));
    for clock in ["response_time_us", "service_time_us", "time_to_first_byte_us"] {
        let most = run.summary()[clock]["max"].as_f64().unwrap();
        assert!(most >= 159_000.0, "{clock}: {most}");
    }
}

#[test]
fn timeout_of_a_request_that_is_sent_again_counts_from_its_first_attempt() {
    let (address, seen) = counting(|number, read, stream| {
        if number == 0 {
            let _ = read() && stream.write_all(OK).is_ok() && read();
            return;
        }
        while read() {}
    });
    let plan = with(with_requests(closed(address, 1), 2), "timeout_s", 1.0);
    let run = Run::of(&plan);
    assert_eq!((run.requests("ok"), run.requests("retried")), (1, 1));
    run.assert_only_error("timeout");
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[test]
fn request_whose_new_connection_is_refused_fails_to_connect() {
    let listener = std::net::TcpListener::bind(CLOSING).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        respond(stream, OK, 1);
    });
    let run = Run::of(&with_requests(closed(address, 1), 2));
    assert_eq!((run.requests("ok"), run.requests("sent")), (1, 2));
    assert_eq!(run.assert_only_error("connect"), 1);
    assert_eq!(run.requests("retried"), 0);
}

#[test]
fn first_failure_is_not_a_request_that_was_sent_again() {
    let address = server(|stream| respond(stream, OK, 10));
    let run = Run::of(&with(closed(address, 2), "until", "first_failure"));
    assert_retried(&run);
    assert_eq!(run.end["stopped"], "duration");
}

#[test]
fn request_that_is_sent_again_counts_once_for_its_target() {
    let address = server(|stream| respond(stream, OK, 3));
    let mut plan = closed(address, 2);
    plan.as_object_mut().unwrap().remove("target");
    let urls = [format!("http://{address}/a"), format!("http://{address}/b")];
    let run = Run::of(&with(plan, "targets", urls.to_vec()));
    assert_retried(&run);
    let targets = run.summary()["targets"].as_array().unwrap();
    let sent: u64 = targets.iter().map(|one| one["sent"].as_u64().unwrap()).sum();
    assert_eq!(sent, run.requests("sent"));
}

/// A scenario with a rendered request, a constant one, and one with a rendered body.
fn scenario(address: SocketAddr) -> Value {
    let steps = json!([
        {"name": "rendered", "path": "/rendered/{{seq}}/{{uuid}}"},
        {"name": "constant", "path": "/constant"},
        {"name": "put", "path": "/put", "method": "PUT", "body": "{{uuid}}"},
    ]);
    let mut plan = with(closed(address, 1), "scenario", json!({"steps": steps}));
    plan.as_object_mut().unwrap().remove("request");
    plan
}

#[test]
fn requests_of_a_scenario_are_sent_again_byte_for_byte() {
    let (address, seen) = counting(|_, read, stream| {
        // The last one is read and gets no response.
        let _ = read() && stream.write_all(OK).is_ok() && read();
    });
    let run = Run::of(&with_requests(scenario(address), 9));
    assert_eq!(assert_retried(&run), 8);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 17);
    for pair in seen[1..].chunks(2) {
        assert_eq!(pair[0], pair[1]);
    }
    let mut once: Vec<&String> = seen.iter().step_by(2).collect();
    assert!(once[0].contains("/rendered/0/") && once[3].contains("/rendered/3/"));
    once.retain(|request| !request.contains("/constant"));
    once.dedup();
    assert_eq!(once.len(), 6);
    let steps = run.summary()["steps"].as_object().unwrap();
    assert!(steps.values().all(|step| step["sent"] == 3), "{steps:?}");
}

#[test]
fn unanswered_request_that_is_to_be_sent_again_is_counted_once() {
    // The second connection is accepted, and its request gets no response: the load ends while it is in flight.
    let (address, _) = counting(|number, read, stream| {
        if number == 0 {
            let _ = read() && stream.write_all(OK).is_ok() && read();
        } else {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    let run = Run::of(&closed(address, 1));
    assert_eq!((run.requests("ok"), run.requests("unanswered")), (1, 1));
    assert_eq!((run.requests("intended"), run.requests("sent")), (2, 2));
    assert_eq!(run.requests("retried"), 1);
}
