//! The threads of one process, and the times of their states.
//!
//! **Exact**: time on a CPU and time ready to run are differences of `schedstat`. **Sampled**: the remaining time
//! between two sweeps counts for the state in which the sweep found the thread. A running thread keeps its remaining
//! time until a sweep finds it waiting. The kernel counts time on a CPU some milliseconds late. So the remainder
//! carries over with its sign, which prevents double counting.
//!
//! **Cost**: a sweep reads one open file per thread of its phase, which takes 1 to 3 us with cold caches. It reads
//! `syscall` only if schedstat has changed, because a thread that did not run has the same state. It lists the threads
//! only after their number has changed or a thread has ended.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use crate::budget::{FOREIGN_PROCESS, Limits, SamplingPhase, WITHOUT_SYSCALL};
use crate::parse::{self, Schedstat};
use crate::pools::Pools;
use crate::procfs::Procfs;
use crate::thread_state::{self, Activity, ThreadState};

/// Time until the second read of a thread's name. Programs often name a thread just after its start.
const FIRST_NAME_NS: u64 = 1_000_000_000;
/// Period of reading a thread's name.
const NAME_PERIOD_NS: u64 = 10_000_000_000;
/// Number of reads after which a thread that has not run is idle.
const IDLE_READS: u32 = 10;
/// An idle thread is read once in this number of phases.
const IDLE_PHASES: u64 = 5;

/// Counts of context switches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Switches {
    pub voluntary: u64,
    pub involuntary: u64,
}

/// The shared state of one sweep over the threads of a process.
pub struct ThreadSweep<'a> {
    pub procfs: &'a mut Procfs,
    pub pools: &'a mut Pools,
    pub limits: &'a mut Limits,
    pub now_ns: u64,
    /// The phase whose threads are read. `None`: all threads.
    pub phase: Option<SamplingPhase>,
    /// The first descriptor number that does not stay open.
    pub descriptor_limit: i32,
    /// Whether a new thread's time before its first read counts.
    pub counts_from_birth: bool,
}

/// The file that shows the state of a waiting thread.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum StateSource {
    #[default]
    Syscall,
    Wchan,
}

/// The threads of one process.
#[derive(Default)]
pub struct Threads {
    /// In ascending order of their numbers.
    threads: Vec<Thread>,
    was_listed: bool,
    /// Whether the list is out of date.
    is_stale: bool,
    source: StateSource,
    /// States of threads that wait on a descriptor. [`Threads::forget_descriptors`] clears them.
    descriptors: HashMap<u64, ThreadState>,
    listing: Vec<i32>,
}

struct Thread {
    id: i32,
    pool: usize,
    name_due_ns: u64,
    read_ns: u64,
    /// Number of successive reads without a run.
    idle_reads: u32,
    schedstat: Option<OwnedFd>,
    syscall: Option<OwnedFd>,
    counted: Schedstat,
    uncredited_ns: i64,
    /// The last state in which the thread waited.
    state: ThreadState,
    is_running: bool,
    /// Whether the thread ran since its state was last read.
    needs_state: bool,
    /// Whether the thread ran since its context switches were last read.
    needs_switches: bool,
    switches: Switches,
}

impl Threads {
    /// Returns the pool of each live thread.
    pub fn pools(&self) -> impl Iterator<Item = usize> {
        self.threads.iter().map(|thread| thread.pool)
    }

    /// Clears the states of descriptors, because their numbers may have been used again.
    pub fn forget_descriptors(&mut self) {
        self.descriptors.clear();
    }

    /// Reads the threads of process `pid`, which has `count` of them.
    pub fn sweep(&mut self, pid: i32, count: u64, sweep: &mut ThreadSweep<'_>) {
        let (source, descriptors) = (&mut self.source, &mut self.descriptors);
        let known = self.threads.len();
        self.threads.retain_mut(|thread| {
            if !thread.is_due(sweep.phase) {
                return true;
            }
            let is_alive = thread.count(pid, sweep);
            if is_alive && thread.needs_state {
                thread.update_state(pid, source, descriptors, sweep);
            }
            thread.credit_rest(sweep.pools);
            is_alive
        });
        self.is_stale |= self.threads.len() < known;
        if self.is_stale || self.threads.len() as u64 != count {
            self.list(pid, self.was_listed || sweep.counts_from_birth, sweep);
            self.was_listed = true;
        }
    }

