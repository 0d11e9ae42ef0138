//! The record `sample`, as `docs/reference/engine.md` defines it.

use std::collections::BTreeSet;

use serde::Serialize;

/// One reading of every group and of the machine.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Always `sample`.
    pub record: &'static str,
    /// Number of the command that asked for this sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// CLOCK_MONOTONIC at the start of the sweep.
    pub t_ns: u64,
    /// One per process tree.
    pub groups: Vec<Group>,
    /// One per online CPU of the machine.
    pub cpus: Vec<Cpu>,
    /// The observer's network namespace. Null: not read in this sample.
    pub network: Option<Network>,
    /// Null: not read in this sample, or the kernel has none.
    pub pressure: Option<Pressures>,
    /// The cost of the observer itself.
    pub observer: ObserverCost,
    /// Sentences about values that are not readable, and their substitutes.
    pub limits: BTreeSet<&'static str>,
}

/// One process tree. Counters are cumulative and never fall. Values that are read once a second are repeated in
/// between.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    /// Name of the started process, or its PID.
    pub name: String,
    /// Tier of the process.
    pub tier: String,
    /// Number of live processes, without zombies.
    pub processes: u64,
    /// Number of their threads.
    pub threads: u64,
    /// CPU time in user mode, ended children included.
    pub cpu_user_s: f64,
    /// CPU time in the kernel, ended children included.
    pub cpu_system_s: f64,
    /// Resident memory; a page shared between processes counts once per process. The kernel's count may be late by some
    /// hundred KiB.
    pub rss_bytes: u64,
    /// Page faults without a read from disk, ended children included. Null: not read in this sample.
    pub minor_faults: Option<u64>,
    /// Page faults with a read from disk, ended children included. Null: not read in this sample.
    pub major_faults: Option<u64>,
    /// Number of times a thread gave up its CPU to wait; read once a second.
    pub voluntary_switches: u64,
    /// Number of times a thread lost its CPU to another; read once a second.
    pub involuntary_switches: u64,
    /// Open file descriptors; read once a second. Null: not allowed.
    pub descriptors: Option<u64>,
    /// Bytes read from storage, ended children included; read once a second. Null: not allowed.
    pub disk_read_bytes: Option<u64>,
    /// Bytes written to storage, ended children included; read once a second. Null: not allowed.
    pub disk_written_bytes: Option<u64>,
    /// Bytes read with read() and similar calls, but not with recv(). Null: not allowed.
    pub rchar_bytes: Option<u64>,
    /// Bytes written with write() and similar calls, but not with send(). Null: not allowed.
    pub wchar_bytes: Option<u64>,
    /// Number of periods in which a CPU quota throttled the processes; read once a second. Null: no cgroup counts it.
    pub throttled_periods: Option<u64>,
    /// Throttled time, summed over CPUs. Null: no cgroup counts it.
    pub throttled_s: Option<f64>,
    /// Resident memory, with shared pages divided among their processes. Null: not read, or not allowed.
    pub pss_bytes: Option<u64>,
    /// Memory that no other process maps. Null: not read, or not allowed.
    pub private_bytes: Option<u64>,
    /// Memory swapped out. Null: not read, or not allowed.
    pub swap_bytes: Option<u64>,
    /// The group's network namespace. Null: not read in this sample, or it shares the observer's.
    pub network: Option<Network>,
    /// Times of the threads' states by pool. Null: not read in this sample.
    pub threads_by_state: Option<Vec<PoolTimes>>,
}

/// A pool: threads with the same name apart from numbers. Seconds of thread time by state, since the start of the
/// observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PoolTimes {
    /// Common name of the threads.
    pub pool: String,
    /// Number of live threads.
    pub threads: u64,
    /// Time on a CPU.
    pub on_cpu_s: f64,
    /// Time ready to run, waiting for a CPU.
    pub runnable_s: f64,
    /// Time in a system call on a socket.
    pub socket_io_s: f64,
    /// Time waiting for events: epoll, poll, select, io_uring.
    pub event_wait_s: f64,
    /// Time waiting for another thread, at a lock or parked.
    pub lock_s: f64,
    /// Time waiting for a connection to accept.
    pub accept_s: f64,
    /// Time waiting for a file or a disk.
    pub disk_s: f64,
    /// Time asleep.
    pub sleep_s: f64,
    /// Time in other states: pipes, children, signals.
    pub other_s: f64,
}

/// Times of one CPU since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cpu {
    /// Number of the CPU.
    pub cpu: u32,
    /// User mode, including niced processes and guests.
    pub user_s: f64,
    /// Kernel mode.
    pub system_s: f64,
    /// Idle.
    pub idle_s: f64,
    /// Idle while a task waited for a disk.
    pub iowait_s: f64,
    /// Hardware interrupts.
    pub irq_s: f64,
    /// Software interrupts, in which much of TCP runs.
    pub softirq_s: f64,
    /// Time taken by the hypervisor.
    pub steal_s: f64,
}

/// One network namespace, with counts since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Network {
    /// Retransmitted TCP segments.
    pub tcp_retransmits: u64,
    /// Connections dropped because an accept queue was full.
    pub listen_overflows: u64,
    /// Connections dropped by listening sockets for any reason.
    pub listen_drops: u64,
    /// Open TCP sockets.
    pub sockets: Sockets,
    /// Bytes received by all interfaces except the loopback.
    pub received_bytes: u64,
    /// Bytes sent by all interfaces except the loopback.
    pub sent_bytes: u64,
    /// Bytes over the loopback.
    pub loopback_bytes: u64,
}

/// TCP sockets by state: the sums that the kernel keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sockets {
    /// Established, or closed by the other side only.
    pub established: u64,
    /// In the state TIME_WAIT, for a minute after the end.
    pub time_wait: u64,
    /// Closed by the process while the kernel still sends.
    pub orphaned: u64,
    /// All TCP sockets with a port except those in TIME_WAIT.
    pub in_use: u64,
}

/// Times in which tasks of the machine waited for a resource (PSI), since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pressures {
    /// Waits for a CPU.
    pub cpu: Pressure,
    /// Waits for memory.
    pub memory: Pressure,
    /// Waits for disks.
    pub io: Pressure,
}

/// Waits for one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pressure {
    /// Time in which some task waited.
    pub some_s: f64,
    /// Time in which all non-idle tasks waited.
    pub full_s: f64,
}

/// The cost of the observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ObserverCost {
    /// CPU time of the observer thread.
    pub cpu_s: f64,
    /// Number of sweeps.
    pub sweeps: u64,
    /// Number of passes over all threads. Fewer than `sweeps` if reading all threads in each sweep costs too much.
    pub thread_sweeps: u64,
}
