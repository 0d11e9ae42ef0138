//! Starts `weir-engine serve` for tests, and raises the limit on open files.
#![allow(clippy::unwrap_used, dead_code, missing_docs)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A server that ends with the test.
pub struct Server {
    pub child: Child,
    pub address: String,
}

impl Server {
    /// Started, and listening.
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir-engine"))
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let record: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(record["record"], "listening");
        let address = record["address"].as_str().unwrap().to_owned();
        Self { child, address }
    }

    /// A connection on which nobody waits for ever.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// Sends `request` and reads until the server closes.
    pub fn ask(&self, request: &[u8]) -> std::io::Result<String> {
        let mut stream = self.connect();
        stream.write_all(request)?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response)?;
        Ok(String::from_utf8_lossy(&response).into_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets this process and what it starts open so many files. False, with a line: it may not.
pub fn may_open(files: u64) -> bool {
    let maximum = getrlimit(Resource::Nofile).maximum;
    if maximum.is_some_and(|most| most < files) {
        let note = format!("left out: ulimit -Hn is {maximum:?}, and this needs {files}\n");
        let _ = std::io::stderr().write_all(note.as_bytes());
        return false;
    }
    let current = maximum;
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    true
}
