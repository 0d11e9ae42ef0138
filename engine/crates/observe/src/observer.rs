//! The groups of one observation and the CPUs of the machine.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags};

use crate::Error;
use crate::parse::{self, CpuTicks};
use crate::sample::{Cpu, Sample};
use crate::scope::Scope;

/// Context switches are counted by thread, a file of 14 us each: 3 ms for 200 threads, which 10 times a second would be 3 % of a CPU.
const SWITCHES_PERIOD: Duration = Duration::from_secs(1);

/// What a sweep reads beyond CPU, processes and resident size.
#[derive(Clone, Copy)]
pub(crate) struct ScopeDepth {
    pub memory: bool,
    pub switches: bool,
}

/// How much a sweep reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// CPU, processes, threads and resident size; context switches once a second.
    Usual,
    /// Everything, proportional memory included: milliseconds per GiB.
    Full,
}

/// The process trees under observation.
pub struct Observer {
    /// Trees among all processes of the machine.
    machine: Scope,
    /// A scope for each group in a PID namespace of its own.
    namespaces: Vec<Scope>,
    cpu_file: OwnedFd,
    text: Vec<u8>,
    switches_due: Instant,
}

impl Observer {
    /// An observer without groups.
    pub fn new() -> Result<Self, Error> {
        let cpu_file = open("/proc/stat", OFlags::empty())?;
        Ok(Self {
            machine: Scope::of_trees(open("/proc", OFlags::DIRECTORY)?),
            namespaces: Vec::new(),
            cpu_file,
            text: vec![0; 64 * 1024],
            switches_due: Instant::now(),
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
        if !std::path::Path::new(&format!("/proc/{root}/stat")).exists() {
            return Err(Error::NoSuchProcess(root));
        }
        self.machine
            .add_tree(name.to_owned(), tier.to_owned(), root, counts_root);
        Ok(())
    }

    /// Adds the PID namespace whose init is `init`, without the init itself. It is read through the procfs mounted inside, where the
    /// other processes of the machine need not be skipped.
    pub fn add_namespace(&mut self, name: &str, tier: &str, init: i32) -> Result<(), Error> {
        let procfs = open(&format!("/proc/{init}/root/proc"), OFlags::DIRECTORY)?;
        let scope = Scope::of_namespace(procfs, name.to_owned(), tier.to_owned());
        self.namespaces.push(scope);
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

    /// Reads every group and every CPU once.
    pub fn sweep(&mut self, reading: Reading) -> Result<Sample, Error> {
        let now = Instant::now();
        let t_ns = monotonic_ns();
        let depth = ScopeDepth {
            memory: reading == Reading::Full,
            switches: reading == Reading::Full || now >= self.switches_due,
        };
        if depth.switches {
            self.switches_due = now + SWITCHES_PERIOD;
        }
        let cpus = self.read_cpus()?;
        let mut groups = Vec::new();
        if self.machine.has_trees() {
            self.machine.sweep(depth, &mut groups)?;
        }
        for scope in &mut self.namespaces {
            scope.sweep(depth, &mut groups)?;
        }
        Ok(Sample {
            record: "sample",
            id: None,
            t_ns,
            groups,
            cpus,
        })
    }

    fn read_cpus(&mut self) -> Result<Vec<Cpu>, Error> {
        let count = rustix::io::pread(&self.cpu_file, &mut self.text[..], 0)
            .map_err(|error| Error::Unreadable("/proc/stat".to_owned(), error.into()))?;
        Ok(parse::cpu_lines(&self.text[..count])
            .map(|(cpu, ticks)| cpu_seconds(cpu, &ticks))
            .collect())
    }
}

fn cpu_seconds(cpu: u32, ticks: &CpuTicks) -> Cpu {
    let seconds = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    let [user, nice, system, idle, iowait, irq, softirq, steal] = *ticks;
    Cpu {
        cpu,
        user_s: seconds(user + nice),
        system_s: seconds(system),
        idle_s: seconds(idle),
        iowait_s: seconds(iowait),
        irq_s: seconds(irq),
        softirq_s: seconds(softirq),
        steal_s: seconds(steal),
    }
}

fn open(path: &str, flags: OFlags) -> Result<OwnedFd, Error> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
        .map_err(|error| Error::Unreadable(path.to_owned(), error.into()))
}

/// CLOCK_MONOTONIC, the time axis of every record.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // The clock begins at zero when the machine starts.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
