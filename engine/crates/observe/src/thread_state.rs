//! What a thread is doing, from the texts of `/proc/PID/task/TID/syscall` and `wchan`. Pure: no files.
//!
//! A poll or select of a single socket counts as a wait for events: whether it is one is in the process's memory, which is not looked at.

use libc::c_long;

use crate::parse;

/// What a thread's time goes to.
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

/// How many there are.
pub const STATES: usize = 9;

/// What one look at a thread has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// On a CPU or waiting for one.
    Running,
    Blocked(ThreadState),
    /// In a call on this descriptor, which may be of any kind.
    OnDescriptor(u64),
    /// In no call that says why it waits.
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
/// The number of descriptors is the second argument. Of none, it is a sleep.
const POLL: &[c_long] = &[
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];
/// The number of descriptors is the first argument. Of none, it is a sleep.
const SELECT: &[c_long] = &[
    libc::SYS_pselect6,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
];
/// The descriptor is the first argument.
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

/// Reads a `syscall`: `running`, or the number and arguments of a call, or -1 outside of one.
pub fn look_at_syscall(text: &[u8]) -> Look {
    let mut words = parse::words(text);
    let Some(first) = words.next() else {
        return Look::Unknown;
    };
    if first == b"running" {
        return Look::Running;
    }
    let number = parse::number(first).and_then(|number| c_long::try_from(number).ok());
    let Some(number) = number else {
        return Look::Unknown;
    };
    let mut argument = |index: usize| words.nth(index).and_then(hexadecimal).unwrap_or(1);
    let any = |calls: &[c_long]| calls.contains(&number);
    let unless_empty = |count: u64| match count {
        0 => ThreadState::Sleep,
        _ => ThreadState::EventWait,
    };
    match () {
        () if any(LOCK) => Look::Blocked(ThreadState::Lock),
        () if any(EVENT_WAIT) => Look::Blocked(ThreadState::EventWait),
        () if any(ON_DESCRIPTOR) => Look::OnDescriptor(argument(0)),
        () if any(SOCKET_IO) => Look::Blocked(ThreadState::SocketIo),
        () if any(POLL) => Look::Blocked(unless_empty(argument(1))),
        () if any(SELECT) => Look::Blocked(unless_empty(argument(0))),
        () if any(ACCEPT) => Look::Blocked(ThreadState::Accept),
        () if any(SLEEP) => Look::Blocked(ThreadState::Sleep),
        () if any(DISK) => Look::Blocked(ThreadState::Disk),
        () => Look::Unknown,
    }
}

/// Functions of the kernel in which threads sleep, by parts of their names: what is read where `syscall` may not be. The first that fits
/// counts. Of poll and select it is not seen whether they wait for anything.
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

/// Reads a `wchan`, of a thread that is not running: the name of the function of the kernel that it sleeps in.
pub fn look_at_wchan(text: &[u8]) -> Look {
    let name = String::from_utf8_lossy(text);
    WAITING_IN
        .iter()
        .find(|(part, _)| name.contains(part))
        .map_or(Look::Unknown, |&(_, state)| Look::Blocked(state))
}

/// What waiting on a descriptor is, from what `/proc/PID/fd/N` points to.
pub fn waiting_on(target: &[u8]) -> ThreadState {
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

    fn call(number: c_long, arguments: &str) -> Look {
        look_at_syscall(format!("{number} {arguments} 0x7ffc 0x7f4c\n").as_bytes())
    }

    #[test]
    fn a_call_tells_what_its_thread_waits_for() {
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
            assert_eq!(call(number, none), Look::Blocked(expected));
        }
        assert_eq!(look_at_syscall(b"running\n"), Look::Running);
        assert_eq!(look_at_syscall(b"-1 0x7ffc 0x7f4c\n"), Look::Unknown);
        assert_eq!(look_at_syscall(b""), Look::Unknown);
        assert_eq!(call(libc::SYS_wait4, none), Look::Unknown);
    }

    #[test]
    fn reading_says_the_descriptor_and_its_target_says_the_rest() {
        assert_eq!(
            call(libc::SYS_read, "0x1f 0x7f 0x200 0x0 0x0 0x0"),
            Look::OnDescriptor(31)
        );
        assert_eq!(waiting_on(b"socket:[123]"), ThreadState::SocketIo);
        assert_eq!(waiting_on(b"/var/lib/file"), ThreadState::Disk);
        assert_eq!(waiting_on(b"pipe:[9]"), ThreadState::Other);
        assert_eq!(waiting_on(b"/dev/pts/0"), ThreadState::Other);
        assert_eq!(waiting_on(b"anon_inode:[eventfd]"), ThreadState::EventWait);
    }

    #[test]
    fn a_poll_of_nothing_is_a_sleep() {
        let ten = "0x7f 0xa 0x1 0x0 0x0 0x0";
        let none = "0x0 0x0 0x64 0x0 0x0 0x0";
        let waits = Look::Blocked(ThreadState::EventWait);
        let sleeps = Look::Blocked(ThreadState::Sleep);
        assert_eq!(call(libc::SYS_ppoll, ten), waits);
        assert_eq!(call(libc::SYS_ppoll, none), sleeps);
        assert_eq!(call(libc::SYS_pselect6, ten), waits);
        assert_eq!(call(libc::SYS_pselect6, none), sleeps);
    }

    #[test]
    fn without_the_call_the_kernels_function_tells() {
        for (name, expected) in [
            ("futex_do_wait", ThreadState::Lock),
            ("ep_poll", ThreadState::EventWait),
            ("inet_csk_accept", ThreadState::Accept),
            ("hrtimer_nanosleep", ThreadState::Sleep),
            ("wait_woken", ThreadState::SocketIo),
        ] {
            assert_eq!(look_at_wchan(name.as_bytes()), Look::Blocked(expected));
        }
        assert_eq!(look_at_wchan(b"0"), Look::Unknown);
    }
}
