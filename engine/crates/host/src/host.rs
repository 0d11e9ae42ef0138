//! The host's event loop: one thread that waits for commands, for inits, for signals and for the end of grace periods, and for nothing else.
//! No command waits for another: a start is answered when its init has spoken, a stop when its processes are gone.

mod reports;

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Rlimit, Signal};
use rustix::time::Timespec;
use weir_observe::{Observer, descendants, raise_open_files};

use crate::cgroup::{self, Cgroups};
use crate::command::{self, Command, Numbered, Start};
use crate::group::Group;
use crate::isolation::{Choice, Isolation};
use crate::launch::Failure;
use crate::probe;
use crate::record::{Outcome, Record};
use crate::watch::{self, Order};
use crate::writer::Writer;
use crate::{Attempting, Error};
use weir_sys::process::{self as sys, Child, SignalFd, Usage};

/// What servers get between SIGTERM and SIGKILL when the host ends; whoever wants more stops them before.
const LAST_GRACE: Duration = Duration::from_secs(1);
/// Between two looks for orphans, should SIGCHLD not come.
const ORPHAN_INTERVAL: Duration = Duration::from_millis(50);

/// What a host needs from its process.
pub struct Options<'a> {
    /// How to keep processes together.
    pub isolation: Choice,
    /// Of the engine, for `hello`.
    pub version: &'static str,
    /// The program that runs [`crate::run_init`] when its argument is `init`.
    pub program: PathBuf,
    /// Where commands come from.
    pub input: BorrowedFd<'a>,
    /// Where records go; watched only, so that the host ends when nobody reads any more.
    pub output: BorrowedFd<'a>,
}

/// A host, ready to take commands.
pub struct Host<'a> {
    options: Options<'a>,
    isolation: Isolation,
    isolation_detail: String,
    own_namespace: OwnedFd,
    signals: SignalFd,
    groups: Vec<Group>,
    /// How processes ended that nobody has stopped yet.
    exited: HashMap<String, Outcome>,
    cgroups: Cgroups,
    /// What processes used that came to the host without an init.
    orphans: Usage,
    /// The limit on open files that servers get, which is what the host had before its observer.
    open_files: Rlimit,
    orders: Sender<Order>,
    records: Sender<Record>,
    /// Read from the input, not yet a whole line.
    input: Vec<u8>,
    ending: bool,
}

impl<'a> Host<'a> {
    /// Finds out what isolation is possible and starts the observing and the writing thread. `emit` writes a record and says whether
    /// anybody reads. To be called from the thread that will run the host, and before any other thread is started.
    pub fn new(
        options: Options<'a>,
        emit: impl FnMut(&Record) -> bool + Send + 'static,
    ) -> Result<(Self, Writer), Error> {
        let signals = SignalFd::new(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
            .attempting("signalfd")?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .attempting("prctl(PR_SET_CHILD_SUBREAPER)")?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let own_namespace = rustix::fs::openat(CWD, "/proc/self/ns/pid", flags, Mode::empty())
            .attempting("opening /proc/self/ns/pid")?;
        let (isolation, isolation_detail) =
            probe::choose(options.isolation, &options.program, &own_namespace)?;
        let open_files = raise_open_files();
        cgroup::sweep_leftovers();
        let observer = Observer::new()?;
        let (records, to_write) = channel();
        let (orders, to_follow) = channel();
        let writer = Writer::start(to_write, emit).attempting("starting a thread")?;
        let observed = records.clone();
        std::thread::Builder::new()
            .name("observe".to_owned())
            .spawn(move || watch::run(observer, &to_follow, &observed))
            .attempting("starting a thread")?;
        let cgroups = Cgroups::new(options.program.clone());
        let host = Self {
            options,
            isolation,
            isolation_detail,
            own_namespace,
            signals,
            groups: Vec::new(),
            exited: HashMap::new(),
            cgroups,
            orphans: Usage::default(),
            open_files,
            orders,
            records,
            input: Vec::new(),
            ending: false,
        };
        Ok((host, writer))
    }

    /// Carries out commands until the input is closed, nobody reads the records, or a signal asks for the end; then ends every process.
    pub fn run(mut self) -> Result<(), Error> {
        self.say(Record::Hello {
            schema: 1,
            version: self.options.version,
            pid: std::process::id(),
            isolation: self.isolation,
            isolation_detail: self.isolation_detail.clone(),
        });
        while !(self.ending && self.groups.is_empty()) {
            let ready = self.wait()?;
            if ready.signals {
                self.attend_signals()?;
            }
            if ready.input {
                self.read_commands()?;
            }
            if ready.output_closed {
                self.end();
            }
            self.attend_groups()?;
        }
        Ok(())
    }

    fn wait(&self) -> Result<Ready, Error> {
        let mut waits = vec![PollFd::new(&self.signals, PollFlags::IN)];
        // Once the end has begun neither says anything new, and both would be ready for ever.
        if !self.ending {
            waits.push(PollFd::new(&self.options.input, PollFlags::IN));
            waits.push(PollFd::new(&self.options.output, PollFlags::empty()));
        }
        let others = waits.len();
        // The link of an init that was reaped has nothing more to say.
        let living = self.groups.iter().filter(|group| group.reaped.is_none());
        for group in living.filter(|group| !group.link().is_closed()) {
            waits.push(PollFd::from_borrowed_fd(
                group.link().as_fd(),
                PollFlags::IN,
            ));
        }
        let now = Instant::now();
        let deadline = self.groups.iter().filter_map(Group::deadline).min();
        let orphans = self.groups.iter().any(Group::may_have_orphans);
        let look = orphans.then_some(now + ORPHAN_INTERVAL);
        let timeout = deadline
            .into_iter()
            .chain(look)
            .min()
            .and_then(|at| Timespec::try_from(at.saturating_duration_since(now)).ok());
        match poll(&mut waits, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).attempting("poll"),
        }
        let is_ready = |index: usize| !waits[index].revents().is_empty();
        Ok(Ready {
            signals: is_ready(0),
            input: others > 1 && is_ready(1),
            output_closed: others > 2 && is_ready(2),
        })
    }

