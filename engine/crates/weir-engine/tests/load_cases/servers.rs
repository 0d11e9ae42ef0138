//! Servers as they are: what other load tools miscount or fail on. Each is used as curl uses it.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::load_support::*;
use serde_json::{Value, json};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that sends these pieces in response to every request, each in a packet of its own.
fn responding_in_pieces(pieces: &'static [&'static [u8]]) -> SocketAddr {
    server(move |mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while read_request(&mut reader).is_some() {
            for piece in pieces {
                if stream.write_all(piece).is_err() {
                    return;
                }
            }
        }
    })
}

fn connections(run: &Run) -> u64 {
    histogram(&run.end["histograms"]["connect_time_ns"]).len()
}

#[test]
fn kept_connection_carries_every_kind_of_response() {
    let kinds: [&'static [&'static [u8]]; 8] = [
        // Interim responses in packets of their own, as of a proxy with early hints.
        &[b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", OK],
        &[b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n", OK],
        // Fields in any case.
        &[b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 2\r\nCONNECTION: KEEP-ALIVE\r\n\r\nok"],
        // HTTP/1.0 that keeps connections.
        &[b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\nContent-length: 2\r\n\r\nok"],
        // A status line without a reason, or with several spaces.
        &[b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"],
        &[b"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok"],
        // Empty lines after a body.
        &[b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n"],
        &[OK, b"\r\n\r\n"],
    ];
    for pieces in kinds {
        let run = Run::of(&with_requests(closed(responding_in_pieces(pieces), 2), 40));
        run.assert_all_ok();
        let text = pieces.concat();
        assert_eq!(run.requests("ok"), 40, "{}", text.escape_ascii());
        assert_eq!(connections(&run), 2, "{}", text.escape_ascii());
        // A busy machine may stop the generator for a moment.
        let mut events = run.events.iter().filter(|event| event["kind"] != "stalled");
        assert_eq!(events.next(), None);
    }
}

#[test]
fn response_may_have_hundreds_of_fields() {
    let fields: String = (0..500).map(|n| format!("X-{n}: value\r\n")).collect();
    let response = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok");
    let address = responding(response.into_bytes().leak());
    Run::of(&with_requests(closed(address, 2), 40)).assert_all_ok();
}

#[test]
fn body_after_a_response_that_has_none_costs_the_connection() {
    for (method, response) in [
        ("GET", &b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"[..]),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok"),
        ("HEAD", OK),
    ] {
        let plan = with(closed(responding(response), 2), "request", json!({"method": method}));
        let run = Run::of(&with_requests(plan, 20));
        run.assert_all_ok();
        assert!(connections(&run) >= 20, "a connection for each request");
        let detail = "bytes after a response that has no body; closed the connection";
        assert_eq!(run.events[0]["detail"], detail);
    }
}

#[test]
fn request_that_says_close_is_the_last_of_its_connection() {
    // The server keeps the connection open, and does not say that it closes it.
    let header = |value: &str| json!({"headers": [["connection", value]]});
    for (value, each) in [("close", true), ("TE, Close", true), ("keep-alive", false)] {
        let plan = with(closed(responding(OK), 2), "request", header(value));
        let run = Run::of(&with_requests(plan, 20));
        run.assert_all_ok();
        assert_eq!(connections(&run) >= 20, each, "{value}");
    }
    let plan = with(closed(responding(OK), 2), "request", header("close"));
    let output = run_text(&with(plan, "pipeline", 2).to_string());
    let error = &records(&output.stdout)[0];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("beside a header Connection: close"), "{message}");
}

/// Responds with 413 as soon as the head of a request has come, and reads no body.
fn refuse_body(mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut bytes = [0; 512];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut bytes) {
            Ok(count) if count > 0 => head.extend_from_slice(&bytes[..count]),
            _ => return,
        }
    }
    let response = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno";
    let _ = stream.write_all(response);
    // nginx does so too: a close with unread bytes would reset the connection and could destroy the response.
    let _ = stream.shutdown(Shutdown::Write);
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

#[test]
fn response_before_the_end_of_the_request_counts() {
    let body = "x".repeat(8_000_000);
    for method in ["POST", "PUT"] {
        let request = json!({"method": method, "body": {"text": body}});
        let plan = with(closed(server(refuse_body), 2), "request", request);
        let run = Run::of(&with_requests(plan, 10));
        assert_eq!(run.assert_only_error("check"), 10);
        assert_eq!(run.summary()["status"], json!({"413": 10}));
    }
}

#[test]
fn response_of_an_overloaded_server_counts_though_it_read_no_request() {
    const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy";
    let address = server(|mut stream| {
        let _ = stream.write_all(BUSY);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let run = Run::of(&with_requests(closed(address, 2), 20));
    assert_eq!(run.assert_only_error("check"), 20);
    assert_eq!(run.summary()["status"], json!({"503": 20}));
    assert_eq!(run.requests("retried"), 0);
}

/// Responds to requests, and to a silence of 50 ms with 408. Counts these.
fn timing_out(expired: &'static AtomicUsize) -> SocketAddr {
    server(move |mut stream| {
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while read_request(&mut reader).is_some() {
            if stream.write_all(OK).is_err() {
                return;
            }
        }
        expired.fetch_add(1, Ordering::Relaxed);
        let _ = stream.write_all(b"HTTP/1.1 408 Request Time-out\r\nConnection: close\r\n\r\nlate");
    })
}

#[test]
fn status_408_on_an_idle_connection_is_no_response() {
    static EXPIRED: AtomicUsize = AtomicUsize::new(0);
    let users = |think_s: f64| json!({"closed": {"users": 2, "think": {"constant_s": think_s}}});
    let plan = |load: Value| with_requests(with(closed(timing_out(&EXPIRED), 2), "load", load), 8);
    // Long after the 408, so that it does not meet a request.
    let is_expected = |run: &Run| run.errors().is_empty() && !run.events.is_empty();
    let run = Run::punctual(&plan(users(0.3)), is_expected);
    assert!(EXPIRED.load(Ordering::Relaxed) > 0);
    run.assert_all_ok();
    assert_eq!(run.summary()["status"], json!({"200": 8}));
    assert_eq!(run.events[0]["detail"], "bytes on an idle connection; closed it");
}

#[test]
fn body_until_close_ends_the_response() {
    let response = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end";
    let address = server(move |stream| respond(stream, response, 1));
    let plan = with(closed(address, 2), "request", json!({"headers": [["Connection", "close"]]}));
    let run = Run::of(&with_requests(plan, 20));
    run.assert_all_ok();
    assert_eq!(run.summary()["bytes"]["received_body"], 20 * 13);
}
