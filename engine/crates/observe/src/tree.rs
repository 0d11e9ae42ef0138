//! A group: a process tree's name, and the state that outlives its single processes.

use crate::cgroup_cpu::CgroupCpu;
use crate::counters::Counters;
use crate::network::OpenNetwork;
use crate::parse::Memory;
use crate::pools::Pools;
use crate::process::ObservedProcess;
use crate::procfs::Procfs;
use crate::sample::{Group, Network, PoolTimes};
use crate::threads::Switches;
use crate::throttling::SeenCgroups;

/// One process tree.
#[derive(Default)]
pub struct Tree {
    pub name: String,
    pub tier: String,
    /// PID of the topmost process.
    pub root: i32,
    /// Whether the group includes the root itself. An init is not included, only its children.
    pub counts_root: bool,
    /// The control group that sums the CPU time. `None`: the processes' times are added up.
    pub cgroup_cpu: Option<CgroupCpu>,
    /// Usage of a root that has ended. No other process of the group inherits it.
    pub exited_root: Counters,
    /// The largest totals in a sample so far.
    reported: Counters,
    /// Whether `/proc/PID/io` of all processes is readable.
    pub io_is_readable: bool,
    pub switches: Switches,
    pub descriptors: Option<u64>,
    pub cgroups: SeenCgroups,
    /// The network namespace, if that is not the observer's. Dropped at the first sweep of slow values without
    /// processes.
    pub network: Option<OpenNetwork>,
    pub pools: Pools,
    /// Whether a sweep has read the threads before.
    pub has_swept_threads: bool,
    /// Number of live processes at the last sweep.
    pub process_count: u64,
}

/// The values that only some sweeps read.
#[derive(Default)]
pub struct Extras {
    pub memory: Option<Memory>,
    pub network: Option<Network>,
    pub threads_by_state: Option<Vec<PoolTimes>>,
}

impl Tree {
    pub fn new(name: String, tier: String, root: i32, counts_root: bool) -> Self {
        Self { name, tier, root, counts_root, ..Self::default() }
    }

    /// Reads the CPU time of the control group, if there is one.
    pub fn read_cgroup_cpu(&mut self, procfs: &mut Procfs) {
        if let Some(cgroup_cpu) = &mut self.cgroup_cpu {
            cgroup_cpu.read(procfs);
        }
    }

    /// Returns whether the group includes a process.
    pub fn counts(&self, process: &ObservedProcess) -> bool {
        self.counts_root || !process.is_root
    }

    /// Returns whether a process is alive and the group includes it.
    pub fn has_alive(&self, process: &ObservedProcess) -> bool {
        self.counts(process) && !process.stat.is_zombie()
    }

    /// Sums the processes for a sample. Totals never fall.
    pub fn sum<'a>(&mut self, processes: impl Iterator<Item = &'a ObservedProcess>, extras: Extras) -> Group {
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        let mut used = self.exited_root;
        let (mut process_count, mut threads, mut rss_bytes) = (0, 0, 0);
        let mut has_sums = true;
        for process in processes {
            used.add(&process.used(self.counts(process)));
            has_sums &= process.has_sums;
            if self.has_alive(process) {
                process_count += 1;
                threads += process.stat.threads;
                rss_bytes += process.rss_bytes();
            }
        }
        self.process_count = process_count;
        self.reported.raise_to(&used);
        let total = &self.reported;
        let in_ticks = |ticks: u64| ticks as f64 / ticks_per_second;
        let cgroup_cpu = self.cgroup_cpu.as_ref();
        let (cpu_user_s, cpu_system_s) =
            cgroup_cpu.map_or_else(|| (in_ticks(total.user_ticks), in_ticks(total.system_ticks)), CgroupCpu::cpu_s);
        let throttled = self.cgroups.total();
        let bytes = |value: u64| self.io_is_readable.then_some(value);
        Group {
            name: self.name.clone(),
            tier: self.tier.clone(),
            processes: process_count,
            threads,
            cpu_user_s,
            cpu_system_s,
            rss_bytes,
            minor_faults: has_sums.then_some(total.minor_faults),
            major_faults: has_sums.then_some(total.major_faults),
            voluntary_switches: self.switches.voluntary,
            involuntary_switches: self.switches.involuntary,
            descriptors: self.descriptors,
            disk_read_bytes: bytes(total.io.disk_read),
            disk_written_bytes: bytes(total.io.disk_written),
            rchar_bytes: bytes(total.io.rchar),
            wchar_bytes: bytes(total.io.wchar),
            throttled_periods: throttled.map(|throttled| throttled.periods),
            throttled_s: throttled.map(|throttled| throttled.seconds),
            pss_bytes: extras.memory.map(|memory| memory.pss_bytes),
            private_bytes: extras.memory.map(|memory| memory.private_bytes),
            swap_bytes: extras.memory.map(|memory| memory.swap_bytes),
            network: extras.network,
            threads_by_state: extras.threads_by_state,
        }
    }
}
