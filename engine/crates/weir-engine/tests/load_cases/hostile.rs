//! Hostile servers: each run ends in time, with the right counts and bounded memory. `Run::of` limits its time and
//! memory.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use crate::load_support::*;
use serde_json::json;

/// More than the engine, unoptimised as it is tested, needs for itself and four connections, and far less than any of
/// these servers sends.
const MAX_RSS_BYTES: u64 = 24_000_000;

fn run(plan: &serde_json::Value) -> Run {
    let run = Run::of(plan);
    let peak = run.summary()["generator"]["peak_rss_bytes"].as_u64().unwrap();
    assert!(peak < MAX_RSS_BYTES, "{peak}");
    run
}

/// Responds to a request with the beginning and then, for ever, with the rest.
fn endless(beginning: &'static [u8], rest: &'static [u8]) -> SocketAddr {
    server(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        // Many at a time, so that it is the engine that limits how fast they come.
        let rest = rest.repeat(1 + 16_384 / rest.len());
        if read_request(&mut reader).is_some() && stream.write_all(beginning).is_ok() {
            while stream.write_all(&rest).is_ok() {}
        }
    })
}

#[test]
fn endless_head_is_a_protocol_error() {
    for (beginning, rest) in [
        // Lines of a head, one line of a head, and a status line.
        (&b"HTTP/1.1 200 OK\r\n"[..], &b"X-Filler: 0123456789\r\n"[..]),
        (b"HTTP/1.1 200 OK\r\nX: ", b"0123456789"),
        (b"HTTP/1.1 200 ", b"OK"),
        // Extensions of a chunk, and trailers.
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;", b"a=b;"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    ] {
        let run = run(&with(closed(endless(beginning, rest), 4), "duration_s", 0.1));
        run.assert_only_error("protocol");
    }
}

#[test]
fn what_is_endless_in_its_body_times_out() {
    for (beginning, rest) in [
        (&b""[..], &b"HTTP/1.1 100 Continue\r\n\r\n"[..]),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", b"x"),
        (b"HTTP/1.0 200 OK\r\n\r\n", b"x"),
    ] {
        let plan = with(closed(endless(beginning, rest), 4), "timeout_s", 0.05);
        // One turn of reading is 1 MB of each connection, which takes an unoptimised engine on a busy machine some 0.2
        // s.
        let plan = with(plan, "duration_s", 1.0);
        // A connection that the busy machine makes too late is another failure.
        let errors_of_responses = |run: &Run| run.errors().iter().all(|(kind, _)| kind == "timeout");
        Run::punctual(&plan, errors_of_responses).assert_only_error("timeout");
    }
}

#[test]
fn wrong_content_length_is_classified() {
    let responses: [(&'static [u8], &str); 7] = [
        // Too long: the end comes first; and where the connection stays, nothing does.
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nok", "reset"),
        // Too short: what is left over is no response to anything.
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nok", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nok", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok", "protocol"),
    ];
    for (response, kind) in responses {
        let address = server(move |stream| respond(stream, response, 1));
        let run = run(&with(closed(address, 2), "duration_s", 0.1));
        assert_eq!(run.requests("ok"), 0, "{}", response.escape_ascii());
        run.assert_only_error(kind);
    }
    let kept = responding(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok");
    run(&with(closed(kept, 2), "timeout_s", 0.05)).assert_only_error("timeout");
}

/// Sends a response byte by byte and closes.
fn drip(stream: TcpStream, response: &[u8]) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    if read_request(&mut reader).is_none() {
        return;
    }
    for byte in response {
        if stream.write_all(&[*byte]).is_err() {
            return;
        }
    }
}

#[test]
fn responses_byte_by_byte_are_classified() {
    let responses: [(&'static [u8], Option<&str>); 14] = [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", None),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", None),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", None),
        (b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", None),
        (b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\nContent-Length: 5\r\n\r\n", None),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            None,
        ),
        (
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nA: b\r\n\r\n",
            None,
        ),
        (b"HTTP/1.1 503 Oh\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", Some("check")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", Some("reset")),
        (b"HTTP/1.1 200 OK\r\nContent-Le", Some("reset")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", Some("reset")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Some("protocol")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", Some("protocol")),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Some("protocol")),
    ];
    for (response, kind) in responses {
        let address = server(move |stream| drip(stream, response));
        let run = run(&with(closed(address, 2), "duration_s", 0.2));
        match kind {
            None => run.assert_all_ok(),
            Some(kind) => drop(run.assert_only_error(kind)),
        }
    }
}

#[test]
fn response_to_head_has_no_body() {
    let head = json!({"method": "HEAD"});
    for response in [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ] {
        run(&with(closed(responding(response), 2), "request", head.clone())).assert_all_ok();
    }
}

#[test]
fn hostile_connection_does_not_affect_others() {
    use std::sync::atomic::{AtomicU64, Ordering};
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let number = AtomicU64::new(0);
    let address = server(move |stream| match number.fetch_add(1, Ordering::Relaxed) % 4 {
        0 => drip(stream, b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
        1 => drip(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok"),
        _ => respond(stream, OK, u64::MAX),
    });
    let run = run(&closed(address, 8));
    let errors = run.errors();
    let kinds: Vec<&str> = errors.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["protocol", "reset"]);
    assert!(run.requests("ok") > 100);
}
