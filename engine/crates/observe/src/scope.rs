//! The process trees seen through one procfs, and the reading of them.
//!
//! **Double counting.** When a child is reaped, what it used moves to its parent's counters, and the two are read at different moments.
//! Members are therefore kept and read in the order parent before child: a child reaped in between is then missing from one sweep
//! rather than counted twice, and the totals, which are never allowed to fall, show it in the next one. Adopting keeps that order, because
//! orphans go to an ancestor.
//!
//! **Cost.** A sweep lists the procfs if there may be new processes, and reads one open file a member and thread; a file is opened only for a PID
//! never seen before. To list it, the kernel goes through the PIDs of all threads, 0.1 us each, in one go.
//! What is read once a second is opened each time. Little is allocated unless processes come or go.

use std::collections::HashSet;
use std::time::Duration;

use crate::Error;
use crate::member::Member;
use crate::network::OpenNetwork;
use crate::observer::thread_cpu;
use crate::parse::Memory;
use crate::procfs::Procfs;
use crate::sample::{Group, Network};
use crate::sweep::{Depth, FOREIGN_PROCESS, Limits, Turn};
use crate::threads::ThreadSweep;
use crate::throttling::Cgroups;
use crate::tree::{Extras, Tree};

/// Of so many threads the context switches are read in one sweep, 14 us each; the others have their turn a second later.
const MOST_SWITCHES: u64 = 100;
/// The kernel walks the page tables of a process, 3 to 4 ms a GiB, and may hold up whoever else wants this CPU meanwhile. A process with more
/// than this resident has its proportional memory read only when it is asked for: outside of the load.
const DEAR_MEMORY_BYTES: u64 = 256 << 20;

/// What the reading of all scopes in one sweep shares.
pub struct Sweep<'a> {
    pub depth: Depth,
    /// False: no process has come since the last sweep.
    pub may_have_new: bool,
    pub now_ns: u64,
    pub limits: &'a mut Limits,
    pub cgroups: &'a Cgroups,
    /// Whose turn it is to be read. None: everybody's.
    pub turn: Option<Turn>,
    /// The CPU that reading threads took, and how many threads there are.
    pub threads_cost: &'a mut (Duration, u64),
    /// Files stay open only on descriptors below this one.
    pub keep_below: i32,
    /// The network namespace that the observer is in, as a link of /proc names it.
    pub own_network: &'a [u8],
}

/// One procfs and the trees in it.
pub struct Scope {
    procfs: Procfs,
    /// Every process of this procfs is in its only tree: it shows the PID namespace of one group.
    is_namespace: bool,
    trees: Vec<Tree>,
    members: Vec<Member>,
    member_pids: HashSet<i32>,
    /// A tree was added since the processes were listed.
    has_new_tree: bool,
    /// In ascending order, the PIDs known to belong to no tree.
    strangers: Vec<i32>,
    switches_turn: Turn,
    /// Reused by each sweep.
    listing: Vec<i32>,
}

impl Scope {
    /// Trees among all processes of `procfs`.
    pub fn of_trees(procfs: Procfs) -> Self {
        Self {
            procfs,
            is_namespace: false,
            trees: Vec::new(),
            members: Vec::new(),
            member_pids: HashSet::new(),
            has_new_tree: false,
            strangers: Vec::new(),
            switches_turn: Turn::FIRST,
            listing: Vec::new(),
        }
    }

    /// One tree: everything in the PID namespace that `procfs` shows, except its init.
    pub fn of_namespace(procfs: Procfs, tree: Tree) -> Self {
        let mut scope = Self::of_trees(procfs);
        scope.is_namespace = true;
        scope.add_tree(tree);
        scope
    }

    pub fn add_tree(&mut self, tree: Tree) {
        // Who was a stranger may belong to the new tree.
        self.strangers.clear();
        self.has_new_tree = true;
        self.trees.push(tree);
    }

    /// The tree of that name.
    pub fn tree(&mut self, name: &str) -> Option<&mut Tree> {
        self.trees.iter_mut().find(|tree| tree.name == name)
    }

    /// Forgets the tree of that name. False: there is none.
    pub fn remove_tree(&mut self, name: &str) -> bool {
        let Some(index) = self.trees.iter().position(|tree| tree.name == name) else {
            return false;
        };
        self.trees.remove(index);
        self.members.retain_mut(|member| {
            let stays = member.tree != index;
            if !stays {
                self.member_pids.remove(&member.pid);
            }
            if member.tree > index {
                member.tree -= 1;
            }
            stays
        });
        true
    }