    fn attend_signals(&mut self) -> Result<(), Error> {
        while let Some(signal) = self.signals.next() {
            if signal != libc::SIGCHLD {
                if self.ending {
                    // Asked a second time: at once.
                    self.groups.iter_mut().for_each(Group::hurry);
                }
                self.end();
            }
        }
        while let Child::Ended(reaped) = sys::reap().attempting("wait4")? {
            let group = self
                .groups
                .iter_mut()
                .find(|group| group.init == reaped.pid);
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
            if !line.trim_ascii().is_empty() && !self.ending {
                self.carry_out(&line);
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, line: &[u8]) {
        let Numbered { id, command } = match command::parse(line) {
            Ok(numbered) => numbered,
            Err(rejected) => {
                let hint = "docs/reference/engine.md shows every command".to_owned();
                return self.say(Record::Error {
                    id: rejected.id,
                    message: rejected.message,
                    hint,
                });
            }
        };
        match command {
            Command::Start(start) => self.start(id, *start),
            Command::Stop(stop) => {
                let group = self
                    .groups
                    .iter_mut()
                    .find(|group| group.is_named(&stop.name));
                match group {
                    Some(group) if group.stopping.is_some() => {
                        let message =
                            format!("stop.name: `{}` is being stopped already", stop.name);
                        self.refuse(id, message, "");
                    }
                    Some(group) => group.stop(Some(id), stop.grace()),
                    None => match self.exited.remove(&stop.name) {
                        Some(outcome) => self.say(Record::Stopped {
                            id,
                            killed: false,
                            outcome,
                        }),
                        None => {
                            let message =
                                format!("stop.name: nothing named `{}` was started", stop.name);
                            self.refuse(id, message, "");
                        }
                    },
                }
            }
            Command::Observe(observe) => {
                self.say(Record::Observing { id });
                self.order(Order::Begin {
                    period: observe.period(),
                    memory_period: observe.memory_period(),
                });
            }
            Command::Unobserve => self.order(Order::End { id }),
            Command::Sample => self.order(Order::Once { id }),
            Command::Capabilities => {
                let capabilities =
                    probe::capabilities(id, &self.options.program, &self.own_namespace);
                self.say(capabilities);
            }
        }
    }

    fn start(&mut self, id: u64, start: Start) {
        if self.groups.iter().any(|group| group.is_named(&start.name)) {
            let message = format!("start.name: `{}` is running already", start.name);
            return self.refuse(id, message, "stop it first, or take another name");
        }
        let name = start.name.clone();
        let cgroup = match self.cgroups.make(start.limits) {
            Ok(cgroup) => cgroup,
            Err(Failure { message, hint }) => {
                return self.refuse(id, format!("start `{name}`: {message}"), &hint);
            }
        };
        let program = &self.options.program;
        match Group::start(
            id,
            start,
            cgroup,
            program,
            self.isolation,
            &self.own_namespace,
            self.open_files,
        ) {
            Ok(group) => {
                self.exited.remove(&name);
                self.groups.push(group);
            }
            Err(error) => {
                let message = format!("start: the init of `{name}` cannot run: {error}");
                let hint = "`ulimit -a` shows how many processes and files there may be";
                self.refuse(id, message, hint);
            }
        }
    }

    /// Hears every init, uses force where it is due, and reports the groups that are gone.
    fn attend_groups(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        for index in 0..self.groups.len() {
            let news = self.groups[index]
                .listen()
                .attempting("reading from an init")?;
            for news in news {
                self.report_news(index, news);
            }
            self.groups[index].press(now);
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

    /// Kills what has no init any more; gives whether any of it is left.
    fn kill_orphans(&self) -> bool {
        let inits = self.groups.iter().map(|group| group.init);
        let others: Vec<i32> = inits.chain(self.cgroups.keeper()).collect();
        let mut any = false;
        for pid in descendants(rustix::process::getpid().as_raw_nonzero().get(), &others) {
            let Some(pid) = sys::pid(pid) else { continue };
            // One that may not be killed, because it changed its user, is not waited for.
            any |= rustix::process::kill_process(pid, Signal::KILL).is_ok();
        }
        any
    }

    /// Begins to stop everything; the loop ends when all is gone.
    fn end(&mut self) {
        if std::mem::replace(&mut self.ending, true) {
            return;
        }
        for group in &mut self.groups {
            if group.stopping.is_none() {
                group.stop(None, LAST_GRACE);
            }
        }
    }

    fn refuse(&self, id: u64, message: String, hint: &str) {
        self.say(Record::Error {
            id: Some(id),
            message,
            hint: hint.to_owned(),
        });
    }

    /// The writer is gone only when nobody reads any more, which `output_closed` tells.
    fn say(&self, record: Record) {
        let _ = self.records.send(record);
    }

    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }
}

/// What is ready after a wait.
struct Ready {
    signals: bool,
    input: bool,
    output_closed: bool,
}
