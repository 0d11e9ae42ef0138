//! Think times, loads that end by themselves, sessions, and reports of single requests.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::load_support::*;
use serde_json::{Value, json};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A load with these users, long enough for what is meant to end it.
fn users(load: Value) -> Value {
    let mut plan = with(closed(responding(OK), 1), "duration_s", 20.0);
    plan["load"] = json!({ "closed": load });
    plan
}

fn due(run: &Run) -> Vec<u64> {
    run.intervals.iter().map(|interval| interval["due"].as_u64().unwrap()).collect()
}

/// The verdict may blame a busy machine for lag, but not the load for sending less than was asked for.
fn rate_was_kept(run: &Run) -> bool {
    let reasons = run.summary()["verdict"]["reasons"].to_string();
    !reasons.contains("were asked for")
}

#[test]
fn ramped_users_send_their_loops() {
    let run = Run::of(&users(json!({"users": [[0, 0], [0.5, 200]], "loops": 5})));
    run.assert_all_ok();
    assert_eq!(run.requests("intended"), 1000);
    assert_eq!(run.requests("ok"), 1000);
    assert_eq!(run.end["stopped"], "complete");
    // One connection, that of the first user, is open before the clock starts.
    assert_eq!(run.hello["connected"], 1);
    let lasted_s = run.summary()["duration_s"].as_f64().unwrap();
    assert!((0.4975..5.0).contains(&lasted_s), "{lasted_s}");
    assert_eq!(run.summary()["fairness"], json!({"min": 5, "median": 5.0, "max": 5}));
}

/// Whether the verdict blames the ramp.
fn is_capped(run: &Run) -> bool {
    let reasons = run.summary()["verdict"]["reasons"].as_array().unwrap();
    reasons.iter().any(|reason| {
        let reason = reason.as_str().unwrap();
        reason.starts_with("the load itself caps the throughput")
    })
}

#[test]
fn ramp_is_reported_as_the_limit() {
    // The second and last user comes after one of the two seconds, and is done at once.
    let load = json!({"users": [[0, 0], [2, 2]], "loops": 10});
    let run = Run::punctual(&users(load), is_capped);
    run.assert_all_ok();
    assert_eq!(run.end["stopped"], "complete");
    assert!(is_capped(&run), "{}", run.summary()["verdict"]);
    run.assert_validity("suspect");
}

#[test]
fn long_staying_ramp_is_no_limit() {
    // The last of them thinks for longer than the ramp is long.
    let load = json!({"users": [[0, 0], [0.1, 4]], "loops": 5, "think": {"constant_s": 0.1}});
    let run = Run::of(&users(load));
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 20);
    assert!(!is_capped(&run), "{}", run.summary()["verdict"]);
    assert!(!is_capped(&Run::of(&users(json!({"users": 4, "loops": 5})))));
}

#[test]
fn number_of_requests_is_exact() {
    for threads in [1, 3] {
        let plan = with_requests(closed(responding(OK), 7), 1000);
        let run = Run::of(&with(plan, "threads", threads));
        run.assert_all_ok();
        assert_eq!(run.requests("intended"), 1000);
        assert_eq!((run.requests("sent"), run.requests("ok")), (1000, 1000));
        assert_eq!(run.end["stopped"], "complete");
        assert!(run.summary()["duration_s"].as_f64().unwrap() < 10.0);
    }
    let open = with_requests(open(responding(OK), 5, 1000.0), 100);
    let plan = with(open, "threads", 2);
    let run = Run::punctual(&plan, rate_was_kept);
    run.assert_all_ok();
    assert_eq!((run.requests("intended"), run.requests("ok")), (100, 100));
    assert_eq!(run.end["stopped"], "complete");
    assert!(rate_was_kept(&run), "{}", run.summary()["verdict"]);
}

#[test]
fn failed_requests_count_towards_the_number() {
    let address = server(|stream| respond(stream, OK, 2));
    // Every third request of a connection is reset, or the connection was closed before it.
    let plan = with_requests(closed(address, 4), 90);
    let run = Run::of(&with(plan, "duration_s", 20.0));
    assert_eq!(run.requests("intended"), 90);
    assert_eq!(run.requests("ok") + run.requests("failed"), 90);
    assert_eq!(run.end["stopped"], "complete");
}

#[test]
fn users_think_between_requests() {
    let mut plan = users(json!({"users": 10, "think": {"constant_s": 0.1}}));
    plan["duration_s"] = 1.05.into();
    // At 0, 0.1 s and a response time, 0.2 s and two, …
    let as_often = |run: &Run| (90..=110).contains(&run.requests("ok"));
    let run = Run::punctual(&plan, as_often);
    run.assert_all_ok();
    assert!(as_often(&run), "{}", run.requests("ok"));
    assert_eq!(run.hello["wait"], "sleep");
    // Thinking is not waiting: what is measured is the server.
    assert!(run.summary()["response_time_us"]["p50"].as_f64().unwrap() < 50_000.0);
}

