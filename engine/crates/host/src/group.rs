//! One started process as the host sees it: its init, what it said, and what is to be answered when it ends.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit};
use weir_sys::clock::monotonic_ns;

use crate::cgroup::Cgroup;
use crate::command::Start;
use crate::isolation::Isolation;
use crate::launch::Launch;
use crate::link::{Link, ToHost, ToInit};
use crate::record::Outcome;
use weir_sys::process::{self as sys, Reaped, Usage};

/// What an init told to kill everything gets before it is killed itself.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// How far a stop has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Force {
    Term,
    /// The init was told to kill everything.
    Kill,
    /// The init itself was killed.
    KillInit,
}

/// A stop under way.
#[derive(Debug)]
pub struct Stopping {
    /// The command to answer; None: the host is ending.
    pub id: Option<u64>,
    force: Force,
    /// When to use more force.
    deadline: Instant,
}

/// What an init said when its server ended.
struct Ended {
    exit_code: Option<i32>,
    signal: Option<i32>,
    t_ns: u64,
    own_user_s: f64,
    own_system_s: f64,
    left_behind: Vec<String>,
    written: Option<Vec<PathBuf>>,
}

/// What a message means for the host.
pub enum News {
    Started {
        pid: i32,
        t_ns: u64,
        address: Option<Ipv4Addr>,
    },
    Failed {
        message: String,
        hint: String,
    },
}

/// One started process.
pub struct Group {
    pub name: String,
    pub tier: String,
    pub init: i32,
    /// The `start` command, until it is answered.
    pub start_id: Option<u64>,
    pub stopping: Option<Stopping>,
    /// The init is gone; without namespaces its orphans may not be.
    pub reaped: Option<Reaped>,
    isolation: Isolation,
    /// Removed with the group, whose processes are gone then.
    pub cgroup: Cgroup,
    link: Link,
    ended: Option<Ended>,
    has_failed: bool,
}

/// Starts an init and gives the host's end of its socket.
pub fn spawn_init(
    program: &Path,
    isolation: Isolation,
    own_namespace: &OwnedFd,
) -> io::Result<(i32, Link)> {
    let (here, there) = UnixStream::pair()?;
    // The credentials that come with a message name a process as this side's PID namespace sees it.
    rustix::net::sockopt::set_socket_passcred(&here, true)?;
    let mut command = Command::new(program);
    command
        .arg0("weir-engine")
        .arg("init")
        .stdin(Stdio::from(OwnedFd::from(there)))
        .stdout(Stdio::null())
        // What a terminal sends on Ctrl-C is for the host alone.
        .process_group(0);
    let child = match isolation {
        Isolation::Namespace => sys::spawn_in_pid_namespace(&mut command, own_namespace.as_fd())?,
        Isolation::ProcessGroup => command.spawn()?,
    };
    Ok((sys::child_pid(&child), Link::new(here.into())))
}

