//! The bytes that clients of `weir-engine serve` receive.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

mod serve_support;
use serve_support::Server;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const GET_CLOSE: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[test]
fn null_server_responds_to_pipelined_requests() {
    let server = Server::start(&["null"]);
    let mut requests = GET.repeat(99);
    requests.extend_from_slice(GET_CLOSE);
    let responses = server.ask(&requests).unwrap();
    assert_eq!(responses.matches("HTTP/1.1 200 OK\r\n").count(), 100);
    assert!(responses.ends_with("\r\n\r\nok"), "{responses}");
}

#[test]
fn request_cut_anywhere_has_one_response() {
    let server = Server::start(&["null"]);
    let mut stream = server.connect();
    stream.set_nodelay(true).unwrap();
    for byte in GET_CLOSE {
        stream.write_all(&[*byte]).unwrap();
    }
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert_eq!(response.matches("HTTP/1.1 200 OK").count(), 1);
}

#[test]
fn echo_returns_body_and_type() {
    let server = Server::start(&["echo"]);
    let sized = server
        .ask(b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nabcde")
        .unwrap();
    assert!(sized.contains("Content-Type: text/x\r\n"), "{sized}");
    assert!(sized.ends_with("\r\n\r\nabcde"), "{sized}");
    let chunked = server
        .ask(b"POST / HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        .unwrap();
    assert!(chunked.ends_with("\r\n\r\nabcde"), "{chunked}");
}

#[test]
fn echo_returns_large_bodies() {
    let server = Server::start(&["echo"]);
    let body = vec![b'x'; 20 * 1024 * 1024];
    let mut request =
        format!("POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    request.extend_from_slice(&body);
    let response = server.ask(&request).unwrap();
    let start = response.find("\r\n\r\n").unwrap() + 4;
    assert_eq!(response.len() - start, body.len());
}

#[test]
fn delay_applies_to_a_thousand_connections() {
    let server = Server::start(&["delay", "--wait", "300ms"]);
    let begin = Instant::now();
    let mut streams: Vec<TcpStream> = (0..1000)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(GET_CLOSE).unwrap();
            stream
        })
        .collect();
    for stream in &mut streams {
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 200 OK"));
    }
    let elapsed = begin.elapsed();
    assert!(elapsed >= Duration::from_millis(300), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
}

#[test]
fn every_fault_is_the_fault_it_says() {
    let fault = |kind| Server::start(&["fault", "--kind", kind]);
    assert_eq!(fault("close").ask(b"").unwrap(), "");
    assert!(fault("garbage").ask(GET).unwrap().contains("not HTTP"));
    let half = fault("half").ask(GET).unwrap();
    assert!(half.contains("Content-Length: 100\r\n") && half.ends_with("0123456789"));
    let reset = fault("reset").ask(GET).unwrap_err();
    assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    assert!(fault("status-500").ask(GET_CLOSE).unwrap().starts_with("HTTP/1.1 500 "));
}

#[test]
fn queue_serves_two_requests_at_a_time() {
    let server = Server::start(&["times", "--distribution=constant:200ms", "--servers=2"]);
    let begin = Instant::now();
    let mut streams: Vec<TcpStream> = (0..6)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(GET_CLOSE).unwrap();
            stream
        })
        .collect();
    for (index, stream) in streams.iter_mut().enumerate() {
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.ends_with("ok"), "{response}");
        let least = Duration::from_millis(200 * (index as u64 / 2 + 1));
        assert!(begin.elapsed() >= least, "{index}: {:?}", begin.elapsed());
    }
}

#[test]
fn fault_replaces_a_share_of_responses() {
    let times = |more: &[&str]| Server::start(&[&["times", "--distribution=constant:1ms"][..], more].concat());
    let half_fail = times(&["--fault=status-500", "--fault-share=0.5"]);
    let mut requests = GET.repeat(999);
    requests.extend_from_slice(GET_CLOSE);
    let responses = half_fail.ask(&requests).unwrap();
    let failed = responses.matches("HTTP/1.1 500 ").count();
    assert_eq!(failed + responses.matches("HTTP/1.1 200 ").count(), 1000);
    assert!((400..600).contains(&failed), "{failed}");
    let all = |fault| times(&["--fault", fault]).ask(GET);
    assert_eq!(all("close").unwrap(), "");
    assert!(all("garbage").unwrap().contains("not HTTP"));
    assert!(all("half").unwrap().ends_with("0123456789"));
    assert_eq!(all("reset").unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn unsuitable_fault_is_refused() {
    for (arguments, problem) in [
        (&["--fault=slow-drip"][..], "expected a fault of single"),
        (&["--fault=reset", "--fault-share=2"], "is not a share"),
        (&["--fault-share=0.5"], "--fault <KIND>"),
        (&["--servers=0"], "--servers"),
    ] {
        let refused = Command::new(env!("CARGO_BIN_EXE_weir-engine"))
            .args(["serve", "times", "--distribution=constant:1ms"])
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        let said = [refused.stdout, refused.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(problem), "{said}");
    }
}

#[test]
fn silent_reads_and_never_responds() {
    let server = Server::start(&["fault", "--kind", "silent"]);
    let mut stream = server.connect();
    stream.write_all(GET).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn slow_drip_sends_one_byte_at_a_time() {
    let server = Server::start(&["fault", "--kind", "slow-drip"]);
    let mut stream = server.connect();
    stream.write_all(GET).unwrap();
    let begin = Instant::now();
    let mut first = [0; 4];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP");
    assert!(begin.elapsed() >= Duration::from_millis(250));
}

#[test]
fn die_after_sends_so_many_and_exits_with_1() {
    let mut server = Server::start(&["fault", "--kind", "die-after", "3"]);
    let responses = server.ask(&GET.repeat(5)).unwrap_or_default();
    assert_eq!(responses.matches("HTTP/1.1 200 OK").count(), 3);
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
}

#[test]
fn closing_standard_input_ends_the_server() {
    for arguments in [&["null"][..], &["fault", "--kind", "silent"]] {
        let mut server = Server::start(arguments);
        drop(server.child.stdin.take());
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_port_in_use_is_named_and_exits_with_3() {
    let server = Server::start(&["null"]);
    let second = Command::new(env!("CARGO_BIN_EXE_weir-engine"))
        .args(["serve", "null", "--listen", &server.address])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(3));
    let record: serde_json::Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!(record["record"], "error");
    assert_eq!(record["code"], 3);
    assert!(record["message"].as_str().unwrap().contains(&server.address));
    assert!(record["hint"].as_str().unwrap().contains("ss -ltnp"));
}
