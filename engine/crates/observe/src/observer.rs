//! The observer: all groups, and the machine around them.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_sys::clock::{monotonic_ns, thread_cpu_ns};

use crate::Error;
use crate::budget::{Depth, Limits, ThreadBudget, WITHOUT_SCHEDSTAT};
use crate::cgroup_cpu::CgroupCpu;
use crate::descriptors::descriptor_limit;
use crate::machine::{self, Cpus};
use crate::network::OpenNetwork;
use crate::procfs::Procfs;
use crate::procfs_trees::{ProcfsTrees, Sweep};
use crate::sample::{ObserverCost, Sample};
use crate::throttling::QuotaHierarchy;
use crate::tree::Tree;

/// Mount point of a procfs, also inside a PID namespace.
const PROC: &str = "/proc";
/// Period of values that need a file to be opened: bytes, descriptors, context switches and the network.
const SLOW_PERIOD: Duration = Duration::from_secs(1);

/// The extent of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// CPU time, processes, threads, their states and resident memory; once a second also the slow values.
    Usual,
    /// Also proportional memory, except of processes for which it takes more than about 1 ms.
    Memory,
    /// Every value of every process and thread.
    Full,
}

/// The process trees under observation.
pub struct Observer {
    procfs: Procfs,
    cpus: Cpus,
    /// The trees in the machine's procfs.
    machine: ProcfsTrees,
    /// One per group that has its own PID namespace.
    namespaces: Vec<ProcfsTrees>,
    cgroups: QuotaHierarchy,
    /// Target of this process's link `/proc/self/ns/net`.
    own_network: Vec<u8>,
    network: Option<OpenNetwork>,
    limits: Limits,
    slow_due: Instant,
    swept_at: Instant,
    thread_budget: ThreadBudget,
    sweeps: u64,
    /// The newest PID at the last sweep.
    newest_pid: Option<u64>,
}

impl Observer {
    /// Returns an observer without groups.
    pub fn new() -> Result<Self, Error> {
        let mut procfs = Procfs::open_at(PROC)?;
        let cpus = Cpus::open(&mut procfs)?;
        let own_network = procfs.link(format_args!("self/ns/net"));
        let own_network = own_network.map(<[u8]>::to_vec).unwrap_or_default();
        let mut limits = Limits::new();
        if procfs.open(format_args!("self/schedstat")).is_err() {
            limits.insert(WITHOUT_SCHEDSTAT);
        }
        Ok(Self {
            procfs,
            cpus,
            machine: ProcfsTrees::new(Procfs::open_at(PROC)?),
            namespaces: Vec::new(),
            cgroups: QuotaHierarchy::find(),
            own_network,
            network: None,
            limits,
            slow_due: Instant::now(),
            swept_at: Instant::now(),
            thread_budget: ThreadBudget::new(),
            sweeps: 0,
            newest_pid: None,
        })
    }

    /// Adds the tree below `root`. `counts_root`: whether the group includes `root` itself.
    pub fn add_tree(&mut self, name: &str, tier: &str, root: i32, counts_root: bool) -> Result<(), Error> {
        if !Path::new(&format!("{PROC}/{root}/stat")).exists() {
            return Err(Error::NoSuchProcess(root));
        }
        let tree = Tree::new(name.to_owned(), tier.to_owned(), root, counts_root);
        self.machine.add_tree(tree);
        Ok(())
    }

    /// Adds the PID namespace of `init`, without the init itself. The observer reads the procfs inside, which shows no
    /// other processes.
    pub fn add_namespace(&mut self, name: &str, tier: &str, init: i32) -> Result<(), Error> {
        let procfs = Procfs::open_at(&format!("{PROC}/{init}/root{PROC}"))?;
        let tree = Tree::new(name.to_owned(), tier.to_owned(), 1, false);
        self.namespaces.push(ProcfsTrees::of_namespace(procfs, tree));
        Ok(())
    }

