//! The threads of one process, and what their time goes to.
//!
//! **Exact**: time on a CPU and time ready to run come from the differences of `schedstat`. **Sampled**: the rest of the time between two
//! sweeps goes to what the thread was found waiting for. A thread that was found running keeps the rest uncredited until it is found
//! waiting. The kernel books time on a CPU some milliseconds late: that makes
//! the rest too large now and too small later, and it is carried over with its sign, so that nothing is counted twice.
//!
//! **Cost**: one read of an open file a thread whose turn it is, 1 to 3 us where the caches are cold. Only of a thread whose schedstat has
//! changed is the `syscall` read: one that did not run is where it was. Threads are listed again only when their number or one of them
//! has changed.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use crate::parse::{self, Schedstat};
use crate::pools::Pools;
use crate::procfs::Procfs;
use crate::sweep::{FOREIGN_PROCESS, Limits, Turn, WITHOUT_SYSCALL};
use crate::thread_state::{self, Look, ThreadState};

/// A thread is often given its name just after it was started.
const FIRST_NAME_NS: u64 = 1_000_000_000;
const NAME_PERIOD_NS: u64 = 10_000_000_000;
/// A thread that has not run for so many readings is read once in
const IDLE_READS: u32 = 10;
/// so many of its turns.
const IDLE_TURNS: u64 = 5;

/// Context switches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Switches {
    pub voluntary: u64,
    pub involuntary: u64,
}

/// What the reading of all threads in one sweep shares.
pub struct ThreadSweep<'a> {
    pub procfs: &'a mut Procfs,
    pub pools: &'a mut Pools,
    pub limits: &'a mut Limits,
    pub now_ns: u64,
    /// Whose turn it is to be read. None: everybody's.
    pub turn: Option<Turn>,
    /// Files stay open only on descriptors below this one.
    pub keep_below: i32,
    /// What threads that are new did before they were seen belongs to the observation.
    pub counts_from_birth: bool,
}

/// Where it is read what a thread waits for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Source {
    #[default]
    Syscall,
    Wchan,
}

/// The threads of one process.
#[derive(Default)]
pub struct Threads {
    /// By number, ascending.
    threads: Vec<Thread>,
    was_listed: bool,
    /// The list is known to be out of date.
    is_stale: bool,
    source: Source,
    /// What waiting on a descriptor is, until [`Threads::forget_descriptors`].
    descriptors: HashMap<u64, ThreadState>,
    listing: Vec<i32>,
}

struct Thread {
    id: i32,
    pool: usize,
    name_due_ns: u64,
    read_ns: u64,
    /// Readings in a row in which it had not run.
    idle_reads: u32,
    schedstat: Option<OwnedFd>,
    syscall: Option<OwnedFd>,
    counted: Schedstat,
    uncredited_ns: i64,
    /// What it was last found waiting for.
    state: ThreadState,
    is_running: bool,
    /// It ran since it was last looked at.
    wants_look: bool,
    /// It ran since its context switches were last read.
    wants_switches: bool,
    switches: Switches,
}

impl Threads {
    /// The pools of the threads that are alive.
    pub fn pools(&self) -> impl Iterator<Item = usize> {
        self.threads.iter().map(|thread| thread.pool)
    }

    /// A descriptor's number may mean something else by now.
    pub fn forget_descriptors(&mut self) {
        self.descriptors.clear();
    }