    pub fn has_trees(&self) -> bool {
        !self.trees.is_empty()
    }

    /// Whether any process of any tree was alive at the last sweep.
    pub fn has_processes(&self) -> bool {
        self.trees.iter().any(|tree| tree.processes > 0)
    }

    /// Reads every tree once and appends its figures to `groups`.
    pub fn sweep(&mut self, sweep: &mut Sweep<'_>, groups: &mut Vec<Group>) -> Result<(), Error> {
        if std::mem::take(&mut self.has_new_tree) || sweep.may_have_new {
            self.procfs
                .processes(&mut self.listing)
                .map_err(|error| Error::Unreadable("/proc".to_owned(), error.into()))?;
            self.discover();
        }
        self.read_members(sweep);
        if sweep.depth.threads {
            self.read_threads(sweep);
        }
        if sweep.depth.slow {
            self.read_switches(sweep);
            self.read_slowly(sweep);
        }
        for index in 0..self.trees.len() {
            let extras = self.extras(index, sweep);
            self.trees[index].read_account(&mut self.procfs);
            let members = self.members.iter().filter(|member| member.tree == index);
            groups.push(self.trees[index].figures(members, extras));
        }
        Ok(())
    }

    /// Makes members of the new processes that belong to a tree, and strangers of the others.
    fn discover(&mut self) {
        let mut strangers = Vec::new();
        let mut unknown: Vec<Member> = Vec::new();
        for &pid in &self.listing {
            if self.member_pids.contains(&pid) {
                continue;
            }
            if self.strangers.binary_search(&pid).is_ok() {
                strangers.push(pid);
                continue;
            }
            unknown.extend(Member::open(&mut self.procfs, pid));
        }
        // A parent may have a higher PID than its child once PIDs have wrapped, so go round until nobody finds a tree any more.
        loop {
            let before = unknown.len();
            let mut remaining = Vec::new();
            for mut member in unknown {
                match self.tree_of(&member) {
                    Some((tree, is_root)) => {
                        member.tree = tree;
                        member.is_root = is_root;
                        self.member_pids.insert(member.pid);
                        self.members.push(member);
                    }
                    None => remaining.push(member),
                }
            }
            unknown = remaining;
            if unknown.len() == before {
                break;
            }
        }
        if !unknown.is_empty() || strangers.len() != self.strangers.len() {
            strangers.extend(unknown.iter().map(|member| member.pid));
            strangers.sort_unstable();
            self.strangers = strangers;
        }
    }

    /// The tree a process belongs to, and whether it is the root.
    fn tree_of(&self, member: &Member) -> Option<(usize, bool)> {
        let as_root = self.trees.iter().position(|tree| tree.root == member.pid);
        if let Some(tree) = as_root {
            return Some((tree, true));
        }
        if self.is_namespace {
            return Some((0, false));
        }
        let parent = member.stat.parent;
        if !self.member_pids.contains(&parent) {
            return None;
        }
        let parent = self.members.iter().find(|member| member.pid == parent)?;
        Some((parent.tree, false))
    }

    /// Reads every member again, parents first, and drops those that ended.
    fn read_members(&mut self, sweep: &mut Sweep<'_>) {
        let (trees, member_pids, procfs) =
            (&mut self.trees, &mut self.member_pids, &mut self.procfs);
        self.members.retain_mut(|member| {
            let is_accounted = trees[member.tree].account.is_some();
            let is_alive = match sweep.depth.has_sums(member.stat.threads, is_accounted) {
                true => member.read(procfs),
                false => member.glance(procfs),
            };
            if is_alive {
                return true;
            }
            member_pids.remove(&member.pid);
            if member.is_root {
                let tree = &mut trees[member.tree];
                tree.departed.add(&member.used(tree.counts_root));
            }
            false
        });
    }

    fn read_threads(&mut self, sweep: &mut Sweep<'_>) {
        let before = thread_cpu();
        for member in &mut self.members {
            let tree = &mut self.trees[member.tree];
            if !tree.has_alive(member) {
                continue;
            }
            let mut of_process = ThreadSweep {
                procfs: &mut self.procfs,
                pools: &mut tree.pools,
                limits: sweep.limits,
                now_ns: sweep.now_ns,
                turn: sweep.turn,
                keep_below: sweep.keep_below,
                counts_from_birth: tree.has_swept_threads,
            };
            let count = member.stat.threads;
            member.threads.sweep(member.pid, count, &mut of_process);
            sweep.threads_cost.1 += count;
        }
        sweep.threads_cost.0 += thread_cpu().saturating_sub(before);
        for tree in &mut self.trees {
            tree.has_swept_threads = true;
        }
    }

