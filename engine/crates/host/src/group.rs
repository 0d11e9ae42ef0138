//! A group: one started server with its init, and the commands that wait for its start or its exit.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit};
use weir_sys::clock::monotonic_ns;

use crate::cgroup::Cgroup;
use crate::command::Start;
use crate::isolation::Isolation;
use crate::launch::Launch;
use crate::link::{ExitReport, Link, ToHost, ToInit};
use crate::record::ServerExit;
use weir_sys::process::{self as sys, Reaped, Usage};

/// Time for an init to kill its descendants before the host kills the init.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The last signal of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillStage {
    /// SIGTERM to the server.
    Term,
    /// The init kills all its descendants.
    Kill,
    /// SIGKILL to the init.
    KillInit,
}

/// A stop under way.
#[derive(Debug)]
pub struct Stopping {
    /// The `stop` command. `None`: the host is ending.
    pub id: Option<u64>,
    stage: KillStage,
    /// Time of the next stage.
    deadline: Instant,
}

/// One started process.
pub struct Group {
    pub name: String,
    pub tier: String,
    pub init: i32,
    /// The `start` command, until its server has started or failed.
    pub start_id: Option<u64>,
    pub stopping: Option<Stopping>,
    /// Set once the init is gone. Without namespaces its orphans may still run.
    pub reaped: Option<Reaped>,
    isolation: Isolation,
    /// Removed with this value, after the group's processes.
    pub cgroup: Cgroup,
    link: Link,
    report: Option<ExitReport>,
    has_failed: bool,
}

/// Starts an init. Returns its PID and the host's end of its socket.
pub fn spawn_init(program: &Path, isolation: Isolation, own_namespace: &OwnedFd) -> io::Result<(i32, Link)> {
    let (here, there) = UnixStream::pair()?;
    // The kernel translates the PID in a message's credentials into this side's PID namespace.
    rustix::net::sockopt::set_socket_passcred(&here, true)?;
    let mut command = Command::new(program);
    command
        .arg0("weir-engine")
        .arg("init")
        .stdin(Stdio::from(OwnedFd::from(there)))
        .stdout(Stdio::null())
        // A terminal sends SIGINT for Ctrl-C to the host alone.
        .process_group(0);
    let child = match isolation {
        Isolation::Namespace => sys::spawn_in_pid_namespace(&mut command, own_namespace.as_fd())?,
        Isolation::ProcessGroup => command.spawn()?,
    };
    Ok((sys::child_pid(&child), Link::new(here.into())))
}

impl Group {
    /// Starts an init and sends it the server's command. `open_files` is the limit on open files for the server.
    pub fn start(
        id: u64,
        start: Start,
        cgroup: Cgroup,
        program: &Path,
        isolation: Isolation,
        own_namespace: &OwnedFd,
        open_files: Rlimit,
    ) -> io::Result<Self> {
        let (init, link) = spawn_init(program, isolation, own_namespace)?;
        // Before the init starts anything: the host raised its own limit for its observer. An error means that the init
        // is gone.
        let _ = rustix::process::prlimit(sys::pid(init), Resource::Nofile, open_files);
        let group = Self {
            name: start.name.clone(),
            tier: start.tier.clone(),
            init,
            start_id: Some(id),
            stopping: None,
            reaped: None,
            isolation,
            cgroup,
            link,
            report: None,
            has_failed: false,
        };
        // A send fails if the init is gone. The loop then reaps and reports it.
        let launch = Launch { start, isolation, cgroup_procs: group.cgroup.procs_files() };
        let _ = group.link.send(&ToInit::Start(Box::new(launch)), None);
        Ok(group)
    }

