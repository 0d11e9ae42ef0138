//! What a load thread is made of, and what it leaves.

use std::sync::Arc;

use weir_net::{Endpoint, Errno};
use weir_record::{
    Clocks, FirstFailure, KernelTimestamps, Responses, Slowest, StatusCounts, StepOutcome,
};
use weir_scenario::{Compiled, Worker};
use weir_schedule::Shard;

use crate::demand::Demand;
use crate::kernel_clock::KernelClock;
use crate::request_log::RequestLog;
use crate::tally::Tally;
use crate::wait::WaitStrategy;

/// What a thread is made of.
pub(crate) struct Parts<D> {
    pub(crate) driver: D,
    /// What is asked of each target, one connection after the other.
    pub(crate) requests: Vec<Vec<u8>>,
    /// The targets' URLs, where they are told apart.
    pub(crate) urls: Vec<String>,
    /// Where connections go, one after the other.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Whether a connection carries more than one request.
    pub(crate) keep_alive: bool,
    /// How many of them may be unanswered at a time.
    pub(crate) pipeline: usize,
    pub(crate) connections: usize,
    pub(crate) shard: Shard,
    pub(crate) demand: Demand,
    pub(crate) tally: Tally,
    pub(crate) wait: WaitStrategy,
    pub(crate) timeout_ns: u64,
    pub(crate) until_failure: bool,
    /// Where an answer came when the kernel received it; otherwise it came when it was read.
    pub(crate) kernel_clock: Option<KernelClock>,
    pub(crate) to_head_request: bool,
    /// What users do, instead of the one request.
    pub(crate) scenario: Option<(Arc<Compiled>, u64, Worker)>,
    /// Where each request is noted, if it is.
    pub(crate) log: Option<RequestLog>,
}

/// What a thread leaves beside its intervals.
#[derive(Debug)]
pub(crate) struct ThreadEnd {
    pub(crate) clocks: Clocks,
    pub(crate) answers: Responses,
    pub(crate) status: StatusCounts,
    pub(crate) unanswered: u64,
    pub(crate) unsent: u64,
    pub(crate) busy_ns: u64,
    /// How long the load lasted here.
    pub(crate) lasted_ns: u64,
    /// How many intervals it had here.
    pub(crate) intervals: u64,
    /// Whether it ended because all was done that was asked for.
    pub(crate) is_complete: bool,
    pub(crate) first_failure: Option<FirstFailure>,
    /// Whether a connection could not be made for want of a port of this machine.
    pub(crate) ports_used_up: bool,
    pub(crate) slowest: Slowest,
    /// What came of each step of a scenario.
    pub(crate) steps: Vec<StepOutcome>,
    /// What came of each target, where there are several.
    pub(crate) targets: Vec<StepOutcome>,
    pub(crate) kernel_timestamps: KernelTimestamps,
    /// Records of the request log for which there was no room.
    pub(crate) lost_records: u64,
    /// Requests of each connection that took part.
    pub(crate) requests: Vec<u32>,
}

/// How opening the connections went.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) connected: u64,
    pub(crate) first_failure: Option<ConnectFailure>,
}

/// Why a connection could not be made.
#[derive(Debug, Clone)]
pub(crate) struct ConnectFailure {
    pub(crate) errno: Errno,
    /// What it was about, where the number does not say it.
    pub(crate) text: Option<String>,
}
