//! The process trees in one procfs.
//!
//! **Double counting.** When a parent reaps a child, the child's usage moves to the parent's counters. A sweep reads
//! the two at different times, always the parent before the child. So a child reaped in between is missing from one
//! sweep instead of counted twice. The totals never fall, and show the child in the next sweep. Orphans keep this
//! order, because an ancestor adopts them.
//!
//! **Cost.** A sweep lists the procfs only if the newest PID has changed. The kernel takes 0.1 us per thread for this,
//! without a break. Then the sweep reads one open file per process and thread. It opens files only for new PIDs and for
//! the slow values. It allocates little unless processes start or end.

use std::collections::HashSet;
use std::time::Duration;

use crate::Error;
use crate::budget::{Depth, FOREIGN_PROCESS, Limits, SamplingPhase};
use crate::network::OpenNetwork;
use crate::observer::thread_cpu;
use crate::parse::Memory;
use crate::process::ObservedProcess;
use crate::procfs::Procfs;
use crate::sample::{Group, Network};
use crate::threads::ThreadSweep;
use crate::throttling::QuotaHierarchy;
use crate::tree::{Extras, Tree};

/// Maximum number of threads whose context switches one sweep reads, at 14 us each. The next sweep reads further ones.
const MAX_SWITCH_READS: u64 = 100;
/// Resident memory above which only full samples, outside of a load, read a process's proportional memory. The kernel
/// walks the page tables for 3 to 4 ms per GiB, and may delay other threads of this CPU.
const EXPENSIVE_MEMORY_BYTES: u64 = 256 << 20;

/// The shared state of one sweep over all procfs.
pub struct Sweep<'a> {
    pub depth: Depth,
    /// Whether processes may have started since the last sweep.
    pub may_have_new: bool,
    pub now_ns: u64,
    pub limits: &'a mut Limits,
    pub cgroups: &'a QuotaHierarchy,
    /// The phase whose threads are read. `None`: all threads.
    pub phase: Option<SamplingPhase>,
    /// CPU time of reading threads, and the number of threads.
    pub threads_cost: &'a mut (Duration, u64),
    /// The first descriptor number that does not stay open.
    pub descriptor_limit: i32,
    /// Target of the observer's link `/proc/self/ns/net`.
    pub own_network: &'a [u8],
}

/// The process trees in one procfs.
pub struct ProcfsTrees {
    procfs: Procfs,
    /// Whether all processes belong to one tree: the procfs shows the PID namespace of one group.
    is_namespace: bool,
    trees: Vec<Tree>,
    /// Parents come before their children.
    processes: Vec<ObservedProcess>,
    process_pids: HashSet<i32>,
    /// Whether a tree was added since the last listing.
    has_new_tree: bool,
    /// PIDs that belong to no tree, in ascending order.
    unobserved: Vec<i32>,
    switches_phase: SamplingPhase,
    /// Reused by each sweep.
    listing: Vec<i32>,
}

impl ProcfsTrees {
    /// Returns a value without trees.
    pub fn new(procfs: Procfs) -> Self {
        Self {
            procfs,
            is_namespace: false,
            trees: Vec::new(),
            processes: Vec::new(),
            process_pids: HashSet::new(),
            has_new_tree: false,
            unobserved: Vec::new(),
            switches_phase: SamplingPhase::ALL,
            listing: Vec::new(),
        }
    }

    /// Returns a value whose one tree has every process of `procfs`, except its init.
    pub fn of_namespace(procfs: Procfs, tree: Tree) -> Self {
        let mut trees = Self::new(procfs);
        trees.is_namespace = true;
        trees.add_tree(tree);
        trees
    }

    pub fn add_tree(&mut self, tree: Tree) {
        // Unobserved processes may belong to the new tree.
        self.unobserved.clear();
        self.has_new_tree = true;
        self.trees.push(tree);
    }

    /// Returns the tree with this name. Returns `None` if there is none.
    pub fn tree(&mut self, name: &str) -> Option<&mut Tree> {
        self.trees.iter_mut().find(|tree| tree.name == name)
    }

    /// Removes the tree with this name. Returns whether there was one.
    pub fn remove_tree(&mut self, name: &str) -> bool {
        let Some(index) = self.trees.iter().position(|tree| tree.name == name) else {
            return false;
        };
        self.trees.remove(index);
        self.processes.retain_mut(|process| {
            let stays = process.tree != index;
            if !stays {
                self.process_pids.remove(&process.pid);
            }
            if process.tree > index {
                process.tree -= 1;
            }
            stays
        });
        true
    }

