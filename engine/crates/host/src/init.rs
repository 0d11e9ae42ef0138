//! An init: the parent of one server. It starts the server, forwards signals, reaps, and ends after all its
//! descendants.
//!
//! The init kills and reaps all descendants itself. At the end of a PID namespace the kernel would kill them too, but
//! drop their CPU time.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::Signal;
use rustix::time::Timespec;
use weir_observe::own_descendants;
use weir_sys::clock::monotonic_ns;

use crate::isolation::Isolation;
use crate::launch::{self, Failure, Launch};
use crate::link::{ExitReport, Link, ToHost, ToInit};
use crate::network;
use crate::writes::Writes;
use crate::{Attempting, Error};
use weir_sys::process::{self as sys, Child, Reaped, SignalFd, Usage, UsageScope};

/// Time for the other processes to end after the server and its SIGTERM.
const DESCENDANTS_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs an init until its server has ended. The host has the other end of `socket`.
pub fn run(socket: OwnedFd) -> Result<(), Error> {
    if !rustix::net::sockopt::socket_domain(&socket).is_ok_and(|domain| domain == rustix::net::AddressFamily::UNIX) {
        return Err(Error::NotStartedByHost);
    }
    // If the host has died before this call, the socket is closed.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).attempting("prctl(PR_SET_PDEATHSIG)")?;
    let signals = SignalFd::new(&[sys::SIGCHLD, sys::SIGTERM, sys::SIGINT, sys::SIGHUP]).attempting("signalfd")?;
    let mut link = Link::new(socket);
    let first = loop {
        if let Some(message) = link.next() {
            break message.attempting("the host's first message")?;
        }
        if link.is_closed() {
            return Ok(());
        }
        link.receive(true).attempting("reading from the host")?;
    };
    let reply = match first {
        ToInit::Probe => match enter_namespaces() {
            Ok(()) => ToHost::Ready,
            Err(failure) => failed(failure),
        },
        ToInit::ProbeNetwork => ToHost::Network(network::probe()),
        ToInit::Start(launch) => {
            let isolation = launch.isolation;
            let started = prepare(isolation).and_then(|()| {
                let network = launch.start.network.as_ref();
                let address = network.map(network::enter).transpose()?;
                let writes = watch_writes(&launch)?;
                Ok((launch::launch(&launch)?, address, writes))
            });
            match started {
                Ok((pid, address, writes)) => {
                    let init = Init {
                        link,
                        signals,
                        isolation,
                        server: pid,
                        address,
                        tools: sys::usage(UsageScope::EndedChildren),
                        writes,
                        received_term: false,
                    };
                    return init.run();
                }
                Err(failure) => failed(failure),
            }
        }
        ToInit::Stop | ToInit::Kill => return Ok(()),
    };
    // A host that is gone needs no reply.
    let _ = link.send(&reply, None);
    Ok(())
}

fn failed(Failure { message, hint }: Failure) -> ToHost {
    ToHost::Failed { message, hint }
}

/// Watches the server's writes if the command asks for it and the server has mounts of its own.
fn watch_writes(launch: &Launch) -> Result<Option<Writes>, Failure> {
    if !launch.start.watch_writes || launch.isolation != Isolation::Namespace {
        return Ok(None);
    }
    let writes = Writes::watch(&launch.start);
    let refused = |error| Failure::new(format!("watch_writes: fanotify: {error}"), "it takes root");
    writes.map(Some).map_err(refused)
}

fn prepare(isolation: Isolation) -> Result<(), Failure> {
    match isolation {
        Isolation::Namespace => enter_namespaces(),
        Isolation::ProcessGroup => {
            // This init must outlive a killed host until it has killed its descendants. The closed socket starts that.
            rustix::process::set_parent_process_death_signal(None)
                .and_then(|()| rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1)))
                .map_err(|error| Failure::new(format!("prctl(PR_SET_CHILD_SUBREAPER): {error}"), ""))
        }
    }
}

/// Leaves the host's mount and IPC namespaces, and mounts /proc and /dev/shm of the new ones.
fn enter_namespaces() -> Result<(), Failure> {
    let refused = |what: &str| {
        let what = what.to_owned();
        move |error: Errno| Failure::new(format!("{what}: {error}"), "")
    };
    sys::unshare_mounts_and_ipc().map_err(refused("unshare(CLONE_NEWNS | CLONE_NEWIPC)"))?;
    // Otherwise the mounts below would also appear in the host's namespace.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(refused("making mounts private"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // The old /proc shows the PIDs of the host's namespace.
    rustix::mount::mount("proc", "/proc", "proc", flags, None).map_err(refused("mounting /proc"))?;
    if Path::new("/dev/shm").is_dir() {
        // POSIX shared memory lies here as files. A killed database leaves them, and an IPC namespace does not cover
        // them.
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("tmpfs", "/dev/shm", "tmpfs", flags, Some(c"mode=1777"))
            .map_err(refused("mounting /dev/shm"))?;
    }
    Ok(())
}

