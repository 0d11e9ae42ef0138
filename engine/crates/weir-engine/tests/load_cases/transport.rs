//! Connections per request, over Unix sockets, from local addresses, and over IPv6.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::load_support::*;
use rustix::net::{self, AddressFamily, SocketType};
use serde_json::json;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Responds to requests that say `Connection: close`, one on each connection, and counts the connections.
fn closing() -> (SocketAddr, Arc<AtomicU64>) {
    let connections = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&connections);
    let address = server(move |mut stream| {
        counted.fetch_add(1, Ordering::Relaxed);
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        if let Some((head, _)) = read_request(&mut reader) {
            assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
            let _ = stream.write_all(OK);
        }
    });
    (address, connections)
}

/// A server on one loopback address, and a socket that keeps other servers from its port on the other address. `None`
/// without IPv6.
fn on_one_loopback(own: &str, other: &str) -> Option<(SocketAddr, OwnedFd)> {
    let [own, other] = [own, other].map(|address| address.parse::<IpAddr>().unwrap());
    for _ in 0..20 {
        let address = server_on(SocketAddr::new(own, 0), |stream| respond(stream, OK, u64::MAX)).ok()?;
        let family = if other.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = net::socket(family, SocketType::STREAM, None).ok()?;
        // A bound socket that does not listen refuses connections. Another process may have the port.
        if net::bind(&socket, &SocketAddr::new(other, address.port())).is_ok() {
            return Some((address, socket));
        }
    }
    None
}

#[test]
fn localhost_is_also_the_other_loopback_address() {
    let Some((address, _reserved)) = on_one_loopback("::1", "127.0.0.1") else {
        return;
    };
    let target = format!("http://localhost:{}/", address.port());
    let run = Run::of(&with_requests(with(closed(address, 2), "target", target), 20));
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 20);
    let note = run.events[0]["detail"].as_str().unwrap();
    assert!(note.starts_with("localhost: connections go to [::1]:"), "{note}");
}

/// Servers on both loopback addresses with one port, and the connections that each has had. `None` without IPv6.
fn on_both_loopbacks() -> Option<(SocketAddr, [Arc<AtomicU64>; 2])> {
    for _ in 0..20 {
        let counts = [0, 1].map(|_| Arc::new(AtomicU64::new(0)));
        let behaviour = |counted: Arc<AtomicU64>| {
            move |stream: TcpStream| {
                // Connections that only see whether somebody is there send no request.
                let has_request = stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
                counted.fetch_add(u64::from(has_request), Ordering::Relaxed);
                respond(stream, OK, u64::MAX);
            }
        };
        let v6 = server_on("[::1]:0", behaviour(Arc::clone(&counts[0]))).ok()?;
        let v4 = format!("127.0.0.1:{}", v6.port());
        // Another process may have the port.
        if server_on(&v4, behaviour(Arc::clone(&counts[1]))).is_ok() {
            return Some((v6, counts));
        }
    }
    None
}

#[test]
fn with_all_addresses_connections_take_them_in_turn() {
    let Some((address, counts)) = on_both_loopbacks() else {
        return;
    };
    let target = format!("http://localhost:{}/", address.port());
    for all in [true, false] {
        // Every user has its requests, however slow the machine is.
        let users = json!({"closed": {"users": 6, "loops": 2}});
        let plan = with(with(closed(address, 6), "load", users), "duration_s", 20.0);
        let plan = with(plan, "target", target.as_str());
        let run = Run::of(&with(with(plan, "threads", 2), "all_addresses", all));
        run.assert_all_ok();
        let mut used = counts.each_ref().map(|one| one.swap(0, Ordering::Relaxed));
        used.sort_unstable();
        assert_eq!(used, if all { [3, 3] } else { [0, 6] });
        let notes = run.events.iter().filter(|event| event["kind"] == "address");
        let notes: Vec<&str> = notes.filter_map(|note| note["detail"].as_str()).collect();
        assert_eq!(notes.len(), usize::from(all), "{notes:?}");
        assert!(notes.iter().all(|note| note.contains("127.0.0.1:") && note.contains("[::1]:")));
    }
}

