//! A host under test, with commands and records as weir uses them.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::print_stderr)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Far beyond what anything here takes; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Host {
    pub child: Child,
    pub hello: Value,
    input: Option<ChildStdin>,
    records: Receiver<Value>,
    unread: Vec<Value>,
    next_id: u64,
    folder: PathBuf,
}

/// The isolations that can be tested here.
pub fn modes() -> Vec<&'static str> {
    if is_root() {
        return vec!["namespace", "process-group"];
    }
    eprintln!("namespaces left out: not root");
    vec!["process-group"]
}

pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A number that appears in the command line of one test's processes and of no others.
pub fn marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(100);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}{count}", std::process::id())
}

/// A fresh folder that everybody may write to.
pub fn folder() -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("weir-host-test-{}", marker()));
    std::fs::create_dir_all(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    path
}

/// The processes with `marker` in their command line, as this PID namespace numbers them. Zombies have none.
pub fn marked(marker: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(marker)
        })
        .collect()
}

/// Looks again and again until `condition` gives something.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::yield_now();
    }
}

pub fn wait_until_gone(marker: &str) {
    wait_for(&format!("the end of {:?}", marked(marker)), || marked(marker).is_empty().then_some(()));
}

pub fn wait_until_count(marker: &str, count: usize) {
    wait_for(&format!("{count} processes, not {:?}", marked(marker)), || (marked(marker).len() == count).then_some(()));
}

pub fn kill(pid: i32, signal: &str) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

/// The second field after the command's name.
pub fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    after_name.split_whitespace().nth(1).unwrap().parse().unwrap()
}

impl Host {
    pub fn new(isolation: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-engine"));
        command.args(["host", "--isolation", isolation]);
        Self::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, records) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let record = serde_json::from_str(&line).unwrap();
                if sender.send(record).is_err() {
                    return;
                }
            }
        });
        let mut host = Self {
            input: child.stdin.take(),
            child,
            hello: Value::Null,
            records,
            unread: Vec::new(),
            next_id: 1,
            folder: folder(),
        };
        host.hello = host.record("hello", |record| record["record"] == "hello");
        host
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sends a command; gives its number.
    pub fn send(&mut self, mut command: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        command["id"] = json!(id);
        self.send_line(&command.to_string());
        id
    }

    pub fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// The next record that `matches`; the others are kept.
    pub fn record(&mut self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.unread.iter().position(&matches) {
            return self.unread.remove(index);
        }
        loop {
            let Ok(record) = self.records.recv_timeout(PATIENCE) else {
                panic!("no {what} came; what came: {:?}", self.unread);
            };
            if matches(&record) {
                return record;
            }
            self.unread.push(record);
        }
    }

    /// Sends a command and gives its reply.
    pub fn ask(&mut self, command: Value) -> Value {
        let id = self.send(command);
        self.record("reply", |record| record["id"] == id)
    }

    /// The `start` command for a shell script.
    pub fn shell(&self, name: &str, script: &str) -> Value {
        json!({
            "command": "start", "name": name, "tier": "app", "argv": ["sh", "-c", script],
            "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"}, "cwd": self.folder, "cpus": [],
            "log": self.folder.join(format!("{name}.log")),
        })
    }

    /// Starts a shell script and gives its PID.
    pub fn start(&mut self, name: &str, script: &str) -> i32 {
        let start = self.shell(name, script);
        let started = self.ask(start);
        assert_eq!(started["record"], "started", "{started}");
        i32::try_from(started["pid"].as_i64().unwrap()).unwrap()
    }

    pub fn stop(&mut self, name: &str, grace_s: f64) -> Value {
        self.ask(json!({"command": "stop", "name": name, "grace_s": grace_s}))
    }

    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(format!("{name}.log"))).unwrap_or_default()
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.close_input();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
