//! Responses of many kinds.

use std::io::{BufReader, Write};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::load_support::*;
use serde_json::json;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_closed_load_on_a_healthy_server_is_valid() {
    let run = Run::of(&closed(responding(OK), 4));
    run.assert_all_ok();
    assert_eq!(run.hello["connected"], 4);
    assert_eq!(run.end["stopped"], "duration");
    assert_eq!(run.intervals.len(), 3);
    run.assert_valid();
    assert!(run.requests("unanswered") <= 4);
    assert_eq!(run.summary()["bytes"]["received"].as_u64().unwrap() % OK.len() as u64, 0);
    assert!(run.summary()["generator"]["peak_rss_bytes"].as_u64().unwrap() < 20_000_000);
    assert_eq!(histogram(&run.end["histograms"]["connect_time_ns"]).len(), 4);
}

#[test]
fn every_regular_kind_of_response_is_ok() {
    let responses: [&[u8]; 8] = [
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: yes\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
        b"http-is-not-case-sensitive in header names only",
    ];
    for response in &responses[..7] {
        let run = Run::of(&with(closed(responding(response), 2), "duration_s", 0.1));
        run.assert_all_ok();
        assert_eq!(histogram(&run.end["histograms"]["connect_time_ns"]).len(), 2, "no reconnecting");
    }
    Run::of(&with(closed(responding(responses[7]), 2), "duration_s", 0.1)).assert_only_error("protocol");
}

