//! The record `sample`, as `docs/reference/engine.md` defines it.

use serde::Serialize;

/// One reading of every group and every CPU.
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
}

/// One process tree. CPU and context switches are cumulative and never fall.
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
    /// Times a thread gave up its CPU to wait; read once a second.
    pub voluntary_switches: u64,
    /// Times a thread lost its CPU to another; read once a second.
    pub involuntary_switches: u64,
    /// Resident memory, shared pages divided among those that share them. Null: not read, or not allowed.
    pub pss_bytes: Option<u64>,
    /// Memory that nobody else maps. Null: not read, or not allowed.
    pub private_bytes: Option<u64>,
    /// Memory swapped out. Null: not read, or not allowed.
    pub swap_bytes: Option<u64>,
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
