//! Failing servers: each failure counts as its kind.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use crate::load_support::*;
use serde_json::Value;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Responds to one request with these bytes and closes.
fn responding_once(response: &'static [u8]) -> std::net::SocketAddr {
    server(move |stream| respond(stream, response, 1))
}

/// Closes with a reset.
fn reset(stream: TcpStream) {
    // Closing a socket with data unread sends RST.
    let mut byte = [0];
    let _ = stream.peek(&mut byte);
    drop(stream);
}

#[test]
fn closing_server_resets_every_request() {
    let run = Run::of(&closed(server(drop), 2));
    run.assert_only_error("reset");
    assert_eq!(run.requests("completed"), 0);
    assert_eq!(run.summary()["response_time_us"]["p50"], Value::Null);
}

#[test]
fn resetting_server_resets_every_request() {
    let run = Run::of(&closed(server(reset), 2));
    run.assert_only_error("reset");
    assert!(run.requests("sent") >= run.requests("failed"));
}

#[test]
fn half_a_response_is_a_reset() {
    for response in [
        &b"HTTP/1.1 200 OK\r\nContent-Le"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let run = Run::of(&with(closed(responding_once(response), 2), "duration_s", 0.1));
        run.assert_only_error("reset");
        let detail = run.events[0]["detail"].as_str().unwrap();
        assert!(detail.starts_with("connection closed"), "{detail}");
    }
}

#[test]
fn half_a_response_and_then_a_reset_is_a_reset() {
    let address = server(|stream| {
        let mut stream = stream;
        let mut byte = [0];
        if stream.read_exact(&mut byte).is_ok() && stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf").is_ok() {
            reset(stream);
        }
    });
    Run::of(&with(closed(address, 2), "duration_s", 0.1)).assert_only_error("reset");
}

#[test]
fn what_is_not_http_is_a_protocol_error() {
    for response in [
        &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
        b"\x16\x03\x01\x00\xa5\x01\x00",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more than that",
    ] {
        let run = Run::of(&with(closed(responding_once(response), 2), "duration_s", 0.1));
        run.assert_only_error("protocol");
        assert_eq!(run.requests("completed"), 0);
    }
}

#[test]
fn endless_headers_cost_no_memory() {
    let address = server(|stream| {
        let mut stream = stream;
        if stream.write_all(b"HTTP/1.1 200 OK\r\n").is_err() {
            return;
        }
        while stream.write_all(&[b'a'; 4096]).is_ok() {}
    });
    let run = Run::of(&closed(address, 4));
    run.assert_only_error("protocol");
    assert!(run.summary()["generator"]["peak_rss_bytes"].as_u64().unwrap() < 20_000_000);
}

#[test]
fn endless_body_costs_no_memory() {
    let address = server(|stream| {
        let mut stream = stream;
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        if stream.write_all(head).is_err() {
            return;
        }
        let mut chunk = b"1000\r\n".to_vec();
        chunk.resize(chunk.len() + 4096, b'x');
        chunk.extend_from_slice(b"\r\n");
        while stream.write_all(&chunk).is_ok() {}
    });
    let run = Run::of(&with(closed(address, 2), "timeout_s", 0.05));
    run.assert_only_error("timeout");
    assert!(run.summary()["generator"]["peak_rss_bytes"].as_u64().unwrap() < 20_000_000);
}

#[test]
fn a_silent_server_times_out() {
    let address = server(|stream| {
        let mut stream = stream;
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let run = Run::of(&with(closed(address, 2), "timeout_s", 0.05));
    let timeouts = run.assert_only_error("timeout");
    // Two users, each at most once in 0.05 s.
    assert!((2..=12).contains(&timeouts), "{timeouts}");
    // Both are in flight at the end, but for one whose time runs out at that very moment.
    assert!(run.requests("unanswered") <= 2);
    assert_eq!(run.events[0]["kind"], "timeout");
    assert_eq!(run.events.len(), 1, "at most one event a second of a kind");
}

#[test]
fn a_response_that_stops_half_way_times_out() {
    let address = server(|stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while read_request(&mut reader).is_some() {
            let _ = stream.write_all(&OK[..OK.len() - 1]);
        }
    });
    Run::of(&with(closed(address, 2), "timeout_s", 0.05)).assert_only_error("timeout");
}

#[test]
fn a_server_that_does_not_accept_times_out() {
    // The kernel makes the connections; nobody takes them.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = with(closed(listener.local_addr().unwrap(), 2), "timeout_s", 0.05);
    Run::of(&plan).assert_only_error("timeout");
    drop(listener);
}

#[test]
fn refused_connection_exits_with_3() {
    let listener = TcpListener::bind(CLOSING).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let output = run_text(&closed(address, 2).to_string());
    assert_eq!(output.status.code(), Some(3));
    let records = records(&output.stdout);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["record"], "error");
    assert_eq!(records[0]["code"], 3);
    assert_eq!(records[0]["message"], format!("connection refused by {address}"));
    assert!(records[0]["hint"].as_str().unwrap().contains("start the server"));
}

#[test]
fn full_accept_queue_exits_with_3() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
        filling.push(stream);
    }
    let output = run_text(&with(closed(address, 2), "timeout_s", 0.1).to_string());
    assert_eq!(output.status.code(), Some(3));
    let message = records(&output.stdout)[0]["message"].clone();
    assert_eq!(message, format!("no connection to {address} within 0.1 s"));
}

#[test]
fn vanished_server_gives_connect_errors() {
    let listener = TcpListener::bind(CLOSING).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Mutex::new(Some(listener));
    std::thread::spawn(move || {
        let streams: Vec<TcpStream> = {
            let mut listener = listener.lock().unwrap();
            let taken = listener.take().unwrap();
            (0..2).map(|_| taken.accept().unwrap().0).collect()
        };
        // The listener is closed; now every connection responds once and goes.
        for stream in streams {
            respond(stream, OK, 1);
        }
    });
    let run = Run::of(&closed(address, 2));
    let errors: std::collections::BTreeMap<String, u64> = run.errors().into_iter().collect();
    assert_eq!(run.requests("ok"), 2);
    // 10, 20, 40, 80, 160 ms: at most six attempts of each in 0.3 s.
    assert!((2..=12).contains(&errors["connect"]), "{errors:?}");
    let connect = run.events.iter().find(|event| event["kind"] == "connect").unwrap();
    assert_eq!(connect["detail"], "connection refused");
}
