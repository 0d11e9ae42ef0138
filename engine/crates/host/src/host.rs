//! The host's event loop: one thread that waits for commands, inits, signals and the ends of grace periods.
//!
//! No command waits for another. The host confirms a start when its init reports, and a stop when the processes are
//! gone.

mod reports;

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Rlimit;
use rustix::time::Timespec;
use weir_observe::{Observer, own_descendants, raise_open_files};

use crate::cgroup::{self, Cgroups};
use crate::command::{self, Command, Numbered, Start};
use crate::group::Group;
use crate::isolation::{Choice, Isolation};
use crate::launch::Failure;
use crate::probe;
use crate::record::{Record, ServerExit};
use crate::watch::{self, ObserverCommand};
use crate::writer::Writer;
use crate::{Attempting, Error};
use weir_sys::process::{self as sys, Child, SignalFd, Usage};

/// Time between SIGTERM and SIGKILL for servers that still run when the host ends. A `stop` command can give more.
const LAST_GRACE: Duration = Duration::from_secs(1);
/// Time between two searches for orphans if no SIGCHLD arrives.
const ORPHAN_INTERVAL: Duration = Duration::from_millis(50);

/// Settings of a host, from its process.
pub struct Options<'a> {
    /// How to isolate processes.
    pub isolation: Choice,
    /// The engine's version, for the record `hello`.
    pub version: &'static str,
    /// The program that runs [`crate::run_init`] when its argument is `init`.
    pub program: PathBuf,
    /// Source of the commands.
    pub input: BorrowedFd<'a>,
    /// Destination of the records. The host only watches it, and ends when the reader closes it.
    pub output: BorrowedFd<'a>,
}

/// A host that is ready for commands.
pub struct Host<'a> {
    options: Options<'a>,
    isolation: Isolation,
    isolation_detail: String,
    own_namespace: OwnedFd,
    signals: SignalFd,
    groups: Vec<Group>,
    /// Exits of servers that no `stop` command has collected yet.
    exited: HashMap<String, ServerExit>,
    cgroups: Cgroups,
    /// Usage of processes whose init ended before them.
    orphans: Usage,
    /// The limit on open files for servers: the host's own limit before the observer raised it.
    open_files: Rlimit,
    observer: Sender<ObserverCommand>,
    records: Sender<Record>,
    /// Input after the last complete line.
    input: Vec<u8>,
    is_ending: bool,
}

impl<'a> Host<'a> {
    /// Probes the possible isolation and starts the threads of the observer and the writer. `emit` writes a record and
    /// returns whether the reader is still there. Call this on the thread that will run the host, before the process
    /// starts any other thread.
    pub fn new(
        options: Options<'a>,
        emit: impl FnMut(&Record) -> bool + Send + 'static,
    ) -> Result<(Self, Writer), Error> {
        let signals = SignalFd::new(&[sys::SIGCHLD, sys::SIGTERM, sys::SIGINT, sys::SIGHUP]).attempting("signalfd")?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .attempting("prctl(PR_SET_CHILD_SUBREAPER)")?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let own_namespace = rustix::fs::openat(CWD, "/proc/self/ns/pid", flags, Mode::empty())
            .attempting("opening /proc/self/ns/pid")?;
        let (isolation, isolation_detail) = probe::choose(options.isolation, &options.program, &own_namespace)?;
        let open_files = raise_open_files();
        cgroup::sweep_leftovers();
        let observer = Observer::new()?;
        let (records, to_write) = channel();
        let (commands, to_execute) = channel();
        let writer = Writer::start(to_write, emit).attempting("starting a thread")?;
        let observed = records.clone();
        std::thread::Builder::new()
            .name("observe".to_owned())
            .spawn(move || watch::run(observer, &to_execute, &observed))
            .attempting("starting a thread")?;
        let host = Self {
            options,
            isolation,
            isolation_detail,
            own_namespace,
            signals,
            groups: Vec::new(),
            exited: HashMap::new(),
            cgroups: Cgroups::default(),
            orphans: Usage::default(),
            open_files,
            observer: commands,
            records,
            input: Vec::new(),
            is_ending: false,
        };
        Ok((host, writer))
    }