#[test]
fn with_all_addresses_only_those_that_accept_are_used() {
    let Some((address, _reserved)) = on_one_loopback("127.0.0.1", "::1") else {
        return;
    };
    let port = address.port();
    let plan = with(with_requests(closed(address, 2), 20), "all_addresses", true);
    let run = Run::of(&with(plan, "target", format!("http://localhost:{port}/")));
    run.assert_all_ok();
    let expected = format!("localhost: connections go to {address}, because [::1]:{port} accepts none");
    assert_eq!(run.events[0]["detail"], expected);
}

#[test]
fn without_keep_alive_each_request_connects() {
    let (address, connections) = closing();
    let run = Run::of(&with(closed(address, 4), "keep_alive", false));
    run.assert_all_ok();
    assert_eq!(run.hello["connected"], 1, "only to see that it is there");
    let made = histogram(&run.end["histograms"]["connect_time_ns"]).len();
    // Those of the end may not have become requests; the one before the start is not the load's.
    assert!((run.requests("sent")..=run.requests("sent") + 4).contains(&made));
    assert!(connections.load(Ordering::Relaxed) >= run.requests("completed"));
    // To connect is a part of the response time, and so of the schedule lag.
    let least = |clock: &str| run.summary()[clock]["min"].as_f64().unwrap();
    assert!(least("schedule_lag_us") > 0.0);
    assert!(least("response_time_us") > least("schedule_lag_us"));
}

#[test]
fn closing_is_left_to_the_server() {
    const CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let before: Mutex<Option<TcpStream>> = Mutex::new(None);
    let (open, closed_by_client) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (seen_open, seen_closed) = (Arc::clone(&open), Arc::clone(&closed_by_client));
    // It closes a connection when the next one is there: so the client has gone on, and whether it has closed the first
    // can be seen.
    let address = server(move |mut stream| {
        if let Some(earlier) = before.lock().unwrap().take() {
            earlier.set_nonblocking(true).unwrap();
            match (&earlier).read(&mut [0]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => &seen_open,
                _ => &seen_closed,
            }
            .fetch_add(1, Ordering::Relaxed);
        }
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        if read_request(&mut reader).is_some() {
            let _ = stream.write_all(CLOSE);
            *before.lock().unwrap() = Some(stream);
        }
    });
    Run::of(&with(closed(address, 1), "keep_alive", false)).assert_all_ok();
    let seen = |count: &AtomicU64| count.load(Ordering::Relaxed);
    // After a tenth of a second it is closed all the same, which a busy machine can take once.
    assert!(seen(&open) > 10 * seen(&closed_by_client), "{} {}", seen(&open), seen(&closed_by_client));
}

#[test]
fn without_keep_alive_each_step_connects() {
    let (address, connections) = closing();
    let plan = with(closed(address, 2), "keep_alive", false);
    let scenario = json!({"steps": [{"path": "/a"}, {"path": "/b", "think": {"constant_s": 0.001}}]});
    let run = Run::of(&with(plan, "scenario", scenario));
    run.assert_all_ok();
    assert!(connections.load(Ordering::Relaxed) >= run.requests("completed"));
}

#[test]
fn without_keep_alive_each_arrival_connects() {
    let (address, _) = closing();
    let plan = with(open(address, 8, 200.0), "keep_alive", false);
    let run = Run::punctual(&plan, |run| run.validity() != "invalid");
    run.assert_all_ok();
    assert_eq!(run.requests("intended"), 60);
    assert_ne!(run.validity(), "invalid", "{}", run.summary()["verdict"]);
    let made = histogram(&run.end["histograms"]["connect_time_ns"]).len();
    // One for each that was sent, and one that may have found nothing left to send; a busy machine leaves some unsent.
    let responses = run.requests("completed");
    assert!((responses..=61).contains(&made), "{made} for {responses}");
}