#[test]
fn a_pace_is_kept_whatever_the_response_time() {
    let address = server(|stream| {
        let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while read_request(&mut reader).is_some() {
            std::thread::sleep(std::time::Duration::from_millis(30));
            if stream.write_all(OK).is_err() {
                return;
            }
        }
    });
    let mut plan = with(closed(address, 1), "duration_s", 0.95);
    plan["load"] = json!({"closed": {"users": 3, "pace_s": 0.1}});
    // 0, 0.1 … 0.9 s for each user, less what a busy machine delays.
    let as_often = |run: &Run| (27..=30).contains(&run.requests("intended"));
    let run = Run::punctual(&plan, as_often);
    run.assert_all_ok();
    assert!(as_often(&run), "{}", run.requests("intended"));
}

#[test]
fn users_come_and_go_with_their_places() {
    let mut plan = users(json!({
        "users": [[0, 2], [0.3, 2], [0.3, 6], [0.6, 6], [0.6, 0]],
        "think": {"constant_s": 0.02}
    }));
    plan["interval_s"] = 0.3.into();
    // 2 users and then 6, each every 20 ms and a response time.
    let as_many = |run: &Run| {
        let due = due(run);
        due[0] <= 32 && due[1] <= 96 && due[1] > due[0] * 2
    };
    let run = Run::punctual(&plan, as_many);
    run.assert_all_ok();
    assert_eq!(run.hello["connected"], 2);
    // Nobody is left at 0.6 s, and nobody will come.
    assert_eq!(run.end["stopped"], "complete");
    assert!(run.summary()["duration_s"].as_f64().unwrap() < 5.0);
    assert!(as_many(&run), "{:?}", due(&run));
}

#[test]
fn thinking_user_reconnects_for_its_request() {
    let address = server(|stream| respond(stream, OK, 1));
    let mut plan = with(closed(address, 1), "duration_s", 20.0);
    plan["load"] = json!({"closed": {"users": 2, "think": {"constant_s": 0.03}, "loops": 4}});
    let run = Run::of(&plan);
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 8);
    assert_eq!(histogram(&run.end["histograms"]["connect_time_ns"]).len(), 8);
}

#[test]
fn a_rate_that_grows_is_followed() {
    let mut plan = with(open(responding(OK), 10, 1.0), "duration_s", 1.0);
    plan["load"]["open"]["rate_rps"] = json!([[0, 0], [1, 1000]]);
    plan["interval_s"] = 0.5.into();
    let as_due = |run: &Run| rate_was_kept(run) && due(run)[0].abs_diff(125) <= 30;
    let run = Run::punctual(&plan, as_due);
    run.assert_all_ok();
    assert_eq!(run.requests("intended"), 500);
    assert!(as_due(&run), "{:?} {}", due(&run), run.summary()["verdict"]);
}

#[test]
fn seed_determines_poisson_arrivals() {
    let count = |seed: u64| {
        let mut plan = with(open(responding(OK), 10, 1000.0), "seed", seed);
        plan["load"]["open"]["arrivals"] = "poisson".into();
        let run = Run::of(&plan);
        run.assert_all_ok();
        run.requests("intended")
    };
    let (first, second) = (count(1), count(2));
    assert_eq!(first, count(1));
    assert_ne!(first, second);
    // 300 are expected, give or take 17.
    assert!((220..380).contains(&first) && (220..380).contains(&second));
}

#[test]
fn session_keeps_its_connection() {
    let mut plan = with(open(responding(OK), 30, 50.0), "duration_s", 1.0);
    plan["load"]["open"]["session"] = json!({"requests": 3, "think": {"constant_s": 0.05}});
    // 50 sessions; those that began in the last 0.1 s are not through, or just so.
    let as_many = |run: &Run| rate_was_kept(run) && (135..=147).contains(&run.requests("intended"));
    let run = Run::punctual(&plan, as_many);
    run.assert_all_ok();
    assert!(as_many(&run), "{}", run.summary());
}

#[test]
fn further_sessions_queue() {
    let mut plan = with(open(responding(OK), 1, 100.0), "duration_s", 0.5);
    plan["load"]["open"]["session"] = json!({"requests": 2, "think": {"constant_s": 0.05}});
    let run = Run::of(&plan);
    assert_eq!(run.errors(), vec![]);
    assert!(run.requests("unsent") > 30);
    assert!(run.summary()["schedule_lag_us"]["max"].as_f64().unwrap() > 200_000.0);
}

