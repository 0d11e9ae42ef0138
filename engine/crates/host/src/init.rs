//! An init: the parent of one server. It starts it, passes signals on, reaps, and ends only when nothing is left below it.
//!
//! Everything below is killed and reaped here rather than left to the end of the PID namespace: the kernel drops the CPU of processes that
//! it kills with a namespace, and that CPU would be missing from the figures.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::Signal;
use rustix::time::Timespec;
use weir_observe::descendants;
use weir_sys::clock::monotonic_ns;

use crate::isolation::Isolation;
use crate::launch::{self, Failure, Launch};
use crate::link::{Link, ToHost, ToInit};
use crate::network;
use crate::writes::Writes;
use crate::{Attempting, Error};
use weir_sys::process::{self as sys, Child, Reaped, SignalFd, Usage, Whose};

/// What the processes of a server get to end after it when all of them were told to. Only what a careless server has left takes it.
const AFTER_THE_SERVER: Duration = Duration::from_secs(1);

/// Runs an init whose host is at the other end of `socket`, until it may end.
pub fn run(socket: OwnedFd) -> Result<(), Error> {
    if !rustix::net::sockopt::socket_domain(&socket)
        .is_ok_and(|domain| domain == rustix::net::AddressFamily::UNIX)
    {
        return Err(Error::NotStartedByHost);
    }
    // The host may have died already, too early for this to be noticed; the socket is closed then.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .attempting("prctl(PR_SET_PDEATHSIG)")?;
    let signals = SignalFd::new(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
        .attempting("signalfd")?;
    let mut link = Link::new(socket);
    let first = loop {
        if let Some(message) = link.next() {
            break message.attempting("the host's first message")?;
        }
        if link.is_closed() {
            return Ok(());
        }
        link.fill(true).attempting("reading from the host")?;
    };
    let said = match first {
        ToInit::Probe => match enter_namespaces() {
            Ok(()) => ToHost::Ready,
            Err(failure) => failed(failure),
        },
        ToInit::ProbeNetwork => ToHost::Network(network::try_out()),
        ToInit::Start(launch) => {
            let isolation = launch.isolation;
            let started = prepare(isolation).and_then(|()| {
                let network = launch.start.network.as_ref();
                let address = network.map(network::enter).transpose()?;
                let writes = watched(&launch)?;
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
                        tools: sys::usage(Whose::EndedChildren),
                        writes,
                        told_to_end: false,
                    };
                    return init.run();
                }
                Err(failure) => failed(failure),
            }
        }
        ToInit::Stop | ToInit::Kill => return Ok(()),
    };
    // A host that is gone needs no answer.
    let _ = link.send(&said, None);
    Ok(())
}

fn failed(Failure { message, hint }: Failure) -> ToHost {
    ToHost::Failed { message, hint }
}

/// Listens for what the server writes, if that was asked for and it has mounts of its own to listen on.
fn watched(launch: &Launch) -> Result<Option<Writes>, Failure> {
    if !launch.start.watch_writes || launch.isolation != Isolation::Namespace {
        return Ok(None);
    }
    let writes = Writes::of(&launch.start);
    let refused = |error| Failure::new(format!("watch_writes: fanotify: {error}"), "it takes root");
    writes.map(Some).map_err(refused)
}

fn prepare(isolation: Isolation) -> Result<(), Failure> {
    match isolation {
        Isolation::Namespace => enter_namespaces(),
        Isolation::ProcessGroup => {
            // The fallback must outlive its host for as long as it takes to kill what is below; the closed socket tells it to.
            rustix::process::set_parent_process_death_signal(None)
                .and_then(|()| {
                    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))
                })
                .map_err(|error| {
                    Failure::new(format!("prctl(PR_SET_CHILD_SUBREAPER): {error}"), "")
                })
        }
    }
}

/// Leaves the host's mounts and IPC, and mounts what belongs to the new PID namespace.
fn enter_namespaces() -> Result<(), Failure> {
    let refused = |what: &str| {
        let what = what.to_owned();
        move |error: Errno| Failure::new(format!("{what}: {error}"), "")
    };
    sys::unshare_mounts_and_ipc().map_err(refused("unshare(CLONE_NEWNS | CLONE_NEWIPC)"))?;
    // Otherwise the mounts below would appear in the host's namespace too.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(refused("making mounts private"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // The old /proc shows other numbers than getpid() gives.
    rustix::mount::mount("proc", "/proc", "proc", flags, None)
        .map_err(refused("mounting /proc"))?;
    if Path::new("/dev/shm").is_dir() {
        // POSIX shared memory is a file here; a database that is killed leaves it behind, and no IPC namespace covers it.
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("tmpfs", "/dev/shm", "tmpfs", flags, Some(c"mode=1777"))
            .map_err(refused("mounting /dev/shm"))?;
    }
    Ok(())
}

