//! Pipelining: responses stay in order, and a broken connection fails all its requests.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Barrier};

use crate::load_support::*;
use serde_json::Value;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
const WRONG: &[u8] = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n";

/// One connection with a depth, and so many requests.
fn pipelined(address: SocketAddr, depth: usize, requests: usize) -> Value {
    let plan = with(closed(address, 1), "pipeline", depth);
    with_requests(plan, requests)
}

/// Each connection gives this once so many requests have come, and so on.
fn rounds(count: usize, responses: &'static [u8]) -> SocketAddr {
    server(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        loop {
            for _ in 0..count {
                if read_request(&mut reader).is_none() {
                    return;
                }
            }
            if stream.write_all(responses).is_err() {
                return;
            }
        }
    })
}

/// Each connection gives this once so many requests have come, and closes.
fn once(count: usize, responses: Vec<u8>) -> SocketAddr {
    server(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        for _ in 0..count {
            if read_request(&mut reader).is_none() {
                return;
            }
        }
        let _ = stream.write_all(&responses);
    })
}

fn errors(run: &Run) -> Vec<(String, u64)> {
    run.errors()
}

fn only(kind: &str, count: u64) -> Vec<(String, u64)> {
    vec![(kind.to_owned(), count)]
}

#[test]
fn a_scenario_is_pipelined() {
    let address = rounds(4, &[OK, OK, OK, OK].concat().leak()[..]);
    let step = |path: &str| serde_json::json!({"path": path, "check": {"body_contains": "ok"}});
    let scenario = serde_json::json!({
        "steps": [step("/a/{{seq}}"), step("/b")],
        "cookies": "off",
    });
    let plan = with(pipelined(address, 4, 40), "scenario", scenario);
    let run = Run::of(&plan);
    assert_eq!((run.requests("ok"), run.requests("failed")), (40, 0));
    let steps = &run.summary()["steps"];
    for name in ["GET /a/{{seq}}", "GET /b"] {
        assert_eq!(steps[name]["ok"], 20, "{steps}");
    }
}

#[test]
fn pipeline_depth_is_exact() {
    let address = server(|stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        loop {
            for _ in 0..8 {
                if read_request(&mut reader).is_none() {
                    return;
                }
            }
            let response = if reader.buffer().is_empty() { OK } else { WRONG };
            if stream.write_all(&response.repeat(8)).is_err() {
                return;
            }
        }
    });
    let run = Run::of(&pipelined(address, 8, 40));
    run.assert_all_ok();
    assert_eq!((run.requests("sent"), run.requests("ok")), (40, 40));
    assert_eq!(run.end["stopped"], "complete");
    assert_eq!(run.summary()["fairness"]["max"], 40);
    assert_eq!(run.end["slowest"].as_array().unwrap().len(), 10);
}

#[test]
fn pipelined_requests_are_batched() {
    let address = server(|stream| {
        let mut stream = stream;
        let mut bytes = [0; 4096];
        while let Ok(count) = stream.read(&mut bytes) {
            let requests = bytes[..count].windows(4).filter(|end| end == b"\r\n\r\n");
            let response = if requests.count() == 8 { OK } else { WRONG };
            if count == 0 || stream.write_all(&response.repeat(8)).is_err() {
                return;
            }
        }
    });
    let run = Run::of(&pipelined(address, 8, 40));
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 40);
}

#[test]
fn pipelined_responses_survive_any_cut() {
    let responses: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        OK,
    ];
    let responses = responses.concat();
    let cuts = responses.len();
    let address = server(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        for cut in 0..cuts {
            for _ in 0..4 {
                if read_request(&mut reader).is_none() {
                    return;
                }
            }
            // The last byte alone decides that the next four are sent.
            let (first, second) = responses.split_at(cut);
            if stream.write_all(first).is_err() || stream.write_all(second).is_err() {
                return;
            }
        }
    });
    let run = Run::of(&pipelined(address, 4, 4 * cuts));
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 4 * cuts as u64);
    assert_eq!(run.summary()["status"]["204"], cuts);
}

#[test]
fn responses_to_head_requests_have_no_bodies() {
    let address = rounds(3, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    let head = serde_json::json!({"method": "HEAD"});
    let run = Run::of(&with(pipelined(address, 3, 30), "request", head));
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 30);
}