#[test]
fn load_until_failure_reports_its_results() {
    let responses = std::sync::Arc::new(AtomicU64::new(0));
    let address = server(move |stream| {
        let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while read_request(&mut reader).is_some() {
            let response = if responses.fetch_add(1, Ordering::Relaxed) < 100 {
                OK
            } else {
                b"HTTP/1.1 503 Too Much\r\nContent-Length: 0\r\n\r\n"
            };
            if stream.write_all(response).is_err() {
                return;
            }
        }
    });
    let mut plan = with(closed(address, 1), "until", "first_failure");
    plan["duration_s"] = 20.0.into();
    plan["load"] = json!({"closed": {"users": [[0, 0], [5, 50]], "think": {"constant_s": 0.01}}});
    let run = Run::of(&plan);
    assert_eq!(run.end["stopped"], "first_failure");
    // The failure can be read before the last responses of up to 49 other users.
    assert!((51..=100).contains(&run.requests("ok")), "{}", run.summary());
    assert_eq!(run.requests("failed"), 1);
    let until = &run.summary()["until_failure"];
    assert_eq!(until["requests_before"], run.requests("ok"));
    assert_eq!(until["kind"], "check");
    let at_s = until["at_s"].as_f64().unwrap();
    assert_eq!(at_s, run.summary()["duration_s"].as_f64().unwrap());
    assert!(until["highest_throughput_rps"].as_f64().unwrap() > 0.0);
    assert!(until["mean_response_time_us"].as_f64().unwrap() > 0.0);
    run.assert_valid();
    let reasons = run.summary()["verdict"]["reasons"].to_string();
    assert!(reasons.contains("ended at the first failure, as asked"), "{reasons}");
}

#[test]
fn a_load_that_meets_no_failure_says_so() {
    let run = Run::of(&with(closed(responding(OK), 2), "until", "first_failure"));
    run.assert_all_ok();
    assert_eq!(run.end["stopped"], "duration");
    let until = &run.summary()["until_failure"];
    assert_eq!(until["requests_before"], run.requests("ok"));
    assert_eq!((&until["at_s"], &until["kind"]), (&Value::Null, &Value::Null));
    let plain = Run::of(&closed(responding(OK), 2));
    assert_eq!(plain.summary()["until_failure"], Value::Null);
}

#[test]
fn slowest_requests_have_time_lines() {
    let run = Run::of(&with(closed(responding(OK), 3), "slowest", 5));
    let slowest = run.end["slowest"].as_array().unwrap();
    assert_eq!(slowest.len(), 5);
    let us = |request: &Value, key: &str| request[key].as_f64().unwrap();
    let times: Vec<f64> =
        slowest.iter().map(|request| us(request, "last_byte_us") - us(request, "intended_us")).collect();
    assert!(times.windows(2).all(|pair| pair[0] >= pair[1] - 1e-6), "{times:?}");
    let max = run.summary()["response_time_us"]["max"].as_f64().unwrap();
    assert!((times[0] / max - 1.0).abs() < 0.001, "{} {max}", times[0]);
    for request in slowest {
        assert!(us(request, "intended_us") <= us(request, "written_us"));
        assert!(us(request, "written_us") <= us(request, "first_byte_us") + 1.0);
        assert!(us(request, "first_byte_us") <= us(request, "last_byte_us"));
        assert_eq!(request["status"], 200);
        assert!(request["connection"].as_u64().unwrap() < 3);
    }
}

#[test]
fn unanswered_requests_make_lower_bounds() {
    let address = server(|stream| {
        let mut stream = stream;
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let run = Run::of(&with(open(address, 5, 100.0), "timeout_s", 10.0));
    let reasons = run.summary()["verdict"]["reasons"].to_string();
    assert!(reasons.contains("p50 and above are lower bounds"), "{reasons}");
}

#[test]
fn connections_that_were_served_unevenly_show() {
    let first = AtomicU64::new(0);
    // The first connection is served at once, the others slowly.
    let address = server(move |stream| {
        let is_first = first.fetch_add(1, Ordering::Relaxed) == 0;
        let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while read_request(&mut reader).is_some() {
            if !is_first {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            if stream.write_all(OK).is_err() {
                return;
            }
        }
    });
    let run = Run::of(&closed(address, 3));
    let fairness = &run.summary()["fairness"];
    let of = |key: &str| fairness[key].as_f64().unwrap();
    assert!(of("min") <= of("median") && of("median") < 10.0, "{fairness}");
    assert!(of("max") > 10.0 * of("median"), "{fairness}");
}
