//! A load thread whose connections never see the network: tests pass bytes and moments to it.
#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use weir_http::Http1;
use weir_net::{Backend, EpollDriver};
use weir_plan::Plan;
use weir_record::{Event, Slowest};
use weir_schedule::Shard;

use super::*;
use crate::Prepared;
use crate::clock::unix_ns;
use crate::collect::Message;
use crate::recorder::{First, KernelClock, Pool, Tally};
use crate::workload::{Demand, Requests};

/// The timeout of a plan that sets none.
const TIMEOUT_NS: u64 = 2_000_000_000;

struct Fixture {
    thread: LoadThread<EpollDriver, Http1>,
    messages: Receiver<Message>,
    start_ns: u64,
    /// The kernel connects to it.
    _listener: TcpListener,
}

/// Starts a closed load until the first failure. Each user's request waits for its connection.
fn started(connections: usize) -> Fixture {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let plan = Plan::from_json(&format!(
        r#"{{"schema": 1, "target": "http://{address}/", "duration_s": 10, "load": {{"closed": {{"connections": {connections}}}}}}}"#
    ));
    let prepared = Prepared::new(plan.unwrap()).unwrap();
    let mut driver = EpollDriver::new(connections).unwrap();
    let requests = Requests::new(&prepared, Shard::WHOLE, &mut driver).unwrap();
    let workload = Workload::new(requests, Demand::new(&prepared.plan, Shard::WHOLE));
    let (sender, messages) = channel();
    let slowest = Slowest::new(1);
    let (first, pool) = (First::default(), Pool::default());
    let tally = Tally::new(1_000_000_000, slowest, first, pool, sender);
    let recorder = Recorder::new(tally, None, Some(KernelClock::new()), true);
    let mut thread = LoadThread::new(&prepared, Shard::WHOLE, driver, workload, recorder);
    let start_ns = now_ns();
    thread.start(start_ns, 10_000_000_000);
    Fixture { thread, messages, start_ns, _listener: listener }
}

impl Fixture {
    /// Returns the details of the reported errors.
    fn details(&self) -> Vec<String> {
        let events = self.messages.try_iter().filter_map(|message| match message {
            Message::Event(Event { detail, .. }) => Some(detail),
            _ => None,
        });
        events.collect()
    }
}

#[test]
fn first_failure_ends_all_attempts_to_connect() {
    let Fixture { mut thread, start_ns, .. } = started(3);
    thread.expire(start_ns + TIMEOUT_NS);
    assert_eq!(thread.recorder.tally.counts.errors.total(), 1);
    assert_eq!(thread.connections.parked(), 2);
}

#[test]
fn first_failure_has_the_time_of_its_check() {
    let Fixture { mut thread, start_ns, .. } = started(1);
    thread.connected(0, None, start_ns);
    let (stamp, now) = (unix_ns(), now_ns() + 1_000_000);
    let response = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n";
    let (_, mut reader) = thread.split();
    let reception = reader.receive(0, response, Some(stamp), now);
    thread.received(0, reception, now);
    let kernel_timestamps = thread.recorder.tally.kernel_timestamps;
    assert_eq!(kernel_timestamps.used, 1, "the stamp is earlier");
    let failure = thread.recorder.first_failure.unwrap();
    assert_eq!(failure.at_ns, now - start_ns);
    assert_eq!(failure.at_ns, thread.window.end_ns - start_ns);
}

#[test]
fn excerpt_is_the_beginning_of_a_head_that_came_in_pieces() {
    let mut head = b"HTTP/1.1 200 ".to_vec();
    head.resize(120, b'b');
    for ends in [false, true] {
        let mut fixture = started(1);
        let (thread, now) = (&mut fixture.thread, fixture.start_ns);
        thread.connected(0, None, now);
        // A control character in the reason is found when the head or the stream ends.
        let last: &[u8] = if ends { b"\x01" } else { b"\x01\r\n\r\n" };
        for bytes in [&head, last] {
            let (_, mut reader) = thread.split();
            let reception = reader.receive(0, bytes, None, now);
            thread.received(0, reception, now);
        }
        thread.ended(0, now);
        let excerpt = head[..100].escape_ascii();
        let expected = format!("not HTTP: invalid response status; received \"{excerpt}\"");
        assert_eq!(fixture.details(), [expected]);
    }
}
