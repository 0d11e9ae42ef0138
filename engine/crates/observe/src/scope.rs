//! The process trees seen through one procfs, and the reading of them.
//!
//! **Double counting.** When a child is reaped, its CPU moves to its parent's "children" counters, and the two are read at different
//! moments. Members are therefore kept and read in the order parent before child: a child reaped in between is then missing from one sweep
//! rather than counted twice, and the totals, which are never allowed to fall, show it in the next one. Adopting keeps that order, because
//! orphans go to an ancestor.
//!
//! **Identity.** A member's `stat` stays open. The descriptor belongs to that process for ever, so a PID that is used again reads as ended.
//!
//! **Cost.** Each sweep lists the procfs and reads one open file a member; a file is opened only for a PID never seen before. Nothing is
//! allocated unless processes come or go.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use crate::Error;
use crate::observer::ScopeDepth;
use crate::parse::{self, Memory, ProcessStat};
use crate::sample::Group;

/// Ticks of a group since it began, user and system.
#[derive(Clone, Copy, Default)]
struct Cpu {
    user_ticks: u64,
    system_ticks: u64,
}

/// A group: its root and what must outlive single readings.
pub struct Tree {
    pub name: String,
    pub tier: String,
    root: i32,
    /// Whether the root's own figures belong to the group; of an init only its children's do.
    counts_root: bool,
    /// The largest totals reported so far.
    reported: Cpu,
    /// What a root had used when it ended: nobody in the group inherits it.
    departed: Cpu,
    voluntary_switches: u64,
    involuntary_switches: u64,
    figures: Group,
}

/// A process that belongs to a tree.
struct Member {
    pid: i32,
    /// Index into `trees`.
    tree: usize,
    stat_file: OwnedFd,
    stat: ProcessStat,
    is_root: bool,
    /// By thread, the context switches already counted.
    switches: HashMap<i32, (u64, u64)>,
}

/// One procfs and the trees in it.
pub struct Scope {
    procfs: OwnedFd,
    /// Every process of this procfs is in its only tree: it shows the PID namespace of one group.
    is_namespace: bool,
    trees: Vec<Tree>,
    members: Vec<Member>,
    member_pids: HashSet<i32>,
    /// In ascending order, the PIDs known to belong to no tree.
    strangers: Vec<i32>,
    /// Reused by each sweep.
    listing: Vec<i32>,
    path: String,
    text: Vec<u8>,
}

impl Scope {
    /// Trees among all processes of `procfs`.
    pub fn of_trees(procfs: OwnedFd) -> Self {
        Self {
            procfs,
            is_namespace: false,
            trees: Vec::new(),
            members: Vec::new(),
            member_pids: HashSet::new(),
            strangers: Vec::new(),
            listing: Vec::new(),
            path: String::new(),
            text: vec![0; 16 * 1024],
        }
    }

    /// One tree: everything in the PID namespace that `procfs` shows, except its init.
    pub fn of_namespace(procfs: OwnedFd, name: String, tier: String) -> Self {
        let mut scope = Self::of_trees(procfs);
        scope.is_namespace = true;
        scope.add_tree(name, tier, 1, false);
        scope
    }

    /// The tree below `root`, with or without `root` itself.
    pub fn add_tree(&mut self, name: String, tier: String, root: i32, counts_root: bool) {
        // Who was a stranger may belong to the new tree.
        self.strangers.clear();
        self.trees.push(Tree {
            name,
            tier,
            root,
            counts_root,
            reported: Cpu::default(),
            departed: Cpu::default(),
            voluntary_switches: 0,
            involuntary_switches: 0,
            figures: Group::default(),
        });
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
        self.trees.iter().any(|tree| tree.figures.processes > 0)
    }

    /// Reads every tree once and appends its figures to `groups`.
    pub fn sweep(&mut self, depth: ScopeDepth, groups: &mut Vec<Group>) -> Result<(), Error> {
        self.list()?;
        self.discover();
        self.read_members();
        if depth.switches {
            self.read_switches();
        }
        self.total();
        if depth.memory {
            self.read_memory();
        }
        groups.extend(self.trees.iter().map(|tree| tree.figures.clone()));
        Ok(())
    }