    pub fn has_trees(&self) -> bool {
        !self.trees.is_empty()
    }

    /// Returns whether any process of any tree was alive at the last sweep.
    pub fn has_processes(&self) -> bool {
        self.trees.iter().any(|tree| tree.process_count > 0)
    }

    /// Reads every tree once and appends its values to `groups`.
    pub fn sweep(&mut self, sweep: &mut Sweep<'_>, groups: &mut Vec<Group>) -> Result<(), Error> {
        if std::mem::take(&mut self.has_new_tree) || sweep.may_have_new {
            self.procfs
                .processes(&mut self.listing)
                .map_err(|error| Error::Unreadable("/proc".to_owned(), error.into()))?;
            self.discover();
        }
        self.read_processes(sweep);
        if sweep.depth.threads {
            self.read_threads(sweep);
        }
        if sweep.depth.slow {
            self.read_switches(sweep);
            self.read_slow_values(sweep);
        }
        for index in 0..self.trees.len() {
            let extras = self.extras(index, sweep);
            self.trees[index].read_cgroup_cpu(&mut self.procfs);
            let processes = of_tree(&self.processes, index);
            groups.push(self.trees[index].sum(processes, extras));
        }
        Ok(())
    }

    /// Assigns the new processes to their trees, and remembers the others as unobserved.
    fn discover(&mut self) {
        let mut unobserved = Vec::new();
        let mut unknown: Vec<ObservedProcess> = Vec::new();
        for &pid in &self.listing {
            if self.process_pids.contains(&pid) {
                continue;
            }
            if self.unobserved.binary_search(&pid).is_ok() {
                unobserved.push(pid);
                continue;
            }
            unknown.extend(ObservedProcess::open(&mut self.procfs, pid));
        }
        // After a wraparound of PIDs, a parent may have a higher PID than its child. So repeat until no process finds a
        // tree.
        loop {
            let before = unknown.len();
            let mut remaining = Vec::new();
            for mut process in unknown {
                match self.find_tree(&process) {
                    Some((tree, is_root)) => {
                        process.tree = tree;
                        process.is_root = is_root;
                        self.process_pids.insert(process.pid);
                        self.processes.push(process);
                    }
                    None => remaining.push(process),
                }
            }
            unknown = remaining;
            if unknown.len() == before {
                break;
            }
        }
        if !unknown.is_empty() || unobserved.len() != self.unobserved.len() {
            unobserved.extend(unknown.iter().map(|process| process.pid));
            unobserved.sort_unstable();
            self.unobserved = unobserved;
        }
    }

    /// Returns the tree of a process, and whether the process is its root. Returns `None` if it belongs to no tree.
    fn find_tree(&self, process: &ObservedProcess) -> Option<(usize, bool)> {
        let as_root = self.trees.iter().position(|tree| tree.root == process.pid);
        if let Some(tree) = as_root {
            return Some((tree, true));
        }
        if self.is_namespace {
            return Some((0, false));
        }
        let parent = process.stat.parent;
        if !self.process_pids.contains(&parent) {
            return None;
        }
        let parent = self.processes.iter().find(|process| process.pid == parent)?;
        Some((parent.tree, false))
    }

    /// Reads every process again, parents first, and drops those that have ended.
    fn read_processes(&mut self, sweep: &mut Sweep<'_>) {
        let (trees, process_pids, procfs) = (&mut self.trees, &mut self.process_pids, &mut self.procfs);
        self.processes.retain_mut(|process| {
            let has_cgroup_cpu = trees[process.tree].cgroup_cpu.is_some();
            let is_alive = match sweep.depth.reads_sums(process.stat.threads, has_cgroup_cpu) {
                true => process.read(procfs),
                false => process.read_without_sums(procfs),
            };
            if is_alive {
                return true;
            }
            process_pids.remove(&process.pid);
            if process.is_root {
                let tree = &mut trees[process.tree];
                tree.exited_root.add(&process.used(tree.counts_root));
            }
            false
        });
    }

    fn read_threads(&mut self, sweep: &mut Sweep<'_>) {
        let before = thread_cpu();
        for process in &mut self.processes {
            let tree = &mut self.trees[process.tree];
            if !tree.has_alive(process) {
                continue;
            }
            let mut thread_sweep = ThreadSweep {
                procfs: &mut self.procfs,
                pools: &mut tree.pools,
                limits: sweep.limits,
                now_ns: sweep.now_ns,
                phase: sweep.phase,
                descriptor_limit: sweep.descriptor_limit,
                counts_from_birth: tree.has_swept_threads,
            };
            let count = process.stat.threads;
            process.threads.sweep(process.pid, count, &mut thread_sweep);
            sweep.threads_cost.1 += count;
        }
        sweep.threads_cost.0 += thread_cpu().saturating_sub(before);
        for tree in &mut self.trees {
            tree.has_swept_threads = true;
        }
    }

