//! The state of a thread, from the texts of `/proc/PID/task/TID/syscall` and `wchan`, without I/O.
//!
//! A poll or select of a single socket counts as an event wait: its descriptors are in the process's memory, which the
//! observer does not read.

use libc::c_long;

use crate::parse;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    OnCpu,
    Runnable,
    SocketIo,
    EventWait,
    Lock,
    Accept,
    Disk,
    Sleep,
    Other,
}

/// The number of states.
pub const STATES: usize = 9;

/// The activity of a thread at one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// On a CPU, or ready to run.
    Running,
    Blocked(ThreadState),
    /// In a system call on a descriptor of any kind.
    OnDescriptor(u64),
    /// In no system call that shows a state.
    Unknown,
}

const SOCKET_IO: &[c_long] = &[
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_connect,
];
const ACCEPT: &[c_long] = &[libc::SYS_accept, libc::SYS_accept4];
const LOCK: &[c_long] = &[libc::SYS_futex, libc::SYS_futex_waitv];
const SLEEP: &[c_long] = &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep];
const DISK: &[c_long] = &[
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_msync,
    libc::SYS_openat,
    libc::SYS_io_getevents,
];
const EVENT_WAIT: &[c_long] = &[
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_io_uring_enter,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];
/// The second argument is the number of descriptors. Without descriptors the call is a sleep.
const POLL: &[c_long] = &[
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];
/// The first argument is the number of descriptors. Without descriptors the call is a sleep.
const SELECT: &[c_long] = &[
    libc::SYS_pselect6,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
];
/// The first argument is the descriptor.
const ON_DESCRIPTOR: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_sendfile,
    libc::SYS_splice,
];

/// Parses a `syscall`: `running`, the number and arguments of a call, or -1 outside of a call.
pub fn parse_syscall(text: &[u8]) -> Activity {
    let mut words = parse::words(text);
    let Some(first) = words.next() else {
        return Activity::Unknown;
    };
    if first == b"running" {
        return Activity::Running;
    }
    let number = parse::number(first).and_then(|number| c_long::try_from(number).ok());
    let Some(number) = number else {
        return Activity::Unknown;
    };
    let mut argument = |index: usize| words.nth(index).and_then(hexadecimal).unwrap_or(1);
    let any = |calls: &[c_long]| calls.contains(&number);
    let unless_empty = |count: u64| match count {
        0 => ThreadState::Sleep,
        _ => ThreadState::EventWait,
    };
    match () {
        () if any(LOCK) => Activity::Blocked(ThreadState::Lock),
        () if any(EVENT_WAIT) => Activity::Blocked(ThreadState::EventWait),
        () if any(ON_DESCRIPTOR) => Activity::OnDescriptor(argument(0)),
        () if any(SOCKET_IO) => Activity::Blocked(ThreadState::SocketIo),
        () if any(POLL) => Activity::Blocked(unless_empty(argument(1))),
        () if any(SELECT) => Activity::Blocked(unless_empty(argument(0))),
        () if any(ACCEPT) => Activity::Blocked(ThreadState::Accept),
        () if any(SLEEP) => Activity::Blocked(ThreadState::Sleep),
        () if any(DISK) => Activity::Blocked(ThreadState::Disk),
        () => Activity::Unknown,
    }
}

/// Parts of the names of kernel functions in which threads sleep, for processes whose `syscall` is not readable. The
/// first match counts. The names do not show whether poll and select have descriptors.
const WAITING_IN: &[(&str, ThreadState)] = &[
    ("futex", ThreadState::Lock),
    ("ep_poll", ThreadState::EventWait),
    ("do_epoll_wait", ThreadState::EventWait),
    ("poll_schedule_timeout", ThreadState::EventWait),
    ("do_sys_poll", ThreadState::EventWait),
    ("do_select", ThreadState::EventWait),
    ("io_cqring_wait", ThreadState::EventWait),
    ("eventfd_", ThreadState::EventWait),
    ("accept", ThreadState::Accept),
    ("nanosleep", ThreadState::Sleep),
    ("sk_wait", ThreadState::SocketIo),
    ("sk_stream_wait", ThreadState::SocketIo),
    ("wait_woken", ThreadState::SocketIo),
    ("unix_stream", ThreadState::SocketIo),
    ("skb_wait", ThreadState::SocketIo),
    ("inet_", ThreadState::SocketIo),
    ("tcp_", ThreadState::SocketIo),
    ("folio_wait", ThreadState::Disk),
    ("wait_on_page", ThreadState::Disk),
    ("io_schedule", ThreadState::Disk),
    ("jbd2_", ThreadState::Disk),
    ("blk_", ThreadState::Disk),
];