/// An init whose server runs.
struct Init {
    link: Link,
    signals: SignalFd,
    isolation: Isolation,
    server: i32,
    /// Of its own network.
    address: Option<Ipv4Addr>,
    /// What the tools used that set its network up.
    tools: Usage,
    /// What it writes outside its folder.
    writes: Option<Writes>,
    /// By SIGTERM, and not yet by SIGKILL.
    told_to_end: bool,
}

impl Init {
    fn run(mut self) -> Result<(), Error> {
        let started = ToHost::Started {
            pid: self.server,
            t_ns: monotonic_ns(),
            address: self.address,
        };
        // Naming another process takes a right that goes with namespaces; without them the number needs no translation.
        let named = (self.isolation == Isolation::Namespace).then_some(self.server);
        if self.link.send(&started, named).is_err() {
            self.end_everything();
            return Ok(());
        }
        loop {
            let mut waits = vec![
                PollFd::new(&self.link, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
            ];
            if let Some(writes) = &self.writes {
                waits.push(PollFd::new(writes, PollFlags::IN));
            }
            match poll(&mut waits, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).attempting("poll"),
            }
            if let Some(writes) = &mut self.writes {
                writes.take();
            }
            if self.listen_to_host()? {
                self.end_everything();
                return Ok(());
            }
            if let Some(server) = self.attend_signals()? {
                let left_behind = self.left_behind();
                self.end_everything();
                let own = sys::usage(Whose::Own);
                let ended = ToHost::Ended {
                    exit_code: server.exit_code,
                    signal: server.signal,
                    t_ns: monotonic_ns(),
                    own_user_s: own.user_s + self.tools.user_s,
                    own_system_s: own.system_s + self.tools.system_s,
                    left_behind,
                    written: self.writes.as_mut().map(Writes::left),
                };
                let _ = self.link.send(&ended, None);
                return Ok(());
            }
        }
    }

    /// True: the host is gone.
    fn listen_to_host(&mut self) -> Result<bool, Error> {
        while self.link.fill(false).attempting("reading from the host")? {}
        while let Some(message) = self.link.next() {
            match message.attempting("a message of the host")? {
                ToInit::Stop => {
                    self.told_to_end = true;
                    self.signal_server(Signal::TERM);
                }
                ToInit::Kill => {
                    self.told_to_end = false;
                    self.kill_everything();
                }
                ToInit::Probe | ToInit::ProbeNetwork | ToInit::Start(_) => {}
            }
        }
        Ok(self.link.is_closed())
    }

    /// Passes signals on and reaps; gives how the server ended, once it has.
    fn attend_signals(&mut self) -> Result<Option<Reaped>, Error> {
        while let Some(signal) = self.signals.next() {
            match signal {
                libc::SIGTERM => self.signal_server(Signal::TERM),
                libc::SIGINT => self.signal_server(Signal::INT),
                libc::SIGHUP => self.signal_server(Signal::HUP),
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

    /// To the server's process group. It leads one, and is not reaped as long as this is called, so the number is its own.
    fn signal_server(&self, signal: Signal) {
        if let Some(server) = sys::pid(self.server) {
            let _ = rustix::process::kill_process_group(server, signal);
        }
    }

    fn kill_everything(&self) {
        for pid in descendants(rustix::process::getpid().as_raw_nonzero().get(), &[]) {
            if let Some(pid) = sys::pid(pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }

    /// Names of the processes that the server left when it ended as it was told to. They were told to end with it, and get a moment for that.
    fn left_behind(&self) -> Vec<String> {
        if !self.told_to_end {
            return Vec::new();
        }
        let deadline = Instant::now() + AFTER_THE_SERVER;
        loop {
            loop {
                match sys::reap() {
                    Ok(Child::Ended(_)) => {}
                    Ok(Child::AllAlive) => break,
                    Ok(Child::None) | Err(_) => return Vec::new(),
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let mut waits = [PollFd::new(&self.signals, PollFlags::IN)];
            let timeout = Timespec::try_from(left).ok();
            let _ = poll(&mut waits, timeout.as_ref());
            while self.signals.next().is_some() {}
        }
        descendants(rustix::process::getpid().as_raw_nonzero().get(), &[])
            .into_iter()
            .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok())
            .map(|name| name.trim_end().to_owned())
            .collect()
    }

    /// Kills and reaps until there is no child any more. Whatever a killed process had started becomes a child of this one.
    fn end_everything(&self) {
        let mut patience = Duration::from_millis(5);
        loop {
            loop {
                match sys::reap() {
                    Ok(Child::Ended(_)) => {}
                    Ok(Child::AllAlive) => break,
                    Ok(Child::None) | Err(_) => return,
                }
            }
            self.kill_everything();
            // Usually SIGCHLD ends the wait. The limit is for a process that was forked while the others were being listed.
            let mut waits = [PollFd::new(&self.signals, PollFlags::IN)];
            let timeout = Timespec::try_from(patience).ok();
            let _ = poll(&mut waits, timeout.as_ref());
            while self.signals.next().is_some() {}
            patience = (patience * 2).min(Duration::from_millis(500));
        }
    }
}