    /// Fills `listing` with the PIDs there are, ascending, as the kernel gives them.
    fn list(&mut self) -> Result<(), Error> {
        let unreadable = |error: Errno| Error::Unreadable("/proc".to_owned(), error.into());
        self.listing.clear();
        rustix::fs::seek(&self.procfs, SeekFrom::Start(0)).map_err(unreadable)?;
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut entries = RawDir::new(&self.procfs, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(unreadable)?;
            if let Some(pid) = pid_of(entry.file_name().to_bytes()) {
                self.listing.push(pid);
            }
        }
        Ok(())
    }

    /// Makes members of the new processes that belong to a tree, and strangers of the others.
    fn discover(&mut self) {
        let mut strangers = Vec::new();
        let mut unknown: Vec<Member> = Vec::new();
        for index in 0..self.listing.len() {
            let pid = self.listing[index];
            if self.member_pids.contains(&pid) {
                continue;
            }
            if self.strangers.binary_search(&pid).is_ok() {
                strangers.push(pid);
                continue;
            }
            if let Some(member) = self.open(pid) {
                unknown.push(member);
            }
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

    fn open(&mut self, pid: i32) -> Option<Member> {
        let path = process_path(&mut self.path, pid, "stat");
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let stat_file = rustix::fs::openat(&self.procfs, path, flags, Mode::empty()).ok()?;
        let stat = read_stat(&stat_file, &mut self.text)?;
        Some(Member {
            pid,
            tree: 0,
            stat_file,
            stat,
            is_root: false,
            switches: HashMap::new(),
        })
    }

    /// Reads every member again, parents first, and drops those that ended.
    fn read_members(&mut self) {
        let (trees, member_pids, text) = (&mut self.trees, &mut self.member_pids, &mut self.text);
        self.members.retain_mut(|member| {
            if let Some(stat) = read_stat(&member.stat_file, text) {
                member.stat = stat;
                return true;
            }
            member_pids.remove(&member.pid);
            if member.is_root {
                let tree = &mut trees[member.tree];
                let used = used(member, tree.counts_root);
                tree.departed.user_ticks += used.user_ticks;
                tree.departed.system_ticks += used.system_ticks;
            }
            false
        });
    }

    /// Sums the members up into their trees' figures.
    fn total(&mut self) {
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        let page_bytes = rustix::param::page_size() as u64;
        for (index, tree) in self.trees.iter_mut().enumerate() {
            let mut cpu = tree.departed;
            let mut figures = Group {
                name: std::mem::take(&mut tree.figures.name),
                tier: std::mem::take(&mut tree.figures.tier),
                ..Group::default()
            };
            figures.name.clone_from(&tree.name);
            figures.tier.clone_from(&tree.tier);
            for member in self.members.iter().filter(|member| member.tree == index) {
                let counts_itself = tree.counts_root || !member.is_root;
                let used = used(member, counts_itself);
                cpu.user_ticks += used.user_ticks;
                cpu.system_ticks += used.system_ticks;
                if counts_itself && !member.stat.is_zombie() {
                    figures.processes += 1;
                    figures.threads += member.stat.threads;
                    figures.rss_bytes += member.stat.resident_pages * page_bytes;
                }
            }
            let reported = &mut tree.reported;
            reported.user_ticks = reported.user_ticks.max(cpu.user_ticks);
            reported.system_ticks = reported.system_ticks.max(cpu.system_ticks);
            figures.cpu_user_s = reported.user_ticks as f64 / ticks_per_second;
            figures.cpu_system_s = reported.system_ticks as f64 / ticks_per_second;
            figures.voluntary_switches = tree.voluntary_switches;
            figures.involuntary_switches = tree.involuntary_switches;
            tree.figures = figures;
        }
    }

    /// Adds what each thread switched since it was last read. `status` of a process holds its first thread's alone.
    fn read_switches(&mut self) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        for member in &mut self.members {
            let tree = &mut self.trees[member.tree];
            if (member.is_root && !tree.counts_root) || member.stat.is_zombie() {
                continue;
            }
            let path = process_path(&mut self.path, member.pid, "task");
            let flags_dir = flags | OFlags::DIRECTORY;
            let Ok(tasks) = rustix::fs::openat(&self.procfs, path, flags_dir, Mode::empty()) else {
                continue;
            };
            let mut buffer = [MaybeUninit::uninit(); 8192];
            let mut entries = RawDir::new(&tasks, &mut buffer);
            let earlier = std::mem::take(&mut member.switches);
            while let Some(Ok(entry)) = entries.next() {
                let Some(thread) = pid_of(entry.file_name().to_bytes()) else {
                    continue;
                };
                let path = process_path(&mut self.path, thread, "status");
                let counted = rustix::fs::openat(&tasks, path, flags, Mode::empty())
                    .ok()
                    .and_then(|file| read_whole(&file, &mut self.text))
                    .and_then(parse::context_switches);
                let Some(counted) = counted else { continue };
                let before = earlier.get(&thread).copied().unwrap_or((0, 0));
                // A thread's number that is used again begins below the earlier one's count.
                let grown = |now: u64, before: u64| if now >= before { now - before } else { now };
                tree.voluntary_switches += grown(counted.0, before.0);
                tree.involuntary_switches += grown(counted.1, before.1);
                member.switches.insert(thread, counted);
            }
        }
    }

    /// Reads proportional memory, one process at a time: the kernel walks its whole page table, 3 to 4 ms per GiB.
    fn read_memory(&mut self) {
        for (index, tree) in self.trees.iter_mut().enumerate() {
            let mut sum = Some(Memory::default());
            for member in self.members.iter().filter(|member| member.tree == index) {
                if (member.is_root && !tree.counts_root) || member.stat.is_zombie() {
                    continue;
                }
                let path = process_path(&mut self.path, member.pid, "smaps_rollup");
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                match rustix::fs::openat(&self.procfs, path, flags, Mode::empty()) {
                    // Empty: the process ended between open and read, or is the kernel's.
                    Ok(file) => {
                        let text = read_whole(&file, &mut self.text).unwrap_or_default();
                        let memory = parse::memory_rollup(text);
                        if let Some(sum) = &mut sum {
                            sum.pss_bytes += memory.pss_bytes;
                            sum.private_bytes += memory.private_bytes;
                            sum.swap_bytes += memory.swap_bytes;
                        }
                    }
                    Err(Errno::NOENT | Errno::SRCH) => {}
                    // Another user's process: a sum without it would be wrong, not partial.
                    Err(_) => sum = None,
                }
                rustix::thread::sched_yield();
            }
            let figures = &mut tree.figures;
            figures.pss_bytes = sum.map(|sum| sum.pss_bytes);
            figures.private_bytes = sum.map(|sum| sum.private_bytes);
            figures.swap_bytes = sum.map(|sum| sum.swap_bytes);
        }
    }
}

/// What a member and its reaped children have used.
fn used(member: &Member, counts_itself: bool) -> Cpu {
    let stat = &member.stat;
    let mut cpu = Cpu {
        user_ticks: stat.children_user_ticks,
        system_ticks: stat.children_system_ticks,
    };
    if counts_itself {
        cpu.user_ticks += stat.user_ticks;
        cpu.system_ticks += stat.system_ticks;
    }
    cpu
}

fn read_stat(file: &OwnedFd, text: &mut [u8]) -> Option<ProcessStat> {
    let count = rustix::io::pread(file, &mut *text, 0).ok()?;
    parse::process_stat(&text[..count])
}

/// Reads up to the buffer's size, which is ample for every file read here.
fn read_whole<'a>(file: &OwnedFd, text: &'a mut [u8]) -> Option<&'a [u8]> {
    let count = rustix::io::pread(file, &mut *text, 0).ok()?;
    Some(&text[..count])
}

/// `PID/name`, in a buffer that is used again.
fn process_path<'a>(path: &'a mut String, pid: i32, name: &str) -> &'a str {
    path.clear();
    // Writing to a String cannot fail.
    let _ = write!(path, "{pid}/{name}");
    path
}

fn pid_of(name: &[u8]) -> Option<i32> {
    i32::try_from(parse::number(name)?).ok()
}
