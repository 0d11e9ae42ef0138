//! Processes: system calls without a safe wrapper in rustix, and the code that runs between fork and exec.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal};
use rustix::thread::UnshareFlags;

pub use libc::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

/// Signals that arrive as readable data. They stay blocked until the process ends.
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Blocks `signals` and queues them here. Call this before the process starts a thread, because threads inherit the
    /// mask.
    pub fn new(signals: &[libc::c_int]) -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set that the following calls use; the signal numbers are libc's
        // constants.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for &signal in signals {
                libc::sigaddset(set.as_mut_ptr(), signal);
                // The parent process may have left a signal ignored: then it is not queued. With SIGCHLD ignored, no
                // child can be reaped.
                libc::signal(signal, libc::SIG_DFL);
            }
            if libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let descriptor = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(descriptor)))
        }
    }

    /// Returns the next pending signal. Returns `None` if there is none.
    pub fn next(&self) -> Option<libc::c_int> {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        let count = rustix::io::read(&self.0, &mut info).ok()?;
        // The first field is the signal's number, an unsigned 32-bit integer.
        let number = info[..count].first_chunk::<4>()?;
        libc::c_int::try_from(u32::from_ne_bytes(*number)).ok()
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reports files that were closed after being open for writing, on the watched mounts.
pub struct Fanotify(OwnedFd);

impl Fanotify {
    /// Returns a value that watches no mount yet. Needs root.
    pub fn new() -> io::Result<Self> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK;
        let opened = libc::O_RDONLY | libc::O_LARGEFILE | libc::O_CLOEXEC;
        // SAFETY: both arguments are numbers; what is returned is a new descriptor or -1.
        unsafe {
            let descriptor = libc::fanotify_init(flags, opened as libc::c_uint);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(descriptor)))
        }
    }

    /// Watches the mount that holds `path`, but not other mounts of the same file system.
    pub fn watch_mount(&self, path: &CStr) -> io::Result<()> {
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_MOUNT;
        // SAFETY: the descriptor is open, and the path ends with a zero that the kernel reads up to.
        let done = unsafe {
            libc::fanotify_mark(self.0.as_raw_fd(), flags, libc::FAN_CLOSE_WRITE, libc::AT_FDCWD, path.as_ptr())
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Returns some of the written files, open for reading. Returns `None` if no event is pending.
    pub fn next(&self) -> Option<Vec<OwnedFd>> {
        let mut events = [0u8; 4096];
        let count = rustix::io::read(&self.0, &mut events).ok()?;
        let mut rest = &events[..count];
        let mut files = Vec::new();
        // An event begins with its length, and has the descriptor in bytes 16 to 20. After an overflow of the queue it
        // has none.
        while let Some(head) = rest.first_chunk::<24>() {
            let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
            let descriptor = i32::from_ne_bytes([head[16], head[17], head[18], head[19]]);
            if descriptor >= 0 {
                // SAFETY: the kernel has just opened it for the reader of this event.
                files.push(unsafe { OwnedFd::from_raw_fd(descriptor) });
            }
            rest = rest.get(length.max(24) as usize..).unwrap_or_default();
        }
        Some(files)
    }
}

impl AsFd for Fanotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns whether this process leads its session. rustix cannot represent session 0, whose leader is outside of the
/// PID namespace.
pub fn leads_session() -> bool {
    // SAFETY: neither call takes a pointer, and 0 stands for the calling process.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// An ended child, with the usage of itself and its reaped children.
#[derive(Clone, Copy, Debug)]
pub struct Reaped {
    /// Process id.
    pub pid: i32,
    /// Exit code; `None` if a signal ended the child.
    pub exit_code: Option<i32>,
    /// Number of the signal that ended the child.
    pub signal: Option<i32>,
    /// Resources that the child and its own reaped children used.
    pub usage: Usage,
}

/// Resource usage, as `getrusage` and `wait4` report it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time in user mode.
    pub user_s: f64,
    /// CPU time in the kernel.
    pub system_s: f64,
    /// Peak resident memory of the largest single process.
    pub peak_rss_bytes: u64,
}

/// The result of [`reap`].
pub enum Child {
    /// A child has ended.
    Ended(Reaped),
    /// There are children, and none has ended.
    AllAlive,
    /// There is no child.
    None,
}

/// Reaps one ended child without waiting for it.
pub fn reap() -> io::Result<Child> {
    let mut status = 0;
    let mut usage = MaybeUninit::zeroed();
    // SAFETY: both pointers are to writable memory of the right type; all-zero is a valid rusage, read only after
    // success.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (pid, usage.assume_init())
    };
    match pid {
        0 => Ok(Child::AllAlive),
        pid if pid > 0 => Ok(Child::Ended(Reaped {
            pid,
            exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
            usage: convert_usage(&usage),
        })),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(Child::None),
            error => Err(error),
        },
    }
}