    /// Takes the CPU time of a group from the control group of version 2 in `folder`, which must hold this group only.
    pub fn set_cpu_cgroup(&mut self, name: &str, folder: &Path) -> io::Result<()> {
        let cgroup_cpu = CgroupCpu::open(folder)?;
        let mut all = std::iter::once(&mut self.machine).chain(&mut self.namespaces);
        if let Some(tree) = all.find_map(|trees| trees.tree(name)) {
            tree.cgroup_cpu = Some(cgroup_cpu);
        }
        Ok(())
    }

    /// Removes a group.
    pub fn remove(&mut self, name: &str) {
        if self.machine.remove_tree(name) {
            return;
        }
        self.namespaces.retain_mut(|trees| {
            trees.remove_tree(name);
            trees.has_trees()
        });
    }

    /// Returns whether any process of any group was alive at the last sweep.
    pub fn has_processes(&self) -> bool {
        self.machine.has_processes() || self.namespaces.iter().any(ProcfsTrees::has_processes)
    }

    /// Reads every group and the machine once.
    pub fn sweep(&mut self, reading: Reading) -> Result<Sample, Error> {
        let now = Instant::now();
        let t_ns = monotonic_ns();
        let depth = self.depth(reading, now);
        let cpus = self.cpus.read(&mut self.procfs)?;
        let newest_pid = self.procfs.newest_pid();
        let known = std::mem::replace(&mut self.newest_pid, newest_pid);
        let (mut groups, mut threads_cost) = (Vec::new(), (Duration::ZERO, 0));
        let mut sweep = Sweep {
            depth,
            may_have_new: depth.full || newest_pid.is_none() || newest_pid != known,
            now_ns: t_ns,
            limits: &mut self.limits,
            cgroups: &self.cgroups,
            phase: (!depth.full).then(|| self.thread_budget.phase()),
            threads_cost: &mut threads_cost,
            descriptor_limit: descriptor_limit(),
            own_network: &self.own_network,
        };
        if self.machine.has_trees() {
            self.machine.sweep(&mut sweep, &mut groups)?;
        }
        for trees in &mut self.namespaces {
            trees.sweep(&mut sweep, &mut groups)?;
        }
        let (mut network, mut pressure) = (None, None);
        if depth.slow {
            let own = i32::try_from(std::process::id()).unwrap_or_default();
            if self.network.is_none() {
                self.network = OpenNetwork::open(&mut self.procfs, own, &self.own_network);
            }
            let open = self.network.as_ref();
            network = open.and_then(|open| open.read(&mut self.procfs, own));
            pressure = machine::read_pressures(&mut self.procfs);
        }
        let period = now - std::mem::replace(&mut self.swept_at, now);
        let (cost, threads) = threads_cost;
        match depth {
            Depth { threads: false, .. } => {}
            Depth { full: true, .. } => self.thread_budget.record_full_pass(),
            _ => self.thread_budget.record_phase(threads, cost, period),
        }
        self.sweeps += 1;
        Ok(Sample {
            record: "sample",
            id: None,
            t_ns,
            groups,
            cpus,
            network,
            pressure,
            observer: ObserverCost {
                cpu_s: thread_cpu().as_secs_f64(),
                sweeps: self.sweeps,
                thread_sweeps: self.thread_budget.passes(),
            },
            limits: self.limits.clone(),
        })
    }

    fn depth(&mut self, reading: Reading, now: Instant) -> Depth {
        let full = reading == Reading::Full;
        let slow = full || now >= self.slow_due;
        if slow {
            self.slow_due = now + SLOW_PERIOD;
        }
        Depth { threads: !self.limits.contains(WITHOUT_SCHEDSTAT), slow, memory: reading != Reading::Usual, full }
    }
}

/// Returns the CPU time of this thread.
pub(crate) fn thread_cpu() -> Duration {
    Duration::from_nanos(thread_cpu_ns())
}