#[test]
fn response_until_close_is_ok() {
    for response in [
        &b"HTTP/1.0 200 OK\r\n\r\nuntil the end"[..],
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end",
    ] {
        let address = server(move |stream| respond(stream, response, 1));
        let run = Run::of(&closed(address, 3));
        run.assert_all_ok();
        let connections = histogram(&run.end["histograms"]["connect_time_ns"]).len();
        assert!(connections >= run.requests("sent"), "a connection for each request");
        // The user is free when the response has come, so that connecting counts as waiting.
        assert!(run.summary()["schedule_lag_us"]["p50"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_response_to_head_ends_with_its_head() {
    let address = responding(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    let run = Run::of(&with(closed(address, 2), "request", json!({"method": "HEAD"})));
    run.assert_all_ok();
}

#[test]
fn a_response_that_comes_byte_by_byte_is_ok() {
    let address = server(|stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while read_request(&mut reader).is_some() {
            for byte in OK {
                if stream.write_all(&[*byte]).is_err() {
                    return;
                }
            }
        }
    });
    let run = Run::of(&closed(address, 2));
    run.assert_all_ok();
    let clocks = |key: &str| run.summary()[key]["mean"].as_f64().unwrap();
    assert!(clocks("time_to_first_byte_us") < clocks("service_time_us"));
}

#[test]
fn huge_response_costs_no_memory() {
    let mut response = b"HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n".to_vec();
    response.resize(response.len() + 30_000_000, b'x');
    let plan = with_requests(closed(responding(response.leak()), 2), 4);
    let run = Run::of(&plan);
    run.assert_all_ok();
    assert!(run.summary()["generator"]["peak_rss_bytes"].as_u64().unwrap() < 20_000_000);
}

#[test]
fn wrong_status_fails_the_check() {
    let run = Run::of(&closed(responding(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"), 2));
    let failed = run.assert_only_error("check");
    assert_eq!(run.requests("completed"), failed);
    assert_eq!(run.summary()["status"], json!({"500": failed}));
    assert_eq!(run.events[0]["detail"], "status 500");
    assert_eq!(histogram(&run.end["histograms"]["connect_time_ns"]).len(), 2, "the connections are kept");
}

#[test]
fn what_is_right_is_the_plans_to_say() {
    let missing = responding(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let right = with(closed(missing, 1), "check", json!({"status": [404]}));
    Run::of(&right).assert_all_ok();
    let wrong = with(closed(responding(OK), 1), "check", json!({"status": [201, 204]}));
    Run::of(&wrong).assert_only_error("check");
}

#[test]
fn request_matches_the_plan() {
    let (seen, requests) = channel();
    let seen = Mutex::new(seen);
    let address = server(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while let Some(request) = read_request(&mut reader) {
            let _ = seen.lock().unwrap().send(request);
            if stream.write_all(OK).is_err() {
                return;
            }
        }
    });
    // Larger than a socket's buffer, so that it is written in several pieces.
    let body: Vec<u8> = (0..8_000_000u32).map(|n| (n % 251) as u8).collect();
    let path = std::env::temp_dir().join(format!("weir-load-body-{}", std::process::id()));
    std::fs::write(&path, &body).unwrap();
    let mut plan = closed(address, 1);
    plan["target"] = json!(format!("http://{address}/a/b?c=d"));
    plan["request"] = json!({"method": "POST", "headers": [["X-One", "1"], ["X-Two", "2"]], "body": {"file": path}});
    let run = Run::of(&plan);
    std::fs::remove_file(&path).unwrap();
    run.assert_all_ok();
    let (head, received) = requests.recv().unwrap();
    assert!(received == body, "the body arrived unchanged");
    assert_eq!(
        head,
        format!("POST /a/b?c=d HTTP/1.1\r\nHost: {address}\r\nX-One: 1\r\nX-Two: 2\r\nContent-Length: 8000000\r\n\r\n")
    );
}

#[test]
fn threads_share_one_load() {
    let run = Run::of(&with(closed(responding(OK), 5), "threads", 2));
    run.assert_all_ok();
    assert_eq!(run.hello["connected"], 5);
    assert_eq!(run.summary()["generator"]["threads"], 2);
    let run = Run::of(&with(open(responding(OK), 5, 1000.0), "threads", 3));
    run.assert_all_ok();
    assert_eq!(run.requests("intended"), 300);
}

#[test]
fn ipv6_works_where_there_is_ipv6() {
    let Ok(address) = server_on("[::1]:0", |stream| respond(stream, OK, u64::MAX)) else {
        return;
    };
    Run::of(&closed(address, 2)).assert_all_ok();
}

#[test]
fn the_address_may_differ_from_the_target() {
    let mut plan = closed(responding(OK), 1);
    plan["address"] = json!(plan["target"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/'));
    plan["target"] = json!("http://host.invalid/");
    Run::of(&plan).assert_all_ok();
}

#[test]
fn first_response_and_other_lengths_are_reported() {
    let responses: [&[u8]; 4] = [
        b"HTTP/1.1 200 OK\r\nServer: first/1.0\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nServer: other\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nhell",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ];
    let address = server(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        for response in responses.iter().cycle() {
            if read_request(&mut reader).is_none() || stream.write_all(response).is_err() {
                return;
            }
        }
    });
    let run = Run::of(&with_requests(closed(address, 1), 40));
    let summary = run.summary();
    let first = json!({"status": 200, "server": "first/1.0", "body_bytes": 5});
    assert_eq!(summary["first_response"], first);
    assert_eq!(summary["other_length"], 20);
    assert_eq!(summary["bytes"]["received_body"], 10 * (5 + 5 + 4));
}

#[test]
fn no_response_means_no_first_response() {
    let run = Run::of(&closed(server(drop), 1));
    assert!(run.summary()["first_response"].is_null());
    let nothing = json!({"mean": null, "min": null, "max": null});
    assert_eq!(run.summary()["read_time_us"], nothing);
    assert_eq!(run.summary()["other_length"], 0);
}

#[test]
fn first_response_is_shared_by_threads() {
    let response: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\npayload";
    let run = Run::of(&with(closed(responding(response), 4), "threads", 4));
    let first = json!({"status": 200, "server": "", "body_bytes": 7});
    assert_eq!(run.summary()["first_response"], first);
    assert_eq!(run.summary()["other_length"], 0);
    let bodies = run.requests("completed") * 7;
    assert_eq!(run.summary()["bytes"]["received_body"], bodies);
}

#[test]
fn read_time_is_first_to_last_byte() {
    let pause = std::time::Duration::from_millis(30);
    let address = server(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while read_request(&mut reader).is_some() {
            let (begin, rest) = OK.split_at(10);
            stream.write_all(begin).unwrap();
            std::thread::sleep(pause);
            if stream.write_all(rest).is_err() {
                return;
            }
        }
    });
    let run = Run::of(&with_requests(closed(address, 1), 3));
    let us = |key: &str| run.summary()["read_time_us"][key].as_f64().unwrap();
    // On a busy machine a first byte may be read late, which makes its response look shorter; not each of three.
    assert!(us("max") >= 29_000.0, "{}", us("max"));
    assert!(us("min") <= us("mean") && us("mean") <= us("max"));
}
