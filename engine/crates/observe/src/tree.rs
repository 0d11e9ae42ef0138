//! A group: a process tree's name, and what must outlive single readings of its members.

use crate::account::Account;
use crate::counters::Counters;
use crate::member::Member;
use crate::network::OpenNetwork;
use crate::parse::Memory;
use crate::pools::Pools;
use crate::procfs::Procfs;
use crate::sample::{Group, Network, PoolTimes};
use crate::threads::Switches;
use crate::throttling::SeenCgroups;

/// One process tree.
#[derive(Default)]
pub struct Tree {
    pub name: String,
    pub tier: String,
    /// The process it hangs from.
    pub root: i32,
    /// Whether the root's own figures belong to the group; of an init only its children's do.
    pub counts_root: bool,
    /// The kernel's own sum of its CPU time, where there is one.
    pub account: Option<Account>,
    /// What a root had used when it ended: nobody in the group inherits it.
    pub departed: Counters,
    /// The largest totals reported so far.
    reported: Counters,
    /// Whether the bytes of all members may be read.
    pub io_is_readable: bool,
    pub switches: Switches,
    pub descriptors: Option<u64>,
    pub cgroups: SeenCgroups,
    /// Its network namespace, if that is not the observer's; kept no longer than its processes, as of the last sweep that read it.
    pub network: Option<OpenNetwork>,
    pub pools: Pools,
    /// Its threads have been looked at before.
    pub has_swept_threads: bool,
    /// Processes alive at the last sweep.
    pub processes: u64,
}

/// What only some sweeps read.
#[derive(Default)]
pub struct Extras {
    pub memory: Option<Memory>,
    pub network: Option<Network>,
    pub threads_by_state: Option<Vec<PoolTimes>>,
}

impl Tree {
    pub fn new(name: String, tier: String, root: i32, counts_root: bool) -> Self {
        Self {
            name,
            tier,
            root,
            counts_root,
            ..Self::default()
        }
    }

    /// Reads the account, if there is one.
    pub fn read_account(&mut self, procfs: &mut Procfs) {
        if let Some(account) = &mut self.account {
            account.read(procfs);
        }
    }

    /// Whether a member's own figures belong to the group.
    pub fn counts(&self, member: &Member) -> bool {
        self.counts_root || !member.is_root
    }

    /// Whether a member is alive and belongs to the group.
    pub fn has_alive(&self, member: &Member) -> bool {
        self.counts(member) && !member.stat.is_zombie()
    }

    /// Sums the members up. Totals are never allowed to fall.
    pub fn figures<'a>(
        &mut self,
        members: impl Iterator<Item = &'a Member>,
        extras: Extras,
    ) -> Group {
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        let mut used = self.departed;
        let (mut processes, mut threads, mut rss_bytes) = (0, 0, 0);
        let mut has_sums = true;
        for member in members {
            used.add(&member.used(self.counts(member)));
            has_sums &= member.has_sums;
            if self.has_alive(member) {
                processes += 1;
                threads += member.stat.threads;
                rss_bytes += member.rss_bytes();
            }
        }
        self.processes = processes;
        self.reported.raise_to(&used);
        let total = &self.reported;
        let in_ticks = |ticks: u64| ticks as f64 / ticks_per_second;
        let account = self.account.as_ref();
        let (cpu_user_s, cpu_system_s) = account.map_or_else(
            || (in_ticks(total.user_ticks), in_ticks(total.system_ticks)),
            Account::cpu_s,
        );
        let throttled = self.cgroups.total();
        let bytes = |value: u64| self.io_is_readable.then_some(value);
        Group {
            name: self.name.clone(),
            tier: self.tier.clone(),
            processes,
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