impl Group {
    /// Starts an init and tells it what to start, with the limit on open files that the host was given.
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
        // Before it starts anything: the host's own limit was raised for its observer. One that is gone is reported like any other.
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
            ended: None,
            has_failed: false,
        };
        // An init that is gone already is reaped and reported like one that goes later.
        let launch = Launch {
            start,
            isolation,
            doors: group.cgroup.doors(),
        };
        let _ = group.link.send(&ToInit::Start(Box::new(launch)), None);
        Ok(group)
    }

    /// Whether commands with this name mean this group. One that was reported as not started has given up its name, though its init may
    /// live a moment longer.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name && !self.has_failed
    }

    /// Whether the program never ran.
    pub fn has_failed(&self) -> bool {
        self.has_failed || self.start_id.is_some()
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Reads what the init has said.
    pub fn listen(&mut self) -> io::Result<Vec<News>> {
        let mut news = Vec::new();
        while self.link.fill(false)? {
            // After each read, because the credentials belong to what was read with them.
            while let Some(message) = self.link.next() {
                match message? {
                    ToHost::Started { pid, t_ns, address } => {
                        let outside = match self.isolation {
                            Isolation::Namespace => self.link.sender(),
                            Isolation::ProcessGroup => Some(pid),
                        };
                        news.push(News::Started {
                            pid: outside.unwrap_or(pid),
                            address,
                            t_ns,
                        });
                    }
                    ToHost::Failed { message, hint } => {
                        self.has_failed = true;
                        news.push(News::Failed { message, hint });
                    }
                    ToHost::Ended {
                        exit_code,
                        signal,
                        t_ns,
                        own_user_s,
                        own_system_s,
                        left_behind,
                        written,
                    } => {
                        self.ended = Some(Ended {
                            exit_code,
                            signal,
                            t_ns,
                            own_user_s,
                            own_system_s,
                            left_behind,
                            written,
                        });
                    }
                    ToHost::Ready | ToHost::Network(_) => {}
                }
            }
        }
        Ok(news)
    }

    /// Begins to stop: SIGTERM now, more after `grace`.
    pub fn stop(&mut self, id: Option<u64>, grace: Duration) {
        let _ = self.link.send(&ToInit::Stop, None);
        self.stopping = Some(Stopping {
            id,
            force: Force::Term,
            deadline: Instant::now() + grace,
        });
    }

    /// No grace any more.
    pub fn hurry(&mut self) {
        if let Some(stopping) = &mut self.stopping {
            stopping.deadline = Instant::now();
        }
    }

    /// When [`Self::press`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let stopping = self.stopping.as_ref()?;
        let may_press = self.reaped.is_none() && stopping.force != Force::KillInit;
        may_press.then_some(stopping.deadline)
    }

    /// Uses more force where the time for it has come.
    pub fn press(&mut self, now: Instant) {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        if stopping.force == Force::Term && self.link.send(&ToInit::Kill, None).is_ok() {
            stopping.force = Force::Kill;
            stopping.deadline = now + KILL_PATIENCE;
        } else {
            stopping.force = Force::KillInit;
            // Not reaped yet, so the number is still its own.
            if let Some(init) = sys::pid(self.init) {
                let _ = rustix::process::kill_process(init, rustix::process::Signal::KILL);
            }
        }
    }

    /// Whether processes of the group may have come to the host: its init ended without having ended them.
    pub fn may_have_orphans(&self) -> bool {
        self.isolation == Isolation::ProcessGroup
            && self.reaped.is_some()
            && self.ended.is_none()
            && !self.has_failed
    }

    /// How it ended, once the init is reaped. `orphans`: what the host itself reaped of the group.
    pub fn outcome(&self, orphans: Usage) -> (Outcome, bool) {
        let reaped = self.reaped.as_ref();
        let total = reaped.map(|reaped| reaped.usage).unwrap_or_default();
        let (exit_code, signal, t_ns, own_user_s, own_system_s) = match &self.ended {
            Some(ended) => (
                ended.exit_code,
                ended.signal,
                ended.t_ns,
                ended.own_user_s,
                ended.own_system_s,
            ),
            // Killed, and its server with it.
            None => (
                None,
                reaped
                    .and_then(|reaped| reaped.signal)
                    .or(Some(libc::SIGKILL)),
                monotonic_ns(),
                0.0,
                0.0,
            ),
        };
        let outcome = Outcome {
            name: self.name.clone(),
            t_ns,
            exit_code,
            signal,
            cpu_user_s: (total.user_s - own_user_s).max(0.0) + orphans.user_s,
            cpu_system_s: (total.system_s - own_system_s).max(0.0) + orphans.system_s,
            peak_rss_bytes: total.peak_rss_bytes.max(orphans.peak_rss_bytes),
            oom_kills: self.cgroup.oom_kills(),
            left_behind: self
                .ended
                .as_ref()
                .map(|ended| ended.left_behind.clone())
                .unwrap_or_default(),
            written: self.ended.as_ref().and_then(|ended| ended.written.clone()),
        };
        let forced = self
            .stopping
            .as_ref()
            .is_some_and(|stopping| stopping.force != Force::Term);
        (outcome, forced && signal == Some(libc::SIGKILL))
    }
}