    /// Adds the context switches since the last read, of the threads in `phase` (`None`: of all). The `status` of a
    /// process has those of its first thread only.
    pub fn add_switches(&mut self, pid: i32, phase: Option<SamplingPhase>, procfs: &mut Procfs, total: &mut Switches) {
        for thread in &mut self.threads {
            if !thread.needs_switches || phase.is_some_and(|phase| !phase.includes(thread.id)) {
                continue;
            }
            let text = procfs.read(format_args!("{pid}/task/{}/status", thread.id));
            let Some((voluntary, involuntary)) = text.ok().and_then(parse::context_switches) else {
                continue;
            };
            total.voluntary += voluntary.saturating_sub(thread.switches.voluntary);
            total.involuntary += involuntary.saturating_sub(thread.switches.involuntary);
            thread.switches = Switches { voluntary, involuntary };
            thread.needs_switches = false;
        }
    }

    /// Returns the number of threads that ran since their context switches were read.
    pub fn outdated_switches(&self) -> u64 {
        let outdated = self.threads.iter().filter(|thread| thread.needs_switches);
        outdated.count() as u64
    }

    /// Lists the threads and opens the new ones.
    fn list(&mut self, pid: i32, counts_from_birth: bool, sweep: &mut ThreadSweep<'_>) {
        let mut listing = std::mem::take(&mut self.listing);
        if sweep.procfs.list(format_args!("{pid}/task"), &mut listing).is_ok() {
            self.is_stale = false;
            listing.sort_unstable();
            self.threads.retain(|thread| listing.binary_search(&thread.id).is_ok());
            let known = self.threads.len();
            for &id in &listing {
                let is_known = self.threads[..known].binary_search_by_key(&id, |thread| thread.id);
                if is_known.is_err() {
                    self.threads.extend(Thread::open(pid, id, counts_from_birth, sweep));
                }
            }
            self.threads.sort_unstable_by_key(|thread| thread.id);
        }
        self.listing = listing;
    }
}

impl Thread {
    /// Opens a thread at its first read. Returns `None` if it has ended.
    fn open(pid: i32, id: i32, counts_from_birth: bool, sweep: &mut ThreadSweep<'_>) -> Option<Self> {
        let pool = read_pool(pid, id, sweep)?;
        let schedstat = sweep.procfs.open(format_args!("{pid}/task/{id}/schedstat")).ok()?;
        let counted = parse::schedstat(sweep.procfs.read_again(&schedstat).ok()?)?;
        if counts_from_birth {
            let pools = &mut *sweep.pools;
            pools.credit(pool, ThreadState::OnCpu, counted.run_ns);
            pools.credit(pool, ThreadState::Runnable, counted.wait_ns);
        }
        Some(Self {
            id,
            pool,
            name_due_ns: sweep.now_ns + FIRST_NAME_NS,
            read_ns: sweep.now_ns,
            idle_reads: 0,
            schedstat: keep_open(schedstat, sweep.descriptor_limit),
            syscall: None,
            counted,
            uncredited_ns: 0,
            state: ThreadState::Other,
            is_running: false,
            needs_state: true,
            needs_switches: true,
            switches: Switches::default(),
        })
    }

    /// Returns whether a phase reads the thread. An idle thread is read more rarely.
    fn is_due(&self, phase: Option<SamplingPhase>) -> bool {
        phase.is_none_or(|phase| match self.idle_reads {
            0..IDLE_READS => phase.includes(self.id),
            _ => phase.includes_rarely(self.id, IDLE_PHASES),
        })
    }

    /// Counts the time on a CPU and ready to run since the last read. Returns false if the thread has ended.
    fn count(&mut self, pid: i32, sweep: &mut ThreadSweep<'_>) -> bool {
        let text = match &self.schedstat {
            Some(file) => sweep.procfs.read_again(file),
            None => sweep.procfs.read(format_args!("{pid}/task/{}/schedstat", self.id)),
        };
        let Some(now) = text.ok().and_then(parse::schedstat) else {
            return false;
        };
        let run_ns = now.run_ns.saturating_sub(self.counted.run_ns);
        let wait_ns = now.wait_ns.saturating_sub(self.counted.wait_ns);
        sweep.pools.credit(self.pool, ThreadState::OnCpu, run_ns);
        sweep.pools.credit(self.pool, ThreadState::Runnable, wait_ns);
        let elapsed_ns = sweep.now_ns.saturating_sub(self.read_ns);
        self.read_ns = sweep.now_ns;
        self.uncredited_ns += signed(elapsed_ns) - signed(run_ns) - signed(wait_ns);
        let ran = now != self.counted;
        // A thread that was ready to run may have run meanwhile, although schedstat does not show it yet.
        self.needs_state |= ran || self.is_running;
        self.needs_switches |= ran;
        self.idle_reads = if ran || self.is_running { 0 } else { self.idle_reads.saturating_add(1) };
        self.counted = now;
        if sweep.now_ns >= self.name_due_ns {
            self.name_due_ns = sweep.now_ns + NAME_PERIOD_NS;
            self.pool = read_pool(pid, self.id, sweep).unwrap_or(self.pool);
        }
        true
    }