#[test]
fn large_pipelined_requests_keep_their_order() {
    let body = "0123456789".repeat(30_000);
    let wanted = body.clone().into_bytes();
    let address = server(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        loop {
            for _ in 0..4 {
                match read_request(&mut reader) {
                    Some((_, body)) if body == wanted => {}
                    _ => return,
                }
            }
            if stream.write_all(&OK.repeat(4)).is_err() {
                return;
            }
        }
    });
    let request = serde_json::json!({"method": "POST", "body": {"text": body}});
    let run = Run::of(&with(pipelined(address, 4, 20), "request", request));
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 20);
}

#[test]
fn each_request_has_its_own_clocks() {
    let address = server(|stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        read_request(&mut reader).unwrap();
        read_request(&mut reader).unwrap();
        let (begun, rest) = OK.split_at(5);
        stream.write_all(&[OK, begun].concat()).unwrap();
        // The third one comes when the first response was taken.
        read_request(&mut reader).unwrap();
        stream.write_all(&[rest, OK].concat()).unwrap();
    });
    let run = Run::of(&pipelined(address, 2, 3));
    run.assert_all_ok();
    let mut requests = run.end["slowest"].as_array().unwrap().clone();
    let us = |request: &Value, moment: &str| request[format!("{moment}_us")].as_f64().unwrap();
    requests.sort_by(|one, other| us(one, "first_byte").total_cmp(&us(other, "first_byte")));
    requests.sort_by(|one, other| us(one, "last_byte").total_cmp(&us(other, "last_byte")));
    let [first, second, third] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(us(first, "written"), us(second, "written"));
    assert_eq!(us(second, "first_byte"), us(first, "last_byte"));
    assert!(us(second, "last_byte") > us(first, "last_byte"));
    assert_eq!(us(third, "intended"), us(first, "last_byte"));
    assert!(us(third, "written") >= us(third, "intended"));
    assert_eq!(us(third, "first_byte"), us(second, "last_byte"));
}

#[test]
fn requests_after_a_closing_response_are_reset() {
    // Both responses in one piece, so that nothing is written between them.
    let run = Run::of(&pipelined(once(4, [OK, CLOSE].concat()), 4, 40));
    assert_eq!(errors(&run), only("reset", 20));
    assert_eq!(run.requests("ok"), 20);
    assert_eq!(run.end["stopped"], "complete");
}

#[test]
fn closing_after_the_last_response_fails_nothing() {
    let run = Run::of(&pipelined(once(2, [OK, CLOSE].concat()), 2, 20));
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 20);
}

#[test]
fn closed_connection_resets_its_requests() {
    for responses in [Vec::new(), OK[..9].to_vec()] {
        let run = Run::of(&pipelined(once(4, responses), 4, 8));
        assert_eq!(errors(&run), only("reset", 8));
        assert_eq!(run.requests("completed"), 0);
    }
    // A response lets another request be written before the end is seen.
    let run = Run::of(&pipelined(once(4, OK.to_vec()), 4, 10));
    assert_eq!(errors(&run), only("reset", 8));
    assert_eq!(run.requests("ok"), 2);
}

#[test]
fn response_until_close_resets_later_requests() {
    let until_close = b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec();
    let run = Run::of(&pipelined(once(4, until_close), 4, 8));
    assert_eq!(errors(&run), only("reset", 6));
    assert_eq!(run.requests("ok"), 2);
}

#[test]
fn garbage_fails_later_requests() {
    let garbage = [OK, b"SSH-2.0-OpenSSH_9.2\r\n"].concat();
    let run = Run::of(&pipelined(rounds(4, garbage.leak()), 4, 4));
    let detail = run.events[0]["detail"].as_str().unwrap();
    let excerpt = r#"; received "SSH-2.0-OpenSSH_9.2\r\n""#;
    assert!(detail.ends_with(excerpt), "{detail}");
    assert_eq!(errors(&run), only("protocol", 3));
    assert_eq!(run.requests("ok"), 1);
    let surplus = OK.repeat(5).leak();
    let run = Run::of(&pipelined(rounds(4, surplus), 4, 4));
    assert_eq!(errors(&run), only("protocol", 1));
    assert_eq!(run.requests("ok"), 3);
    let detail = run.events[0]["detail"].as_str().unwrap();
    assert_eq!(detail, format!("{} bytes beyond the end of the last response", OK.len()));
}

#[test]
fn timeout_fails_later_requests() {
    let plan = pipelined(rounds(4, OK), 4, 5);
    let run = Run::of(&with(plan, "timeout_s", 0.5));
    assert_eq!(errors(&run), only("timeout", 4));
    assert_eq!(run.requests("ok"), 1);
}

