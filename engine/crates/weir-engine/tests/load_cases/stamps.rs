//! Responses with the kernel's time stamps.

use std::io::{BufReader, Write};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::load_support::*;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn stamped(plan: Value) -> Value {
    with(plan, "kernel_timestamps", true)
}

/// Used and missing.
fn stamps(run: &Run) -> (u64, u64) {
    let counts = &run.summary()["generator"]["kernel_timestamps"];
    let of = |key: &str| counts[key].as_u64().unwrap();
    (of("used"), of("missing"))
}

fn monotonic_ns() -> f64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// One request, whose response is written while the generator is stopped. Gives when it came by the generator's account
/// and when, before the generator went on, it had been written.
fn response_while_stopped(is_stamped: bool) -> (f64, f64) {
    let (tell_pid, pid) = channel::<Pid>();
    let (tell_written, written) = channel::<f64>();
    let ends = Mutex::new((pid, tell_written));
    let address = server(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        if read_request(&mut reader).is_none() {
            return;
        }
        let (pid, tell_written) = &*ends.lock().unwrap();
        let pid = pid.recv().unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped());
        stream.write_all(OK).unwrap();
        tell_written.send(monotonic_ns()).unwrap();
        kill_process(pid, Signal::CONT).unwrap();
        // The connection stays open until the generator closes it.
        assert!(read_request(&mut reader).is_none());
    });
    let plan = with_requests(closed(address, 1), 1);
    let plan = with(with(plan, "timeout_s", 60.0), "kernel_timestamps", is_stamped);
    let child = command().stdin(plan_file(&plan.to_string())).spawn().unwrap();
    tell_pid.send(Pid::from_child(&child)).unwrap();
    let output = child.wait_with_output().unwrap();
    let run = Run::from_records(records(&output.stdout));
    run.assert_all_ok();
    let start_ns = run.hello["start_monotonic_ns"].as_f64().unwrap();
    let last_byte_us = run.end["slowest"][0]["last_byte_us"].as_f64().unwrap();
    (start_ns + last_byte_us * 1e3, written.recv().unwrap())
}

#[test]
fn stopped_generator_uses_kernel_stamps() {
    let (came_ns, written_ns) = response_while_stopped(true);
    assert!(came_ns <= written_ns, "{came_ns} {written_ns}");
    let (came_ns, written_ns) = response_while_stopped(false);
    assert!(came_ns > written_ns, "{came_ns} {written_ns}");
}

#[test]
fn every_response_is_stamped_in_order() {
    let plan = with_requests(closed(responding(OK), 3), 600);
    let plan = with(with(plan, "slowest", 1000), "duration_s", 60.0);
    let run = Run::of(&stamped(plan));
    run.assert_all_ok();
    assert_eq!(stamps(&run), (600, 0));
    let mut lines: Vec<_> = run.end["slowest"].as_array().unwrap().iter().collect();
    assert_eq!(lines.len(), 600);
    let us = |line: &Value, key: &str| line[key].as_f64().unwrap();
    lines.sort_by(|a, b| us(a, "written_us").total_cmp(&us(b, "written_us")));
    let mut last_bytes_us = [0.0; 3];
    for line in lines {
        let moments = ["intended_us", "written_us", "first_byte_us", "last_byte_us"];
        let moments = moments.map(|key| us(line, key));
        assert!(moments.is_sorted(), "{line}");
        // The request after a response is due when that was read: after it was stamped.
        let before_us = &mut last_bytes_us[line["connection"].as_u64().unwrap() as usize];
        assert!(moments[0] >= *before_us, "{line} {before_us}");
        *before_us = moments[3];
    }
}

#[test]
fn a_response_in_pieces_begins_before_it_ends() {
    let (head, body) = OK.split_at(20);
    let address = server(move |stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while read_request(&mut reader).is_some() {
            let pieces = [head, body];
            if pieces.iter().any(|piece| stream.write_all(piece).is_err()) {
                return;
            }
        }
    });
    let run = Run::of(&stamped(with(closed(address, 2), "threads", 2)));
    run.assert_all_ok();
    assert_eq!(stamps(&run), (run.requests("completed"), 0));
    for line in run.end["slowest"].as_array().unwrap() {
        let first_us = line["first_byte_us"].as_f64().unwrap();
        assert!(first_us <= line["last_byte_us"].as_f64().unwrap(), "{line}");
    }
}

#[test]
fn response_until_close_has_no_stamp() {
    let address = server(|stream| {
        respond(stream, b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 1);
    });
    let run = Run::of(&stamped(with(closed(address, 2), "keep_alive", false)));
    run.assert_all_ok();
    assert_eq!(stamps(&run), (0, run.requests("completed")));
}

#[test]
fn failed_checks_and_single_connections_are_stamped() {
    let wrong = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    let run = Run::of(&stamped(closed(responding(wrong), 2)));
    run.assert_only_error("check");
    assert_eq!(stamps(&run), (run.requests("completed"), 0));
    let address = server(|stream| respond(stream, OK, 1));
    let run = Run::of(&stamped(with(open(address, 4, 200.0), "keep_alive", false)));
    run.assert_all_ok();
    assert_eq!(stamps(&run), (run.requests("completed"), 0));
}

#[test]
fn pipelined_requests_are_stamped() {
    let plan = with(closed(responding(OK), 2), "pipeline", 8);
    let plan = with_requests(plan, 800);
    let run = Run::of(&stamped(with(plan, "slowest", 1000)));
    run.assert_all_ok();
    assert_eq!(stamps(&run), (800, 0));
    for line in run.end["slowest"].as_array().unwrap() {
        let moments = ["intended_us", "written_us", "first_byte_us", "last_byte_us"];
        let moments = moments.map(|key| line[key].as_f64().unwrap());
        assert!(moments.is_sorted(), "{line}");
    }
}

#[test]
fn steps_of_a_scenario_are_stamped() {
    let scenario = json!({"steps": [{"name": "only", "path": "/"}]});
    let plan = with(closed(responding(OK), 1), "scenario", scenario);
    let run = Run::of(&stamped(plan));
    run.assert_all_ok();
    assert_eq!(stamps(&run), (run.requests("completed"), 0));
    assert_eq!(run.summary()["steps"]["only"]["response_time_us"], run.summary()["response_time_us"]);
}

#[test]
fn unix_socket_with_stamps_is_refused() {
    let any = "127.0.0.1:1".parse().unwrap();
    for plan in
        [with(closed(any, 1), "target", "unix:/tmp/none.sock:/"), with(closed(any, 1), "unix", "/tmp/none.sock")]
    {
        let output = run_text(&stamped(plan).to_string());
        assert_eq!(output.status.code(), Some(2));
        let error = &records(&output.stdout)[0];
        let message = error["message"].as_str().unwrap();
        let expected = "plan, key kernel_timestamps: found true beside a Unix socket, expected false";
        assert!(message.starts_with(expected), "{message}");
    }
}
