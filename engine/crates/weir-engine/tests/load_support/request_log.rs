//! Reads request logs byte by byte as the reference describes, and compares them with the summary.
#![allow(dead_code)]

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Run, with};

pub const OUTCOME_OK: u8 = 0;
pub const OUTCOME_CONNECT: u8 = 1;
pub const OUTCOME_TIMEOUT: u8 = 2;
pub const OUTCOME_RESET: u8 = 3;
pub const OUTCOME_PROTOCOL: u8 = 4;
pub const OUTCOME_CHECK: u8 = 5;
pub const OUTCOME_UNANSWERED: u8 = 6;

/// One record.
#[derive(Debug)]
pub struct Entry {
    pub intended_ns: i64,
    pub written_ns: i64,
    pub first_byte_ns: i64,
    pub last_byte_ns: i64,
    pub connect_ns: i64,
    pub received_bytes: u32,
    pub body_bytes: u32,
    pub sent_bytes: u32,
    pub user: u32,
    pub step: u16,
    pub target: u16,
    pub status: u16,
    pub outcome: u8,
    pub zero: u8,
}

impl Entry {
    fn of(bytes: &[u8]) -> Self {
        let long = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let short = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
        Self {
            intended_ns: long(0),
            written_ns: long(8),
            first_byte_ns: long(16),
            last_byte_ns: long(24),
            connect_ns: long(32),
            received_bytes: word(40),
            body_bytes: word(44),
            sent_bytes: word(48),
            user: word(52),
            step: short(56),
            target: short(58),
            status: short(60),
            outcome: bytes[62],
            zero: bytes[63],
        }
    }
}

/// Runs a plan with a request log, and checks what must always hold of it.
pub fn logged(plan: &Value) -> (Run, Vec<Entry>) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("weir-log-{}-{}-{number}", std::process::id(), crate::BACKEND);
    let path = std::env::temp_dir().join(name);
    // What was there before is not kept.
    std::fs::write(&path, [1; 100]).unwrap();
    let run = Run::of(&with(plan.clone(), "request_log", path.to_str().unwrap()));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(bytes.len() % 64, 0);
    let log: Vec<Entry> = bytes.chunks(64).map(Entry::of).collect();
    check(&run, &log);
    (run, log)
}

fn check(run: &Run, log: &[Entry]) {
    let of = |outcome: u8| log.iter().filter(|entry| entry.outcome == outcome).count() as u64;
    assert_eq!(of(OUTCOME_OK), run.requests("ok"));
    assert_eq!(of(OUTCOME_UNANSWERED), run.requests("unanswered"));
    for (outcome, kind) in (1..).zip(["connect", "timeout", "reset", "protocol", "check"]) {
        assert_eq!(of(outcome), run.summary()["errors"][kind], "{kind}");
    }
    assert_eq!(log.len() as u64, run.requests("intended") - run.requests("unsent"));
    let sum = |of: fn(&Entry) -> u32| log.iter().map(|entry| u64::from(of(entry))).sum::<u64>();
    let bytes = &run.summary()["bytes"];
    assert_eq!(sum(|entry| entry.sent_bytes), bytes["sent"]);
    assert_eq!(sum(|entry| entry.received_bytes), bytes["received"]);
    assert_eq!(sum(|entry| entry.body_bytes), bytes["received_body"]);
    let mut statuses = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.status > 0) {
        *statuses.entry(entry.status.to_string()).or_insert(0u64) += 1;
    }
    assert_eq!(serde_json::to_value(statuses).unwrap(), run.summary()["status"]);
    for entry in log {
        assert_eq!(entry.zero, 0);
        let moments = [entry.intended_ns, entry.written_ns, entry.first_byte_ns, entry.last_byte_ns];
        let came: Vec<i64> = moments.into_iter().filter(|&at| at >= 0).collect();
        assert!(came.is_sorted(), "{entry:?}");
        let is_whole = entry.last_byte_ns >= 0;
        assert_eq!(is_whole, entry.status > 0, "{entry:?}");
        assert!(entry.body_bytes <= entry.received_bytes);
    }
}
