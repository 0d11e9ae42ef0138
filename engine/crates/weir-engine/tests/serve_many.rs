//! What it costs the delay server to have ten thousand requests wait.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const REQUESTS: usize = 10_000;
const WAIT: Duration = Duration::from_secs(30);
/// What opening and closing may take before and after the time in which nothing but waiting goes on.
const MARGIN: Duration = Duration::from_secs(10);

struct Server(Child);

impl Server {
    /// CPU time so far.
    fn cpu(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.0.id())).unwrap();
        let nanoseconds = text.split(' ').next().unwrap().parse().unwrap();
        Duration::from_nanos(nanoseconds)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "a soak test, with ulimit -n 20000"]
fn ten_thousand_requests_wait_for_next_to_nothing_and_are_answered_for_15_us_each() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit
        .maximum
        .is_some_and(|files| files < 2 * REQUESTS as u64)
    {
        let note = format!(
            "left out: ulimit -Hn is {:?}, and this needs 20,000\n",
            limit.maximum
        );
        let _ = std::io::stderr().write_all(note.as_bytes());
        return;
    }
    let raised = rustix::process::Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let mut server = Server(
        Command::new(env!("CARGO_BIN_EXE_weir-engine"))
            .args(["serve", "times", "--distribution=constant:30s"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = listening["address"].as_str().unwrap();
    let begin = Instant::now();
    let mut streams: Vec<TcpStream> = (0..REQUESTS)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream
                .write_all(b"GET /delay HTTP/1.1\r\nHost: x\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    assert!(
        begin.elapsed() < MARGIN,
        "opening took {:?}",
        begin.elapsed()
    );
    let until = |moment: Duration| std::thread::sleep(moment - begin.elapsed());
    until(MARGIN);
    let waiting = server.cpu();
    until(WAIT - Duration::from_secs(1));
    let held = server.cpu() - waiting;
    let share = held.as_secs_f64() / (WAIT - MARGIN - Duration::from_secs(1)).as_secs_f64();
    let before_answers = server.cpu();
    for stream in &mut streams {
        let mut answer = [0; 256];
        let length = stream.read(&mut answer).unwrap();
        assert!(answer[..length].starts_with(b"HTTP/1.1 200 OK"));
    }
    let each = (server.cpu() - before_answers) / REQUESTS as u32;
    let _ = writeln!(
        std::io::stderr(),
        "waiting: {:.4} % of a CPU; an answer: {each:?}",
        share * 100.0
    );
    assert!(share <= 0.01, "waiting took {share} of a CPU");
    assert!(
        each <= Duration::from_micros(15),
        "an answer took {each:?} of CPU"
    );
}