/// An init with a running server.
struct Init {
    link: Link,
    signals: SignalFd,
    isolation: Isolation,
    server: i32,
    /// The server's address in its own network.
    address: Option<Ipv4Addr>,
    /// Usage of the tools that set up the network.
    tools: Usage,
    /// Files that the server writes outside its folder.
    writes: Option<Writes>,
    /// Whether the server received SIGTERM, and no SIGKILL since.
    received_term: bool,
}

impl Init {
    fn run(mut self) -> Result<(), Error> {
        let started = ToHost::Started { pid: self.server, t_ns: monotonic_ns(), address: self.address };
        // Credentials with another PID need CAP_SYS_ADMIN. Without namespaces the PID needs no translation.
        let named = (self.isolation == Isolation::Namespace).then_some(self.server);
        if self.link.send(&started, named).is_err() {
            self.end_everything();
            return Ok(());
        }
        loop {
            let mut waits = vec![PollFd::new(&self.link, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            if let Some(writes) = &self.writes {
                waits.push(PollFd::new(writes, PollFlags::IN));
            }
            match poll(&mut waits, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).attempting("poll"),
            }
            if let Some(writes) = &mut self.writes {
                writes.read_events();
            }
            if self.is_host_gone()? {
                self.end_everything();
                return Ok(());
            }
            if let Some(server) = self.handle_signals()? {
                let left_behind = self.left_behind();
                self.end_everything();
                let own = sys::usage(UsageScope::Own);
                let report = ToHost::Ended(ExitReport {
                    exit_code: server.exit_code,
                    signal: server.signal,
                    t_ns: monotonic_ns(),
                    own_user_s: own.user_s + self.tools.user_s,
                    own_system_s: own.system_s + self.tools.system_s,
                    left_behind,
                    written: self.writes.as_mut().map(Writes::existing),
                });
                let _ = self.link.send(&report, None);
                return Ok(());
            }
        }
    }

    /// Handles the host's messages. Returns whether the host is gone.
    fn is_host_gone(&mut self) -> Result<bool, Error> {
        while self.link.receive(false).attempting("reading from the host")? {}
        while let Some(message) = self.link.next() {
            match message.attempting("a message of the host")? {
                ToInit::Stop => {
                    self.received_term = true;
                    self.signal_server(Signal::TERM);
                }
                ToInit::Kill => {
                    self.received_term = false;
                    sys::kill_each(&own_descendants(&[]));
                }
                ToInit::Probe | ToInit::ProbeNetwork | ToInit::Start(_) => {}
            }
        }
        Ok(self.link.is_closed())
    }

    /// Forwards signals and reaps. Returns the server once it has ended.
    fn handle_signals(&mut self) -> Result<Option<Reaped>, Error> {
        while let Some(signal) = self.signals.next() {
            match signal {
                sys::SIGTERM => self.signal_server(Signal::TERM),
                sys::SIGINT => self.signal_server(Signal::INT),
                sys::SIGHUP => self.signal_server(Signal::HUP),
                _ => {}
            }
        }
        while let Child::Ended(reaped) = sys::reap().attempting("wait4")? {
            if reaped.pid == self.server {
                return Ok(Some(reaped));
            }
        }
        Ok(None)
    }

    /// Signals the server's process group, which the server leads. The server is not reaped yet, so the PID is still
    /// its own.
    fn signal_server(&self, signal: Signal) {
        if let Some(server) = sys::pid(self.server) {
            let _ = rustix::process::kill_process_group(server, signal);
        }
    }

    /// Returns the names of the processes that still run 1 s after the server ended by SIGTERM. They received SIGTERM
    /// too.
    fn left_behind(&self) -> Vec<String> {
        if !self.received_term {
            return Vec::new();
        }
        let deadline = Instant::now() + DESCENDANTS_TIMEOUT;
        loop {
            if !reap_all() {
                return Vec::new();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.wait_for_signal(left);
        }
        own_descendants(&[])
            .into_iter()
            .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok())
            .map(|name| name.trim_end().to_owned())
            .collect()
    }

    /// Kills and reaps until no child is left. The children of a killed process become children of this one.
    fn end_everything(&self) {
        let mut timeout = Duration::from_millis(5);
        while reap_all() {
            sys::kill_each(&own_descendants(&[]));
            // Usually SIGCHLD ends the wait. The timeout is for a process that was forked while the others were being
            // listed.
            self.wait_for_signal(timeout);
            timeout = (timeout * 2).min(Duration::from_millis(500));
        }
    }

    /// Waits for a signal, and discards all that have arrived.
    fn wait_for_signal(&self, timeout: Duration) {
        let mut waits = [PollFd::new(&self.signals, PollFlags::IN)];
        let timeout = Timespec::try_from(timeout).ok();
        let _ = poll(&mut waits, timeout.as_ref());
        while self.signals.next().is_some() {}
    }
}

/// Reaps all ended children. Returns whether children are left.
fn reap_all() -> bool {
    loop {
        match sys::reap() {
            Ok(Child::Ended(_)) => {}
            Ok(Child::AllAlive) => return true,
            Ok(Child::None) | Err(_) => return false,
        }
    }
}
