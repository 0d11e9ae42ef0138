//! Measures the cost of ten thousand waiting requests on the delay server.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

mod serve_support;
use serve_support::{Server, may_open};

const REQUESTS: usize = 10_000;
const WAIT: Duration = Duration::from_secs(30);
/// What opening and closing may take before and after the time in which nothing but waiting goes on.
const MARGIN: Duration = Duration::from_secs(10);

/// CPU time so far of a server, which has one thread.
fn cpu(server: &Server) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{}/schedstat", server.child.id())).unwrap();
    let nanoseconds = text.split(' ').next().unwrap().parse().unwrap();
    Duration::from_nanos(nanoseconds)
}

#[test]
#[ignore = "a soak test, with ulimit -n 20000"]
fn ten_thousand_delayed_requests_cost_15_us_each() {
    if !may_open(2 * REQUESTS as u64) {
        return;
    }
    let server = Server::start(&["times", "--distribution=constant:30s"]);
    let begin = Instant::now();
    let mut streams: Vec<TcpStream> = (0..REQUESTS)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(b"GET /delay HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            stream
        })
        .collect();
    assert!(begin.elapsed() < MARGIN, "opening took {:?}", begin.elapsed());
    let until = |moment: Duration| std::thread::sleep(moment - begin.elapsed());
    until(MARGIN);
    let waiting = cpu(&server);
    until(WAIT - Duration::from_secs(1));
    let held = cpu(&server) - waiting;
    let share = held.as_secs_f64() / (WAIT - MARGIN - Duration::from_secs(1)).as_secs_f64();
    let before_responses = cpu(&server);
    for stream in &mut streams {
        let mut response = [0; 256];
        let length = stream.read(&mut response).unwrap();
        assert!(response[..length].starts_with(b"HTTP/1.1 200 OK"));
    }
    let each = (cpu(&server) - before_responses) / REQUESTS as u32;
    let _ = writeln!(std::io::stderr(), "waiting: {:.4} % of a CPU; a response: {each:?}", share * 100.0);
    assert!(share <= 0.01, "waiting took {share} of a CPU");
    assert!(each <= Duration::from_micros(15), "a response took {each:?} of CPU");
}