    /// Executes commands until the input or the output closes or a signal arrives. Then ends every process.
    pub fn run(mut self) -> Result<(), Error> {
        self.emit(Record::Hello {
            schema: 1,
            version: self.options.version,
            pid: std::process::id(),
            isolation: self.isolation,
            isolation_detail: self.isolation_detail.clone(),
        });
        while !(self.is_ending && self.groups.is_empty()) {
            let ready = self.wait()?;
            if ready.signals {
                self.handle_signals()?;
            }
            if ready.input {
                self.read_commands()?;
            }
            if ready.output_closed {
                self.end();
            }
            self.update_groups()?;
        }
        Ok(())
    }

    fn wait(&self) -> Result<Ready, Error> {
        let mut waits = vec![PollFd::new(&self.signals, PollFlags::IN)];
        // While the host ends, both would be ready for ever.
        if !self.is_ending {
            waits.push(PollFd::new(&self.options.input, PollFlags::IN));
            waits.push(PollFd::new(&self.options.output, PollFlags::empty()));
        }
        let others = waits.len();
        // The link of a reaped init carries no more messages.
        let living = self.groups.iter().filter(|group| group.reaped.is_none());
        for group in living.filter(|group| !group.link().is_closed()) {
            waits.push(PollFd::from_borrowed_fd(group.link().as_fd(), PollFlags::IN));
        }
        let now = Instant::now();
        let deadline = self.groups.iter().filter_map(Group::deadline).min();
        let orphans = self.groups.iter().any(Group::may_have_orphans);
        let search = orphans.then_some(now + ORPHAN_INTERVAL);
        let timeout = deadline
            .into_iter()
            .chain(search)
            .min()
            .and_then(|at| Timespec::try_from(at.saturating_duration_since(now)).ok());
        match poll(&mut waits, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).attempting("poll"),
        }
        let is_ready = |index: usize| !waits[index].revents().is_empty();
        Ok(Ready { signals: is_ready(0), input: others > 1 && is_ready(1), output_closed: others > 2 && is_ready(2) })
    }

    fn handle_signals(&mut self) -> Result<(), Error> {
        while let Some(signal) = self.signals.next() {
            if signal != sys::SIGCHLD {
                if self.is_ending {
                    // A second signal ends the grace period.
                    self.groups.iter_mut().for_each(Group::expire_grace);
                }
                self.end();
            }
        }
        while let Child::Ended(reaped) = sys::reap().attempting("wait4")? {
            let group = self.groups.iter_mut().find(|group| group.init == reaped.pid);
            match group {
                Some(group) => group.reaped = Some(reaped),
                None => {
                    self.orphans.user_s += reaped.usage.user_s;
                    self.orphans.system_s += reaped.usage.system_s;
                    let peak = &mut self.orphans.peak_rss_bytes;
                    *peak = (*peak).max(reaped.usage.peak_rss_bytes);
                }
            }
        }
        Ok(())
    }

    fn read_commands(&mut self) -> Result<(), Error> {
        let mut buffer = [0; 16 * 1024];
        let count = match rustix::io::read(self.options.input, &mut buffer) {
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error).attempting("reading commands"),
        };
        if count == 0 {
            self.end();
        }
        self.input.extend_from_slice(&buffer[..count]);
        while let Some(end) = self.input.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.input.drain(..=end).collect();
            if !line.trim_ascii().is_empty() && !self.is_ending {
                self.execute(&line);
            }
        }
        Ok(())
    }

    fn execute(&mut self, line: &[u8]) {
        let Numbered { id, command } = match command::parse(line) {
            Ok(numbered) => numbered,
            Err(rejected) => {
                let hint = "docs/reference/engine.md shows every command".to_owned();
                return self.emit(Record::Error { id: rejected.id, message: rejected.message, hint });
            }
        };
        match command {
            Command::Start(start) => self.start(id, *start),
            Command::Stop(stop) => {
                let group = self.groups.iter_mut().find(|group| group.is_named(&stop.name));
                match group {
                    Some(group) if group.stopping.is_some() => {
                        let message = format!("stop.name: `{}` is being stopped already", stop.name);
                        self.reject(id, message, "");
                    }
                    Some(group) => group.stop(Some(id), stop.grace()),
                    None => match self.exited.remove(&stop.name) {
                        Some(exit) => self.emit(Record::Stopped { id, killed: false, exit }),
                        None => {
                            let message = format!("stop.name: nothing named `{}` was started", stop.name);
                            self.reject(id, message, "");
                        }
                    },
                }
            }
            Command::Observe(observe) => {
                self.emit(Record::Observing { id });
                self.observe(ObserverCommand::StartSampling {
                    period: observe.period(),
                    memory_period: observe.memory_period(),
                });
            }
            Command::Unobserve => self.observe(ObserverCommand::StopSampling { id }),
            Command::Sample => self.observe(ObserverCommand::Sample { id }),
            Command::Capabilities => {
                let capabilities = probe::capabilities(id, &self.options.program, &self.own_namespace);
                self.emit(capabilities);
            }
        }
    }

    fn start(&mut self, id: u64, start: Start) {
        if self.groups.iter().any(|group| group.is_named(&start.name)) {
            let message = format!("start.name: `{}` is running already", start.name);
            return self.reject(id, message, "stop it first, or take another name");
        }
        let name = start.name.clone();
        let cgroup = match self.cgroups.make(start.limits) {
            Ok(cgroup) => cgroup,
            Err(Failure { message, hint }) => {
                return self.reject(id, format!("start `{name}`: {message}"), &hint);
            }
        };
        let program = &self.options.program;
        match Group::start(id, start, cgroup, program, self.isolation, &self.own_namespace, self.open_files) {
            Ok(group) => {
                self.exited.remove(&name);
                self.groups.push(group);
            }
            Err(error) => {
                let message = format!("start: the init of `{name}` cannot run: {error}");
                let hint = "`ulimit -a` shows how many processes and files there may be";
                self.reject(id, message, hint);
            }
        }
    }

    /// Reads the messages of every init, escalates overdue stops, and reports the groups that are gone.
    fn update_groups(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        for index in 0..self.groups.len() {
            let events = self.groups[index].receive_events().attempting("reading from an init")?;
            for event in events {
                self.handle_init_event(index, event);
            }
            self.groups[index].escalate(now);
        }
        let orphans_live = self.groups.iter().any(Group::may_have_orphans) && self.kill_orphans();
        let mut index = 0;
        while let Some(group) = self.groups.get(index) {
            if group.reaped.is_none() || (group.may_have_orphans() && orphans_live) {
                index += 1;
                continue;
            }
            let group = self.groups.remove(index);
            self.report_end(group);
        }
        Ok(())
    }

    /// Kills the processes whose init has ended. Returns whether any of them is left.
    fn kill_orphans(&self) -> bool {
        let inits: Vec<i32> = self.groups.iter().map(|group| group.init).collect();
        // The host does not wait for a process that it may not kill, because that process changed its user.
        sys::kill_each(&own_descendants(&inits))
    }

    /// Starts to stop every server. The loop ends when all are gone.
    fn end(&mut self) {
        if std::mem::replace(&mut self.is_ending, true) {
            return;
        }
        for group in &mut self.groups {
            if group.stopping.is_none() {
                group.stop(None, LAST_GRACE);
            }
        }
    }

    fn reject(&self, id: u64, message: String, hint: &str) {
        self.emit(Record::Error { id: Some(id), message, hint: hint.to_owned() });
    }

    /// Sends a record to the writer. A failure means that the reader is gone, which `output_closed` also reports.
    fn emit(&self, record: Record) {
        let _ = self.records.send(record);
    }

    fn observe(&self, command: ObserverCommand) {
        let _ = self.observer.send(command);
    }
}

/// The event sources that are ready after a wait.
struct Ready {
    signals: bool,
    input: bool,
    output_closed: bool,
}
