//! The groups of one observation and the machine around them.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_sys::clock::{monotonic_ns, thread_cpu_ns};

use crate::Error;
use crate::account::Account;
use crate::descriptors::keep_below;
use crate::machine::{self, Cpus};
use crate::network::OpenNetwork;
use crate::procfs::Procfs;
use crate::sample::{ObserverCost, Sample};
use crate::scope::{Scope, Sweep};
use crate::sweep::{Depth, Limits, ThreadBudget, WITHOUT_SCHEDSTAT};
use crate::throttling::Cgroups;
use crate::tree::Tree;

/// Where a procfs is mounted, in a PID namespace of its own too.
const PROC: &str = "/proc";
/// Bytes, descriptors, context switches and the network change slowly or only ever count up, and each is a file to open.
const SLOW_PERIOD: Duration = Duration::from_secs(1);

/// How much a sweep reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// CPU, processes, threads and resident size, what threads do, and once a second what changes slowly.
    Usual,
    /// That, and proportional memory, but for processes of which it would take a millisecond or more.
    Memory,
    /// Everything, of every process and thread.
    Full,
}

/// The process trees under observation.
pub struct Observer {
    procfs: Procfs,
    cpus: Cpus,
    /// Trees among all processes of the machine.
    machine: Scope,
    /// A scope for each group in a PID namespace of its own.
    namespaces: Vec<Scope>,
    cgroups: Cgroups,
    /// As a link of /proc names the network namespace that this process is in.
    own_network: Vec<u8>,
    network: Option<OpenNetwork>,
    limits: Limits,
    slow_due: Instant,
    swept_at: Instant,
    thread_budget: ThreadBudget,
    sweeps: u64,
    /// At the last sweep.
    newest_pid: Option<u64>,
}

impl Observer {
    /// An observer without groups.
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
            machine: Scope::of_trees(Procfs::open_at(PROC)?),
            namespaces: Vec::new(),
            cgroups: Cgroups::find(),
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

    /// Adds the tree below `root`. `counts_root`: whether `root` itself is part of the group.
    pub fn add_tree(
        &mut self,
        name: &str,
        tier: &str,
        root: i32,
        counts_root: bool,
    ) -> Result<(), Error> {
        if !Path::new(&format!("{PROC}/{root}/stat")).exists() {
            return Err(Error::NoSuchProcess(root));
        }
        let tree = Tree::new(name.to_owned(), tier.to_owned(), root, counts_root);
        self.machine.add_tree(tree);
        Ok(())
    }

    /// Adds the PID namespace whose init is `init`, without the init itself. It is read through the procfs mounted inside, where the
    /// other processes of the machine need not be skipped.
    pub fn add_namespace(&mut self, name: &str, tier: &str, init: i32) -> Result<(), Error> {
        let procfs = Procfs::open_at(&format!("{PROC}/{init}/root{PROC}"))?;
        let tree = Tree::new(name.to_owned(), tier.to_owned(), 1, false);
        self.namespaces.push(Scope::of_namespace(procfs, tree));
        Ok(())
    }

    /// From now on the CPU time of a group is what the control group of version 2 in `folder` has used, in which there is nothing else.
    pub fn account(&mut self, name: &str, folder: &Path) -> io::Result<()> {
        let account = Account::open(folder)?;
        let mut scopes = std::iter::once(&mut self.machine).chain(&mut self.namespaces);
        if let Some(tree) = scopes.find_map(|scope| scope.tree(name)) {
            tree.account = Some(account);
        }
        Ok(())
    }

    /// Forgets a group.
    pub fn remove(&mut self, name: &str) {
        if self.machine.remove_tree(name) {
            return;
        }
        self.namespaces.retain_mut(|scope| {
            scope.remove_tree(name);
            scope.has_trees()
        });
    }

    /// Whether any process of any group was alive at the last sweep.
    pub fn has_processes(&self) -> bool {
        self.machine.has_processes() || self.namespaces.iter().any(Scope::has_processes)
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
            turn: (!depth.full).then(|| self.thread_budget.turn()),
            threads_cost: &mut threads_cost,
            keep_below: keep_below(),
            own_network: &self.own_network,
        };
        if self.machine.has_trees() {
            self.machine.sweep(&mut sweep, &mut groups)?;
        }
        for scope in &mut self.namespaces {
            scope.sweep(&mut sweep, &mut groups)?;
        }
        let (mut network, mut pressure) = (None, None);
        if depth.slow {
            let own = i32::try_from(std::process::id()).unwrap_or_default();
            if self.network.is_none() {
                self.network = OpenNetwork::of(&mut self.procfs, own, &self.own_network);
            }
            let open = self.network.as_ref();
            network = open.and_then(|open| open.read(&mut self.procfs, own));
            pressure = machine::read_pressures(&mut self.procfs);
        }
        let period = now - std::mem::replace(&mut self.swept_at, now);
        let (cost, threads) = threads_cost;
        match depth {
            Depth { threads: false, .. } => {}
            Depth { full: true, .. } => self.thread_budget.has_read_all(),
            _ => self.thread_budget.has_read(threads, cost, period),
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
        Depth {
            threads: !self.limits.contains(WITHOUT_SCHEDSTAT),
            slow,
            memory: reading != Reading::Usual,
            full,
        }
    }
}

/// Returns the CPU time of this thread.
pub(crate) fn thread_cpu() -> Duration {
    Duration::from_nanos(thread_cpu_ns())
}
