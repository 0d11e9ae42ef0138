//! Tests the tap on the engine's own servers: known times, sampled connections, missing privileges.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod serve_support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use serve_support::Server;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// A tap that looks.
struct Tap {
    child: Child,
    records: BufReader<ChildStdout>,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-engine"));
    command.arg("tap").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

impl Tap {
    /// Nothing, with a line, where packets may not be looked at.
    fn on(server: &Server, arguments: &[&str]) -> Option<Self> {
        let port = server.address.rsplit(':').next().unwrap();
        let arguments = [&["--port", port], arguments].concat();
        let mut child = command(&arguments).spawn().unwrap();
        let mut tap = Self { records: BufReader::new(child.stdout.take().unwrap()), child };
        let hello = tap.record();
        if hello["code"] == 3 {
            eprintln!("left out: {}", hello["message"]);
            return None;
        }
        assert_eq!(hello["record"], "hello");
        Some(tap)
    }

    fn record(&mut self) -> Value {
        let mut line = String::new();
        self.records.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Closes its input and gives what it saw.
    fn end(mut self) -> Value {
        drop(self.child.stdin.take());
        let end = self.record();
        assert!(self.child.wait().unwrap().success());
        assert_eq!((&end["record"], &end["dropped_packets"]), (&json!("end"), &json!(0)));
        end
    }
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(&server.address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Asks and reads the whole response; gives how long that took here.
fn ask(stream: &mut TcpStream, pieces: &[&[u8]]) -> Duration {
    let begun = Instant::now();
    for piece in pieces {
        stream.write_all(piece).unwrap();
    }
    let mut response = Vec::new();
    while !response.ends_with(b"ok") {
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0);
        response.extend_from_slice(&bytes[..count]);
    }
    begun.elapsed()
}

#[test]
fn exchange_lasts_to_the_last_byte_of_the_response() {
    let server = Server::start(&["delay", "--wait", "40ms"]);
    let Some(tap) = Tap::on(&server, &[]) else {
        return;
    };
    let mut stream = connect(&server);
    // In one piece, and in two.
    let (begin, rest) = REQUEST.split_at(10);
    let longest = ask(&mut stream, &[REQUEST]).max(ask(&mut stream, &[begin, rest]));
    drop(stream);
    let end = tap.end();
    assert_eq!((&end["requests"], &end["connections"]), (&json!(2), &json!(1)));
    let us = |key: &str| end["response_time_us"][key].as_f64().unwrap();
    assert!(us("min") >= 40_000.0 * 0.999, "{}", us("min"));
    // Three significant digits.
    let longest_us = longest.as_secs_f64() * 1e6;
    assert!(us("max") <= longest_us * 1.001, "{} {longest_us}", us("max"));
    assert!(end["first_t_ns"].as_u64() < end["last_t_ns"].as_u64());
    assert_eq!(end["stopped"], "input");
}

#[test]
fn connections_are_sampled_by_port() {
    let server = Server::start(&["null"]);
    let Some(tap) = Tap::on(&server, &["--one-in", "4"]) else {
        return;
    };
    let mut streams: Vec<TcpStream> = (0..64).map(|_| connect(&server)).collect();
    let mut expected = 0;
    for stream in &mut streams {
        ask(stream, &[REQUEST]);
        ask(stream, &[REQUEST]);
        let port = stream.local_addr().unwrap().port();
        expected += u64::from((port >> 1) % 4 == 0);
    }
    let end = tap.end();
    assert_eq!(end["connections"], expected);
    assert_eq!(end["requests"], 2 * expected);
}

#[test]
fn other_ports_are_ignored_and_a_signal_ends_the_tap() {
    let (server, other) = (Server::start(&["null"]), Server::start(&["null"]));
    let Some(mut tap) = Tap::on(&server, &[]) else {
        return;
    };
    ask(&mut connect(&other), &[REQUEST]);
    let pid = tap.child.id().to_string();
    Command::new("kill").arg(&pid).status().unwrap();
    let end = tap.record();
    assert_eq!((&end["requests"], &end["packets"]), (&json!(0), &json!(0)));
    assert_eq!((&end["stopped"], &end["first_t_ns"]), (&json!("signal"), &Value::Null));
    assert!(tap.child.wait().unwrap().success());
}

fn refused(command: &mut Command) -> Option<(i32, Value)> {
    // A user who may not even run the program is no user to ask.
    let output = command.output().ok()?;
    let said: Value = serde_json::from_slice(output.stdout.split(|&byte| byte == b'\n').next()?).ok()?;
    Some((output.status.code()?, said))
}

#[test]
fn missing_capability_is_named() {
    let mut nobody = command(&["--port", "80"]);
    if rustix::process::geteuid().is_root() {
        nobody.uid(65_534);
    }
    let Some((code, said)) = refused(&mut nobody) else {
        return;
    };
    assert_eq!(code, 3);
    assert_eq!(said["message"], "packets cannot be captured without the capability CAP_NET_RAW");
    assert!(said["hint"].as_str().unwrap().contains("setcap cap_net_raw+ep"));
}

#[test]
fn wrong_arguments_are_named() {
    let many: Vec<String> = (1..=17).map(|port| format!("--port={port}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (code, said) = refused(&mut command(&many)).unwrap();
    assert_eq!((code, &said["message"]), (2, &json!("--port: found 17 ports, expected at most 16")));
    let (code, said) = refused(&mut command(&["--port=80", "--interface=nowhere0"])).unwrap();
    let message = "--interface: found \"nowhere0\", expected a network interface of this machine";
    assert_eq!((code, &said["message"]), (2, &json!(message)));
}