    /// Reads every thread of process `pid`, which has `count` of them.
    pub fn sweep(&mut self, pid: i32, count: u64, sweep: &mut ThreadSweep<'_>) {
        let (source, descriptors) = (&mut self.source, &mut self.descriptors);
        let known = self.threads.len();
        self.threads.retain_mut(|thread| {
            if !thread.has_turn(sweep.turn) {
                return true;
            }
            let is_alive = thread.count(pid, sweep);
            if is_alive && thread.wants_look {
                thread.look(pid, source, descriptors, sweep);
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

    /// Adds what threads switched since they were last read, of those whose turn it is (None: of all). `status` of a process holds its first thread's alone.
    pub fn add_switches(
        &mut self,
        pid: i32,
        turn: Option<Turn>,
        procfs: &mut Procfs,
        total: &mut Switches,
    ) {
        for thread in &mut self.threads {
            if !thread.wants_switches || turn.is_some_and(|turn| !turn.is_of(thread.id)) {
                continue;
            }
            let text = procfs.read(format_args!("{pid}/task/{}/status", thread.id));
            let Some((voluntary, involuntary)) = text.ok().and_then(parse::context_switches) else {
                continue;
            };
            total.voluntary += voluntary.saturating_sub(thread.switches.voluntary);
            total.involuntary += involuntary.saturating_sub(thread.switches.involuntary);
            thread.switches = Switches {
                voluntary,
                involuntary,
            };
            thread.wants_switches = false;
        }
    }

    /// How many threads ran since their context switches were read.
    pub fn wanting_switches(&self) -> u64 {
        let wanting = self.threads.iter().filter(|thread| thread.wants_switches);
        wanting.count() as u64
    }

    /// Takes up the threads that are new.
    fn list(&mut self, pid: i32, counts_from_birth: bool, sweep: &mut ThreadSweep<'_>) {
        let mut listing = std::mem::take(&mut self.listing);
        if sweep
            .procfs
            .list(format_args!("{pid}/task"), &mut listing)
            .is_ok()
        {
            self.is_stale = false;
            listing.sort_unstable();
            self.threads
                .retain(|thread| listing.binary_search(&thread.id).is_ok());
            let known = self.threads.len();
            for &id in &listing {
                let is_known = self.threads[..known].binary_search_by_key(&id, |thread| thread.id);
                if is_known.is_err() {
                    self.threads
                        .extend(Thread::find(pid, id, counts_from_birth, sweep));
                }
            }
            self.threads.sort_unstable_by_key(|thread| thread.id);
        }
        self.listing = listing;
    }
}

impl Thread {
    /// A thread seen for the first time. None: it has ended.
    fn find(
        pid: i32,
        id: i32,
        counts_from_birth: bool,
        sweep: &mut ThreadSweep<'_>,
    ) -> Option<Self> {
        let pool = pool_of(pid, id, sweep)?;
        let schedstat = sweep
            .procfs
            .open(format_args!("{pid}/task/{id}/schedstat"))
            .ok()?;
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
            schedstat: kept(schedstat, sweep.keep_below),
            syscall: None,
            counted,
            uncredited_ns: 0,
            state: ThreadState::Other,
            is_running: false,
            wants_look: true,
            wants_switches: true,
            switches: Switches::default(),
        })
    }

    /// Whether it is to be read: one that does not run is read more rarely, since it is where it was.
    fn has_turn(&self, turn: Option<Turn>) -> bool {
        turn.is_none_or(|turn| match self.idle_reads {
            0..IDLE_READS => turn.is_of(self.id),
            _ => turn.is_rarely_of(self.id, IDLE_TURNS),
        })
    }

    /// Books what the thread ran and waited for a CPU since it was last read. False: it has ended.
    fn count(&mut self, pid: i32, sweep: &mut ThreadSweep<'_>) -> bool {
        let text = match &self.schedstat {
            Some(file) => sweep.procfs.read_again(file),
            None => sweep
                .procfs
                .read(format_args!("{pid}/task/{}/schedstat", self.id)),
        };
        let Some(now) = text.ok().and_then(parse::schedstat) else {
            return false;
        };
        let run_ns = now.run_ns.saturating_sub(self.counted.run_ns);
        let wait_ns = now.wait_ns.saturating_sub(self.counted.wait_ns);
        sweep.pools.credit(self.pool, ThreadState::OnCpu, run_ns);
        sweep
            .pools
            .credit(self.pool, ThreadState::Runnable, wait_ns);
        let elapsed_ns = sweep.now_ns.saturating_sub(self.read_ns);
        self.read_ns = sweep.now_ns;
        self.uncredited_ns += signed(elapsed_ns) - signed(run_ns) - signed(wait_ns);
        let ran = now != self.counted;
        // One that was ready to run may have done so and gone to wait without anything to show for it yet.
        self.wants_look |= ran || self.is_running;
        self.wants_switches |= ran;
        self.idle_reads = if ran || self.is_running {
            0
        } else {
            self.idle_reads.saturating_add(1)
        };
        self.counted = now;
        if sweep.now_ns >= self.name_due_ns {
            self.name_due_ns = sweep.now_ns + NAME_PERIOD_NS;
            self.pool = pool_of(pid, self.id, sweep).unwrap_or(self.pool);
        }
        true
    }

    /// Gives the time that is left to what the thread waits for, if that is known.
    fn credit_rest(&mut self, pools: &mut Pools) {
        if self.wants_look || self.is_running {
            return;
        }
        if let Ok(rest_ns @ 1..) = u64::try_from(self.uncredited_ns) {
            pools.credit(self.pool, self.state, rest_ns);
            self.uncredited_ns = 0;
        }
    }

    /// Finds out what it is doing.
    fn look(
        &mut self,
        pid: i32,
        source: &mut Source,
        descriptors: &mut HashMap<u64, ThreadState>,
        sweep: &mut ThreadSweep<'_>,
    ) {
        self.wants_look = false;
        let mut look = Look::Unknown;
        if *source == Source::Syscall {
            match self.read_syscall(pid, sweep) {
                Ok(found) => look = found,
                Err(Errno::PERM | Errno::ACCESS) => {
                    sweep.limits.insert(WITHOUT_SYSCALL);
                    *source = Source::Wchan;
                }
                Err(_) => {}
            }
        }
        if look == Look::Unknown {
            look = self.read_state(pid, *source, sweep);
        }
        self.is_running = look == Look::Running;
        self.state = match look {
            Look::Running => self.state,
            Look::Blocked(state) => state,
            Look::OnDescriptor(number) => *descriptors.entry(number).or_insert_with(|| {
                let target = sweep.procfs.link(format_args!("{pid}/fd/{number}"));
                target.map_or(ThreadState::Other, thread_state::waiting_on)
            }),
            Look::Unknown => ThreadState::Other,
        };
    }

    fn read_syscall(&mut self, pid: i32, sweep: &mut ThreadSweep<'_>) -> Result<Look, Errno> {
        let procfs = &mut *sweep.procfs;
        if let Some(file) = &self.syscall {
            return Ok(thread_state::look_at_syscall(procfs.read_again(file)?));
        }
        let file = procfs.open(format_args!("{pid}/task/{}/syscall", self.id))?;
        let look = thread_state::look_at_syscall(procfs.read_again(&file)?);
        self.syscall = kept(file, sweep.keep_below);
        Ok(look)
    }

    /// From the state's letter, and where the call is not known for want of rights, from the kernel's function.
    fn read_state(&self, pid: i32, source: Source, sweep: &mut ThreadSweep<'_>) -> Look {
        let id = self.id;
        let text = sweep.procfs.read(format_args!("{pid}/task/{id}/stat"));
        match text.ok().and_then(parse::state_letter) {
            Some(b'R') => return Look::Running,
            Some(b'D') => return Look::Blocked(ThreadState::Disk),
            _ if source == Source::Syscall => return Look::Unknown,
            _ => {}
        }
        match sweep.procfs.read(format_args!("{pid}/task/{id}/wchan")) {
            Ok(text) => thread_state::look_at_wchan(text),
            Err(Errno::PERM | Errno::ACCESS) => {
                sweep.limits.insert(FOREIGN_PROCESS);
                Look::Unknown
            }
            Err(_) => Look::Unknown,
        }
    }
}

fn pool_of(pid: i32, id: i32, sweep: &mut ThreadSweep<'_>) -> Option<usize> {
    let name = sweep.procfs.read(format_args!("{pid}/task/{id}/comm"));
    name.ok().map(|name| sweep.pools.index_of(name))
}

/// The file, if its descriptor is one that may be kept: the observer's process needs some for other things.
fn kept(file: OwnedFd, keep_below: i32) -> Option<OwnedFd> {
    (file.as_raw_fd() < keep_below).then_some(file)
}

fn signed(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}