    fn read_switches(&mut self, sweep: &mut Sweep<'_>) {
        let outdated = self.processes.iter().map(|process| process.threads.outdated_switches());
        let outdated: u64 = outdated.sum();
        self.switches_phase = self.switches_phase.next(outdated.div_ceil(MAX_SWITCH_READS));
        let phase = (!sweep.depth.full).then_some(self.switches_phase);
        for process in &mut self.processes {
            let total = &mut self.trees[process.tree].switches;
            let (pid, procfs) = (process.pid, &mut self.procfs);
            process.threads.add_switches(pid, phase, procfs, total);
        }
    }

    /// Reads the bytes, descriptors and cgroups of every process.
    fn read_slow_values(&mut self, sweep: &mut Sweep<'_>) {
        for tree in &mut self.trees {
            tree.io_is_readable = true;
            tree.descriptors = Some(0);
        }
        let mut cgroups = HashSet::new();
        for process in &mut self.processes {
            let tree = &mut self.trees[process.tree];
            process.threads.forget_descriptors();
            // Also for a root that does not count itself (an init): reaped children's counters move to it.
            if process.read_io(&mut self.procfs).is_err() && tree.counts(process) {
                tree.io_is_readable = false;
                sweep.limits.insert(FOREIGN_PROCESS);
            }
            if !tree.has_alive(process) {
                continue;
            }
            let open = process.descriptors(&mut self.procfs, &mut self.listing).ok();
            tree.descriptors = tree.descriptors.zip(open).map(|(sum, open)| sum + open);
            let cgroup = self.procfs.read(format_args!("{}/cgroup", process.pid));
            let folder = cgroup.ok().and_then(|text| sweep.cgroups.folder(text));
            cgroups.extend(folder.map(|folder| (process.tree, folder)));
        }
        for (tree, folder) in cgroups {
            self.trees[tree].cgroups.read(folder);
        }
    }

    /// Reads the values of a tree that only some sweeps have.
    fn extras(&mut self, index: usize, sweep: &mut Sweep<'_>) -> Extras {
        let mut extras = Extras::default();
        if sweep.depth.memory {
            extras.memory = self.memory(index, sweep);
        }
        if sweep.depth.slow {
            let tree = &self.trees[index];
            let processes = of_tree(&self.processes, index);
            let alive = processes.flat_map(|process| process.threads.pools());
            extras.threads_by_state = Some(tree.pools.times(alive));
            extras.network = self.network(index, sweep);
        }
        extras
    }

    /// Sums the proportional memory. Returns `None` if that of any process is not permitted or too expensive: the sum
    /// would be too small.
    fn memory(&mut self, index: usize, sweep: &mut Sweep<'_>) -> Option<Memory> {
        let tree = &self.trees[index];
        let mut sum = Memory::default();
        for process in of_tree(&self.processes, index) {
            if !tree.has_alive(process) {
                continue;
            }
            if !sweep.depth.full && process.rss_bytes() > EXPENSIVE_MEMORY_BYTES {
                return None;
            }
            let Ok(memory) = process.memory(&mut self.procfs) else {
                sweep.limits.insert(FOREIGN_PROCESS);
                return None;
            };
            sum.pss_bytes += memory.pss_bytes;
            sum.private_bytes += memory.private_bytes;
            sum.swap_bytes += memory.swap_bytes;
        }
        Some(sum)
    }

    /// Reads the network namespace of the tree's first process. Returns `None` if it is the observer's own.
    fn network(&mut self, index: usize, sweep: &Sweep<'_>) -> Option<Network> {
        let (tree, procfs) = (&mut self.trees[index], &mut self.procfs);
        let open = tree.network.take();
        let mut processes = of_tree(&self.processes, index);
        let pid = processes.find(|process| tree.has_alive(process))?.pid;
        let link = procfs.link(format_args!("{pid}/ns/net")).ok()?;
        if link == sweep.own_network {
            return None;
        }
        let open = match open {
            Some(open) if open.has_link(link) => open,
            _ => {
                let link = link.to_vec();
                OpenNetwork::open(procfs, pid, &link)?
            }
        };
        tree.network.insert(open).read(procfs, pid)
    }
}

fn of_tree(processes: &[ObservedProcess], tree: usize) -> impl Iterator<Item = &ObservedProcess> {
    processes.iter().filter(move |process| process.tree == tree)
}
