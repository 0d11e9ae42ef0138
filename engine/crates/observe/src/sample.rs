//! The record `sample`, as `docs/reference/engine.md` defines it.

use std::collections::BTreeSet;

use serde::Serialize;

/// One reading of every group and of the machine.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Always `sample`.
    pub record: &'static str,
    /// The command this answers, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// CLOCK_MONOTONIC when the sweep began.
    pub t_ns: u64,
    /// One for each process tree.
    pub groups: Vec<Group>,
    /// One for each CPU of the machine that is online.
    pub cpus: Vec<Cpu>,
    /// Of the network namespace that the observer is in. Null: not read in this sample.
    pub network: Option<Network>,
    /// Null: not read in this sample, or the kernel has none.
    pub pressure: Option<Pressures>,
    /// What the observing itself has cost.
    pub observer: ObserverCost,
    /// What could not be read, and what stands in for it, in sentences; empty where everything could be.
    pub limits: BTreeSet<&'static str>,
}

/// One process tree. What counts up is cumulative and never falls, and what is read once a second is repeated in between.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    /// Which process was started, or its PID.
    pub name: String,
    /// The tier it belongs to.
    pub tier: String,
    /// Processes alive; zombies are not.
    pub processes: u64,
    /// Their threads.
    pub threads: u64,
    /// CPU in user mode, ended children included.
    pub cpu_user_s: f64,
    /// CPU in the kernel, ended children included.
    pub cpu_system_s: f64,
    /// Resident memory; pages shared between processes count once for each. The kernel may be some hundred KiB behind.
    pub rss_bytes: u64,
    /// Pages that were made or mapped without a disk, ended children included. Null: not read in this sample.
    pub minor_faults: Option<u64>,
    /// Pages that were read from a disk, ended children included. Null: not read in this sample.
    pub major_faults: Option<u64>,
    /// Times a thread gave up its CPU to wait; read once a second.
    pub voluntary_switches: u64,
    /// Times a thread lost its CPU to another; read once a second.
    pub involuntary_switches: u64,
    /// Open file descriptors; read once a second. Null: not allowed.
    pub descriptors: Option<u64>,
    /// Fetched from storage, ended children included; read once a second. Null: not allowed.
    pub disk_read_bytes: Option<u64>,
    /// Sent to storage, ended children included; read once a second. Null: not allowed.
    pub disk_written_bytes: Option<u64>,
    /// Taken by read() and its like from files, pipes and sockets alike, but not by recv(). Null: not allowed.
    pub rchar_bytes: Option<u64>,
    /// Given to write() and its like for files, pipes and sockets alike, but not to send(). Null: not allowed.
    pub wchar_bytes: Option<u64>,
    /// Periods in which a CPU quota of the processes' cgroups held them back; read once a second. Null: no cgroup counts it.
    pub throttled_periods: Option<u64>,
    /// How long that held them back, CPUs added up. Null: no cgroup counts it.
    pub throttled_s: Option<f64>,
    /// Resident memory, shared pages divided among those that share them. Null: not read, or not allowed.
    pub pss_bytes: Option<u64>,
    /// Memory that nobody else maps. Null: not read, or not allowed.
    pub private_bytes: Option<u64>,
    /// Memory swapped out. Null: not read, or not allowed.
    pub swap_bytes: Option<u64>,
    /// Of the group's network namespace. Null: not read in this sample, or it shares the observer's.
    pub network: Option<Network>,
    /// By pool, what its threads have spent their time on. Null: not read in this sample.
    pub threads_by_state: Option<Vec<PoolTimes>>,
}

/// Threads of one name, numbers left out: seconds of thread time by what they were doing, since the observation began.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PoolTimes {
    /// Their common name.
    pub pool: String,
    /// Threads alive.
    pub threads: u64,
    /// On a CPU.
    pub on_cpu_s: f64,
    /// Ready to run, waiting for a CPU.
    pub runnable_s: f64,
    /// Waiting in a call on a socket.
    pub socket_io_s: f64,
    /// Waiting for one of many things: epoll, poll, select, io_uring.
    pub event_wait_s: f64,
    /// Waiting for another thread: a lock, or parked.
    pub lock_s: f64,
    /// Waiting for a connection to accept.
    pub accept_s: f64,
    /// Waiting for a file or its disk.
    pub disk_s: f64,
    /// Waiting for time to pass.
    pub sleep_s: f64,
    /// Anything else: pipes, children, signals.
    pub other_s: f64,
}

/// Where the time of one CPU went since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cpu {
    /// Its number.
    pub cpu: u32,
    /// User mode, niced processes and guests included.
    pub user_s: f64,
    /// Kernel mode.
    pub system_s: f64,
    /// Nothing to do.
    pub idle_s: f64,
    /// Nothing to do but for a disk.
    pub iowait_s: f64,
    /// Hardware interrupts.
    pub irq_s: f64,
    /// Software interrupts; much of TCP is done here.
    pub softirq_s: f64,
    /// Taken by the hypervisor.
    pub steal_s: f64,
}

/// One network namespace; counts are since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Network {
    /// TCP segments sent again.
    pub tcp_retransmits: u64,
    /// Connections refused a place because a listening socket's accept queue was full.
    pub listen_overflows: u64,
    /// Connections refused a place for this or another reason.
    pub listen_drops: u64,
    /// TCP sockets there are.
    pub sockets: Sockets,
    /// Received by every interface but the loopback.
    pub received_bytes: u64,
    /// Sent by every interface but the loopback.
    pub sent_bytes: u64,
    /// Carried by the loopback.
    pub loopback_bytes: u64,
}

/// TCP sockets by state, as far as the kernel counts them without looking at each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sockets {
    /// Established, or closed by the other side only.
    pub established: u64,
    /// Kept for a minute after their end, so that their port is not used again too early.
    pub time_wait: u64,
    /// Closed by their process while the kernel still sends.
    pub orphaned: u64,
    /// Every TCP socket with a port but those in time-wait: established, listening, opening and closing.
    pub in_use: u64,
}

/// How long tasks of the whole machine stood still for want of a resource (PSI), since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pressures {
    /// Of CPU.
    pub cpu: Pressure,
    /// Of memory.
    pub memory: Pressure,
    /// Of disks.
    pub io: Pressure,
}

/// Want of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pressure {
    /// Some task waited.
    pub some_s: f64,
    /// All that could work waited.
    pub full_s: f64,
}

/// What the observing has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ObserverCost {
    /// CPU of the observing thread.
    pub cpu_s: f64,
    /// Sweeps made.
    pub sweeps: u64,
    /// Passes over all threads: fewer where reading them in every sweep would have cost too much.
    pub thread_sweeps: u64,
}