#[test]
fn a_wrong_response_fails_its_own_request_alone() {
    let responses = [OK, WRONG, OK, OK].concat();
    let run = Run::of(&pipelined(rounds(4, responses.leak()), 4, 40));
    assert_eq!(errors(&run), only("check", 10));
    assert_eq!((run.requests("ok"), run.requests("completed")), (30, 40));
}

#[test]
fn first_failure_leaves_others_unanswered() {
    let ends = |responses: Vec<u8>| {
        let plan = with(pipelined(once(4, responses), 4, 1000), "until", "first_failure");
        let run = Run::of(&plan);
        assert_eq!(run.end["stopped"], "first_failure");
        assert_eq!(run.requests("failed"), 1);
        assert_eq!(run.summary()["until_failure"]["requests_before"], run.requests("ok"));
        (run.requests("ok"), run.requests("unanswered"))
    };
    assert_eq!(ends(OK.repeat(2)), (2, 3));
    assert_eq!(ends([OK, WRONG, OK].concat()), (1, 2));
}

#[test]
fn silent_server_leaves_requests_in_flight() {
    let address = server(|stream| {
        let mut stream = stream;
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let mut plan = with(with(closed(address, 3), "pipeline", 4), "timeout_s", 10.0);
    plan["threads"] = 2.into();
    let run = Run::of(&plan);
    assert_eq!((run.requests("sent"), run.requests("unanswered")), (12, 12));
    assert_eq!(run.intervals[0]["in_flight"], 12);
    let age_us = |index: usize| run.intervals[index]["oldest_age_us"].as_f64().unwrap();
    assert!((age_us(1) - age_us(0) - 100_000.0).abs() < 1.0);
}

#[test]
fn arrivals_use_connections_with_room() {
    let mut plan = with(open(rounds(4, OK.repeat(4).leak()), 1, 1000.0), "pipeline", 4);
    plan["requests"] = 40.into();
    plan["duration_s"] = 20.0.into();
    let run = Run::of(&plan);
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 40);
    assert_eq!(run.end["stopped"], "complete");
}

#[test]
fn arrivals_queue_without_room() {
    let address = server(|stream| {
        let mut stream = stream;
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let mut plan = with(open(address, 2, 100.0), "pipeline", 3);
    plan["duration_s"] = 0.5.into();
    let run = Run::of(&with(plan, "timeout_s", 10.0));
    let count = |key| run.requests(key);
    assert_eq!((count("sent"), count("unanswered"), count("unsent")), (6, 6, 44));
    assert_eq!(run.summary()["fairness"]["min"], 3);
    let last = run.intervals.last().unwrap();
    assert!((last["oldest_age_us"].as_f64().unwrap() - 500_000.0).abs() < 1.0);
}

#[test]
fn arrivals_prefer_idle_connections() {
    // No response comes before both connections have a request.
    let both = Arc::new(Barrier::new(2));
    let behaviour = move |stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        if read_request(&mut reader).is_some() {
            both.wait();
            let _ = stream.write_all(OK);
            let _ = read_request(&mut reader);
        }
    };
    let mut plan = with(open(server(behaviour), 2, 100.0), "pipeline", 4);
    plan["requests"] = 2.into();
    plan["duration_s"] = 20.0.into();
    let run = Run::of(&plan);
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 2);
}

#[test]
fn arrivals_spread_over_connections_with_room() {
    let address = server(|stream| {
        let mut stream = stream;
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let plan = with(open(address, 3, 1000.0), "pipeline", 8);
    let run = Run::of(&with(with(plan, "requests", 12), "timeout_s", 10.0));
    assert_eq!(run.requests("unanswered"), 12);
    let fairness = &run.summary()["fairness"];
    assert_eq!((&fairness["min"], &fairness["max"]), (&4.into(), &4.into()));
}

#[test]
fn arrivals_survive_closed_connections() {
    let plan = open(once(3, [OK, OK, CLOSE].concat()), 2, 1000.0);
    let mut plan = with(plan, "pipeline", 3);
    plan["requests"] = 60.into();
    plan["duration_s"] = 20.0.into();
    let run = Run::of(&with(plan, "timeout_s", 0.5));
    // A connection that is given fewer than three in the end gets no response.
    assert!(run.requests("ok") >= 40, "{:?}", run.errors());
    assert_eq!(run.requests("ok") + run.requests("failed"), 60);
}