    fn read_switches(&mut self, sweep: &mut Sweep<'_>) {
        let wanting = self
            .members
            .iter()
            .map(|one| one.threads.wanting_switches());
        let wanting: u64 = wanting.sum();
        self.switches_turn = self.switches_turn.next(wanting.div_ceil(MOST_SWITCHES));
        let turn = (!sweep.depth.full).then_some(self.switches_turn);
        for member in &mut self.members {
            let total = &mut self.trees[member.tree].switches;
            let (pid, procfs) = (member.pid, &mut self.procfs);
            member.threads.add_switches(pid, turn, procfs, total);
        }
    }

    /// Reads bytes, descriptors and cgroups of every member.
    fn read_slowly(&mut self, sweep: &mut Sweep<'_>) {
        for tree in &mut self.trees {
            tree.io_is_readable = true;
            tree.descriptors = Some(0);
        }
        let mut cgroups = HashSet::new();
        for member in &mut self.members {
            let tree = &mut self.trees[member.tree];
            member.threads.forget_descriptors();
            // Of the root of which only the children count, too: they hand what they had to it.
            if member.read_io(&mut self.procfs).is_err() && tree.counts(member) {
                tree.io_is_readable = false;
                sweep.limits.insert(FOREIGN_PROCESS);
            }
            if !tree.has_alive(member) {
                continue;
            }
            let open = member.descriptors(&mut self.procfs, &mut self.listing).ok();
            tree.descriptors = tree.descriptors.zip(open).map(|(sum, open)| sum + open);
            let cgroup = self.procfs.read(format_args!("{}/cgroup", member.pid));
            let folder = cgroup.ok().and_then(|text| sweep.cgroups.folder_of(text));
            cgroups.extend(folder.map(|folder| (member.tree, folder)));
        }
        for (tree, folder) in cgroups {
            self.trees[tree].cgroups.read(folder);
        }
    }

    /// What only some sweeps read of a tree.
    fn extras(&mut self, index: usize, sweep: &mut Sweep<'_>) -> Extras {
        let mut extras = Extras::default();
        if sweep.depth.memory {
            extras.memory = self.memory(index, sweep);
        }
        if sweep.depth.slow {
            let tree = &self.trees[index];
            let members = self.members.iter().filter(|member| member.tree == index);
            let alive = members.flat_map(|member| member.threads.pools());
            extras.threads_by_state = Some(tree.pools.times(alive));
            extras.network = self.network(index, sweep);
        }
        extras
    }

    /// Proportional memory, one process at a time. None where that of a member may not be read or is too
    /// dear: a sum without it would be wrong, not partial.
    fn memory(&mut self, index: usize, sweep: &mut Sweep<'_>) -> Option<Memory> {
        let tree = &self.trees[index];
        let mut sum = Memory::default();
        for member in self.members.iter().filter(|member| member.tree == index) {
            if !tree.has_alive(member) {
                continue;
            }
            if !sweep.depth.full && member.rss_bytes() > DEAR_MEMORY_BYTES {
                return None;
            }
            let Ok(memory) = member.memory(&mut self.procfs) else {
                sweep.limits.insert(FOREIGN_PROCESS);
                return None;
            };
            sum.pss_bytes += memory.pss_bytes;
            sum.private_bytes += memory.private_bytes;
            sum.swap_bytes += memory.swap_bytes;
        }
        Some(sum)
    }

    /// The tree's network namespace, if it is not the observer's: that of its first process.
    fn network(&mut self, index: usize, sweep: &Sweep<'_>) -> Option<Network> {
        let (tree, procfs) = (&mut self.trees[index], &mut self.procfs);
        let open = tree.network.take();
        let mut members = self.members.iter().filter(|member| member.tree == index);
        let pid = members.find(|member| tree.has_alive(member))?.pid;
        let link = procfs.link(format_args!("{pid}/ns/net")).ok()?;
        if link == sweep.own_network {
            return None;
        }
        let open = match open {
            Some(open) if open.is(link) => open,
            _ => {
                let link = link.to_vec();
                OpenNetwork::of(procfs, pid, &link)?
            }
        };
        tree.network.insert(open).read(procfs, pid)
    }
}