/// The processes whose usage [`usage`] returns.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub enum UsageScope {
    /// This process without its children.
    Own = libc::RUSAGE_SELF,
    /// The children that this process has reaped.
    EndedChildren = libc::RUSAGE_CHILDREN,
}

/// Returns the resource usage so far.
pub fn usage(scope: UsageScope) -> Usage {
    let mut usage = MaybeUninit::zeroed();
    // SAFETY: the pointer is to writable memory of the right type, and all-zero is a valid rusage.
    let usage = unsafe {
        libc::getrusage(scope as libc::c_int, usage.as_mut_ptr());
        usage.assume_init()
    };
    convert_usage(&usage)
}

/// Returns the peak resident memory of this process (VmHWM). `getrusage` would include the peak of the process that
/// started this one.
pub fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.unwrap_or(0u64) * 1024
}

fn convert_usage(usage: &libc::rusage) -> Usage {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Usage {
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
        peak_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }
}

/// Spawns the first process of a new PID namespace. `own`: this process's namespace, opened before the call.
pub fn spawn_in_pid_namespace(command: &mut Command, own: BorrowedFd<'_>) -> io::Result<std::process::Child> {
    // SAFETY: a new PID namespace affects later children only, not this process's memory or descriptors.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID)? };
    let child = command.spawn();
    // Later children of this thread are in the old namespace again. Without this, the next unshare would fail.
    rustix::thread::move_into_link_name_space(own, Some(rustix::thread::LinkNameSpaceType::ProcessID))?;
    child
}

/// Moves this process to new mount and IPC namespaces.
pub fn unshare_mounts_and_ipc() -> rustix::io::Result<()> {
    // SAFETY: unsharing mounts also unshares the working directory's record, which only threads could notice; an init
    // has none.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWIPC) }
}

/// Moves this process to a new network namespace.
pub fn unshare_network() -> rustix::io::Result<()> {
    // SAFETY: nothing in this process's memory or descriptors changes; its sockets stay where they are.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
}

/// Makes `command` start in a new session with default signals, and with its three standard descriptors only.
///
/// `parent_death`: the kernel kills the process when this process ends. `cgroup_procs`: open `cgroup.procs` files of
/// the control groups that the process joins.
pub fn detach(command: &mut Command, parent_death: bool, cgroup_procs: Vec<File>) {
    let parent = rustix::process::getpid();
    let before_exec = move || {
        rustix::process::setsid()?;
        for file in &cgroup_procs {
            rustix::io::write(file, b"0")?;
        }
        if parent_death {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(parent) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        let mut none = MaybeUninit::uninit();
        // SAFETY: all four are system calls or async-signal-safe, as is required between fork and exec. sigemptyset
        // initialises the set that pthread_sigmask reads. signal() refuses signals that cannot change, which is fine.
        // close_range only marks descriptors; the standard library's own pipe is so marked anyway.
        unsafe {
            for signal in 1..=libc::SIGRTMAX() {
                libc::signal(signal, libc::SIG_DFL);
            }
            libc::sigemptyset(none.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
            // For descriptors that the host inherited; all others are close-on-exec. Fails before Linux 5.11.
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(before_exec) };
}

/// Returns the PID of a spawned child. On Linux a PID has at most 22 bits.
pub fn child_pid(child: &std::process::Child) -> i32 {
    i32::try_from(child.id()).unwrap_or(i32::MAX)
}

/// Returns a number as a PID. Returns `None` if it cannot be one.
pub fn pid(number: i32) -> Option<Pid> {
    Pid::from_raw(number)
}

/// Sends SIGKILL to each process. Returns whether any of them received it.
pub fn kill_each(pids: &[i32]) -> bool {
    let mut any = false;
    for pid in pids.iter().filter_map(|&number| pid(number)) {
        any |= rustix::process::kill_process(pid, Signal::KILL).is_ok();
    }
    any
}