/// Parses a `wchan`: the kernel function in which a thread sleeps.
pub fn parse_wchan(text: &[u8]) -> Activity {
    let name = String::from_utf8_lossy(text);
    WAITING_IN
        .iter()
        .find(|(part, _)| name.contains(part))
        .map_or(Activity::Unknown, |&(_, state)| Activity::Blocked(state))
}

/// Returns the state of a thread that waits on a descriptor, from the target of `/proc/PID/fd/N`.
pub fn classify_descriptor(target: &[u8]) -> ThreadState {
    let file = target.starts_with(b"/") && !target.starts_with(b"/dev/");
    match target {
        _ if target.starts_with(b"socket:") => ThreadState::SocketIo,
        _ if target.starts_with(b"anon_inode:") => ThreadState::EventWait,
        _ if file => ThreadState::Disk,
        _ => ThreadState::Other,
    }
}

fn hexadecimal(word: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(word.strip_prefix(b"0x")?).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: c_long, arguments: &str) -> Activity {
        parse_syscall(format!("{number} {arguments} 0x7ffc 0x7f4c\n").as_bytes())
    }

    #[test]
    fn syscall_shows_the_state() {
        use ThreadState::*;
        let none = "0x0 0x0 0x0 0x0 0x0 0x0";
        for (number, expected) in [
            (libc::SYS_futex, Lock),
            (libc::SYS_epoll_pwait, EventWait),
            (libc::SYS_recvfrom, SocketIo),
            (libc::SYS_accept4, Accept),
            (libc::SYS_clock_nanosleep, Sleep),
            (libc::SYS_fsync, Disk),
        ] {
            assert_eq!(call(number, none), Activity::Blocked(expected));
        }
        assert_eq!(parse_syscall(b"running\n"), Activity::Running);
        assert_eq!(parse_syscall(b"-1 0x7ffc 0x7f4c\n"), Activity::Unknown);
        assert_eq!(parse_syscall(b""), Activity::Unknown);
        assert_eq!(call(libc::SYS_wait4, none), Activity::Unknown);
    }

    #[test]
    fn descriptor_target_shows_the_state() {
        assert_eq!(call(libc::SYS_read, "0x1f 0x7f 0x200 0x0 0x0 0x0"), Activity::OnDescriptor(31));
        assert_eq!(classify_descriptor(b"socket:[123]"), ThreadState::SocketIo);
        assert_eq!(classify_descriptor(b"/var/lib/file"), ThreadState::Disk);
        assert_eq!(classify_descriptor(b"pipe:[9]"), ThreadState::Other);
        assert_eq!(classify_descriptor(b"/dev/pts/0"), ThreadState::Other);
        assert_eq!(classify_descriptor(b"anon_inode:[eventfd]"), ThreadState::EventWait);
    }

    #[test]
    fn poll_without_descriptors_is_a_sleep() {
        let ten = "0x7f 0xa 0x1 0x0 0x0 0x0";
        let none = "0x0 0x0 0x64 0x0 0x0 0x0";
        let waits = Activity::Blocked(ThreadState::EventWait);
        let sleeps = Activity::Blocked(ThreadState::Sleep);
        assert_eq!(call(libc::SYS_ppoll, ten), waits);
        assert_eq!(call(libc::SYS_ppoll, none), sleeps);
        assert_eq!(call(libc::SYS_pselect6, ten), waits);
        assert_eq!(call(libc::SYS_pselect6, none), sleeps);
    }

    #[test]
    fn wchan_shows_the_state() {
        for (name, expected) in [
            ("futex_do_wait", ThreadState::Lock),
            ("ep_poll", ThreadState::EventWait),
            ("inet_csk_accept", ThreadState::Accept),
            ("hrtimer_nanosleep", ThreadState::Sleep),
            ("wait_woken", ThreadState::SocketIo),
        ] {
            assert_eq!(parse_wchan(name.as_bytes()), Activity::Blocked(expected));
        }
        assert_eq!(parse_wchan(b"0"), Activity::Unknown);
    }
}