    /// Returns whether the group has this name. A failed group has none, although its init may live a moment longer.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name && !self.has_failed
    }

    /// Returns whether the program never ran.
    pub fn has_failed(&self) -> bool {
        self.has_failed || self.start_id.is_some()
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Reads the init's messages. Returns those that confirm or refuse the start.
    pub fn receive_events(&mut self) -> io::Result<Vec<ToHost>> {
        let mut events = Vec::new();
        while self.link.receive(false)? {
            // After each read, because the credentials belong to its messages.
            while let Some(message) = self.link.next() {
                let mut message = message?;
                match &mut message {
                    ToHost::Started { pid, .. } => {
                        if self.isolation == Isolation::Namespace {
                            *pid = self.link.sender().unwrap_or(*pid);
                        }
                    }
                    ToHost::Failed { .. } => self.has_failed = true,
                    ToHost::Ended(report) => {
                        self.report = Some(std::mem::take(report));
                        continue;
                    }
                    ToHost::Ready | ToHost::Network(_) => continue,
                }
                events.push(message);
            }
        }
        Ok(events)
    }

    /// Starts a stop: SIGTERM now, SIGKILL after `grace`.
    pub fn stop(&mut self, id: Option<u64>, grace: Duration) {
        let _ = self.link.send(&ToInit::Stop, None);
        self.stopping = Some(Stopping { id, stage: KillStage::Term, deadline: Instant::now() + grace });
    }

    /// Ends the grace period of a stop.
    pub fn expire_grace(&mut self) {
        if let Some(stopping) = &mut self.stopping {
            stopping.deadline = Instant::now();
        }
    }

    /// Returns the time of the next [`Self::escalate`]. Returns `None` if no stage is left.
    pub fn deadline(&self) -> Option<Instant> {
        let stopping = self.stopping.as_ref()?;
        let may_escalate = self.reaped.is_none() && stopping.stage != KillStage::KillInit;
        may_escalate.then_some(stopping.deadline)
    }

    /// Moves an overdue stop to its next stage.
    pub fn escalate(&mut self, now: Instant) {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        if stopping.stage == KillStage::Term && self.link.send(&ToInit::Kill, None).is_ok() {
            stopping.stage = KillStage::Kill;
            stopping.deadline = now + KILL_TIMEOUT;
        } else {
            stopping.stage = KillStage::KillInit;
            // The init is not reaped yet, so the PID is still its own.
            if let Some(init) = sys::pid(self.init) {
                let _ = rustix::process::kill_process(init, rustix::process::Signal::KILL);
            }
        }
    }

    /// Returns whether the group may have orphans: its init ended before it killed its descendants.
    pub fn may_have_orphans(&self) -> bool {
        self.isolation == Isolation::ProcessGroup && self.reaped.is_some() && self.report.is_none() && !self.has_failed
    }

    /// Returns the server's exit, and whether the host killed it. Call this once the init is reaped. `orphans`: usage
    /// of the processes that the host itself reaped.
    pub fn exit(&self, orphans: Usage) -> (ServerExit, bool) {
        let reaped = self.reaped.as_ref();
        let total = reaped.map(|reaped| reaped.usage).unwrap_or_default();
        // Without a report the init was killed, and its server with it.
        let report = self.report.clone().unwrap_or_else(|| ExitReport {
            signal: reaped.and_then(|reaped| reaped.signal).or(Some(libc::SIGKILL)),
            t_ns: monotonic_ns(),
            ..ExitReport::default()
        });
        let signal = report.signal;
        let exit = ServerExit {
            name: self.name.clone(),
            t_ns: report.t_ns,
            exit_code: report.exit_code,
            signal,
            cpu_user_s: (total.user_s - report.own_user_s).max(0.0) + orphans.user_s,
            cpu_system_s: (total.system_s - report.own_system_s).max(0.0) + orphans.system_s,
            peak_rss_bytes: total.peak_rss_bytes.max(orphans.peak_rss_bytes),
            oom_kills: self.cgroup.oom_kills(),
            left_behind: report.left_behind,
            written: report.written,
        };
        let forced = self.stopping.as_ref().is_some_and(|stopping| stopping.stage != KillStage::Term);
        (exit, forced && signal == Some(libc::SIGKILL))
    }
}