    /// Counts the remaining time for the state of a waiting thread.
    fn credit_rest(&mut self, pools: &mut Pools) {
        if self.needs_state || self.is_running {
            return;
        }
        if let Ok(rest_ns @ 1..) = u64::try_from(self.uncredited_ns) {
            pools.credit(self.pool, self.state, rest_ns);
            self.uncredited_ns = 0;
        }
    }

    /// Reads the state of the thread.
    fn update_state(
        &mut self,
        pid: i32,
        source: &mut StateSource,
        descriptors: &mut HashMap<u64, ThreadState>,
        sweep: &mut ThreadSweep<'_>,
    ) {
        self.needs_state = false;
        let mut activity = Activity::Unknown;
        if *source == StateSource::Syscall {
            match self.read_syscall(pid, sweep) {
                Ok(found) => activity = found,
                Err(Errno::PERM | Errno::ACCESS) => {
                    sweep.limits.insert(WITHOUT_SYSCALL);
                    *source = StateSource::Wchan;
                }
                Err(_) => {}
            }
        }
        if activity == Activity::Unknown {
            activity = self.read_wait(pid, *source, sweep);
        }
        self.is_running = activity == Activity::Running;
        self.state = match activity {
            Activity::Running => self.state,
            Activity::Blocked(state) => state,
            Activity::OnDescriptor(number) => *descriptors.entry(number).or_insert_with(|| {
                let target = sweep.procfs.link(format_args!("{pid}/fd/{number}"));
                target.map_or(ThreadState::Other, thread_state::classify_descriptor)
            }),
            Activity::Unknown => ThreadState::Other,
        };
    }

    fn read_syscall(&mut self, pid: i32, sweep: &mut ThreadSweep<'_>) -> Result<Activity, Errno> {
        let procfs = &mut *sweep.procfs;
        if let Some(file) = &self.syscall {
            return Ok(thread_state::parse_syscall(procfs.read_again(file)?));
        }
        let file = procfs.open(format_args!("{pid}/task/{}/syscall", self.id))?;
        let activity = thread_state::parse_syscall(procfs.read_again(&file)?);
        self.syscall = keep_open(file, sweep.descriptor_limit);
        Ok(activity)
    }

    /// Returns the activity by the state letter, and by `wchan` if `syscall` is not readable.
    fn read_wait(&self, pid: i32, source: StateSource, sweep: &mut ThreadSweep<'_>) -> Activity {
        let id = self.id;
        let text = sweep.procfs.read(format_args!("{pid}/task/{id}/stat"));
        match text.ok().and_then(parse::state_letter) {
            Some(b'R') => return Activity::Running,
            Some(b'D') => return Activity::Blocked(ThreadState::Disk),
            _ if source == StateSource::Syscall => return Activity::Unknown,
            _ => {}
        }
        match sweep.procfs.read(format_args!("{pid}/task/{id}/wchan")) {
            Ok(text) => thread_state::parse_wchan(text),
            Err(Errno::PERM | Errno::ACCESS) => {
                sweep.limits.insert(FOREIGN_PROCESS);
                Activity::Unknown
            }
            Err(_) => Activity::Unknown,
        }
    }
}

fn read_pool(pid: i32, id: i32, sweep: &mut ThreadSweep<'_>) -> Option<usize> {
    let name = sweep.procfs.read(format_args!("{pid}/task/{id}/comm"));
    name.ok().map(|name| sweep.pools.index_of(name))
}

/// Returns the file if its descriptor is below the limit. Otherwise closes it and returns `None`.
fn keep_open(file: OwnedFd, descriptor_limit: i32) -> Option<OwnedFd> {
    (file.as_raw_fd() < descriptor_limit).then_some(file)
}

fn signed(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}