#[test]
fn without_keep_alive_vanished_server_fails_requests() {
    let listener = std::net::TcpListener::bind(CLOSING).unwrap();
    let address = listener.local_addr().unwrap();
    // The first connection is accepted, and none after it.
    std::thread::spawn(move || drop(listener.accept().unwrap()));
    let run = Run::of(&with(open(address, 2, 200.0), "keep_alive", false));
    let errors = run.errors();
    assert!(errors.iter().any(|(kind, _)| kind == "connect"), "{errors:?}");
    // Those that the kernel had connected when the listener was closed, and nobody had accepted, are reset.
    assert!(errors.iter().all(|(kind, _)| ["connect", "reset"].contains(&kind.as_str())), "{errors:?}");
    assert_eq!(run.requests("ok"), 0);
    assert_eq!(run.validity(), "invalid", "{}", run.summary()["verdict"]);
    assert_eq!(run.requests("intended"), 60);
}

#[test]
fn unix_socket_by_url_or_key() {
    let path = std::env::temp_dir().join(format!("weir-load-{}-{}", std::process::id(), crate::BACKEND));
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, seen) = (stream.unwrap(), Arc::clone(&seen));
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Some((head, _)) = read_request(&mut reader) {
                    seen.lock().unwrap().push(head);
                    if stream.write_all(OK).is_err() {
                        return;
                    }
                }
            });
        }
    });
    let any = "127.0.0.1:1".parse().unwrap();
    let target = format!("unix:{}:/a?b=c", path.display());
    Run::of(&with(closed(any, 2), "target", target)).assert_all_ok();
    let head = heads.lock().unwrap().pop().unwrap();
    assert!(head.starts_with("GET /a?b=c HTTP/1.1\r\nHost: localhost\r\n"), "{head}");
    Run::of(&with(closed(any, 2), "unix", path.to_str().unwrap())).assert_all_ok();
    let head = heads.lock().unwrap().pop().unwrap();
    assert!(head.starts_with("GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"), "{head}");
    std::fs::remove_file(&path).unwrap();
    let gone = run_text(&with(closed(any, 2), "unix", path.to_str().unwrap()).to_string());
    assert_eq!(gone.status.code(), Some(3));
    let message = records(&gone.stdout)[0]["message"].to_string();
    assert!(message.contains(path.to_str().unwrap()), "{message}");
}

#[test]
fn local_addresses_are_used_in_turn() {
    let peers = Arc::new(Mutex::new(Vec::<IpAddr>::new()));
    let seen = Arc::clone(&peers);
    let address = server(move |stream| {
        seen.lock().unwrap().push(stream.peer_addr().unwrap().ip());
        respond(stream, OK, u64::MAX);
    });
    let plan = with(closed(address, 4), "local_addresses", json!(["127.0.0.2", "127.0.0.3"]));
    Run::of(&plan).assert_all_ok();
    let mut peers = peers.lock().unwrap().clone();
    peers.sort();
    let expected: [IpAddr; 4] = [2, 2, 3, 3].map(|n| IpAddr::from([127, 0, 0, n]));
    assert_eq!(peers, expected);
    let foreign = run_text(&with(plan, "local_addresses", json!(["192.0.2.1"])).to_string());
    assert_eq!(foreign.status.code(), Some(3));
    let error = &records(&foreign.stdout)[0];
    assert!(error["message"].as_str().unwrap().contains("address not available"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("local_addresses"), "{error}");
}

#[test]
fn ipv6_is_loaded_where_there_is_one() {
    let Ok(address) = server_on("[::1]:0", |stream| respond(stream, OK, u64::MAX)) else {
        return;
    };
    Run::of(&closed(address, 2)).assert_all_ok();
}

#[test]
fn redirects_are_mentioned_and_not_followed() {
    let found = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";
    let run = Run::of(&closed(responding(found), 2));
    run.assert_all_ok();
    run.assert_valid();
    let reason = format!("{} responses were redirects, which weir does not follow", run.requests("completed"));
    assert!(run.summary()["verdict"]["reasons"].to_string().contains(&reason));
}
