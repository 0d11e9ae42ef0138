//! Parsers for the texts of /proc, without I/O. Formats: proc_pid_stat(5), proc_stat(5), proc_pid_smaps(5),
//! proc_pid_status(5), proc_pid_io(5), and the kernel's Documentation/scheduler/sched-stats.rst for schedstat.

/// The used fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    pub state: u8,
    pub parent: i32,
    pub minor_faults: u64,
    pub children_minor_faults: u64,
    pub major_faults: u64,
    pub children_major_faults: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub children_user_ticks: u64,
    pub children_system_ticks: u64,
    pub threads: u64,
    pub resident_pages: u64,
}

impl ProcessStat {
    /// Returns whether the process has ended and is not reaped yet. A leader that ended before its threads also shows
    /// `Z`, but has threads.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }
}

/// Parses `/proc/PID/stat`.
pub fn process_stat(text: &[u8]) -> Option<ProcessStat> {
    let (state, mut fields) = after_name(text)?;
    // Field 4 of the manual page is the first here; `nth` counts from where the last call ended.
    Some(ProcessStat {
        state,
        parent: i32::try_from(number(fields.next()?)?).ok()?,
        minor_faults: number(fields.nth(5)?)?,
        children_minor_faults: number(fields.next()?)?,
        major_faults: number(fields.next()?)?,
        children_major_faults: number(fields.next()?)?,
        user_ticks: number(fields.next()?)?,
        system_ticks: number(fields.next()?)?,
        // Signed in the kernel, never negative.
        children_user_ticks: number(fields.next()?)?,
        children_system_ticks: number(fields.next()?)?,
        threads: number(fields.nth(2)?)?,
        resident_pages: number(fields.nth(3)?)?,
    })
}

/// Returns the second number of `/proc/PID/statm`.
pub fn resident_pages(text: &[u8]) -> Option<u64> {
    number(words(text).nth(1)?)
}

/// Returns the state letter of a `stat` of a process or a thread: `R`, `S`, `D` …
pub fn state_letter(text: &[u8]) -> Option<u8> {
    Some(after_name(text)?.0)
}

/// Returns the state and the fields after it.
fn after_name(text: &[u8]) -> Option<(u8, impl Iterator<Item = &[u8]>)> {
    // Only the command's name, in parentheses, may contain parentheses and spaces.
    let after_name = text.iter().rposition(|&byte| byte == b')')? + 1;
    let mut fields = words(&text[after_name..]);
    Some((*fields.next()?.first()?, fields))
}

/// The counters of `/proc/PID/task/TID/schedstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Time on a CPU.
    pub run_ns: u64,
    /// Time ready to run, waiting for a CPU.
    pub wait_ns: u64,
    /// Number of times the thread got a CPU.
    pub runs: u64,
}

/// Parses a `schedstat`.
pub fn schedstat(text: &[u8]) -> Option<Schedstat> {
    let mut fields = words(text);
    Some(Schedstat { run_ns: number(fields.next()?)?, wait_ns: number(fields.next()?)?, runs: number(fields.next()?)? })
}

/// The used fields of `/proc/PID/io`, in bytes. They include reaped children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    pub rchar: u64,
    pub wchar: u64,
    pub disk_read: u64,
    pub disk_written: u64,
}

/// Parses `/proc/PID/io`.
pub fn process_io(text: &[u8]) -> ProcessIo {
    let mut io = ProcessIo::default();
    for (name, value) in keyed_lines(text) {
        let target = match name {
            b"rchar" => &mut io.rchar,
            b"wchar" => &mut io.wchar,
            b"read_bytes" => &mut io.disk_read,
            b"write_bytes" => &mut io.disk_written,
            _ => continue,
        };
        *target = number(value).unwrap_or(0);
    }
    io
}

/// Returns the names and trimmed values of lines `name: value`.
pub fn keyed_lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// Returns the word after `name` in the line that begins with it.
pub fn named_value<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    text.split(|&byte| byte == b'\n').find_map(|line| {
        let mut words = words(line);
        (words.next() == Some(name)).then(|| words.next())?
    })
}

/// Splits at spaces and line ends.
pub fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// One `cpuN` line of `/proc/stat`, in ticks: user, nice, system, idle, iowait, irq, softirq, steal.
pub type CpuTicks = [u64; 8];

/// Parses the lines of single CPUs in `/proc/stat`.
pub fn cpu_lines(text: &[u8]) -> impl Iterator<Item = (u32, CpuTicks)> {
    // All `cpu` lines come first. The interrupt counters after them are long.
    text.split(|&byte| byte == b'\n').take_while(|line| line.starts_with(b"cpu")).filter_map(|line| {
        let mut fields = line[3..].split(|&byte| byte == b' ');
        let cpu = u32::try_from(number(fields.next()?)?).ok()?;
        let mut ticks = CpuTicks::default();
        for (tick, field) in ticks.iter_mut().zip(fields) {
            *tick = number(field)?;
        }
        Some((cpu, ticks))
    })
}

/// The used fields of `/proc/PID/smaps_rollup`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub pss_bytes: u64,
    pub private_bytes: u64,
    pub swap_bytes: u64,
}

/// Parses `/proc/PID/smaps_rollup`.
pub fn memory_rollup(text: &[u8]) -> Memory {
    let mut memory = Memory::default();
    for (name, value) in keyed_lines(text) {
        let target = match name {
            b"Pss" => &mut memory.pss_bytes,
            b"Private_Clean" | b"Private_Dirty" | b"Private_Hugetlb" => &mut memory.private_bytes,
            b"Swap" => &mut memory.swap_bytes,
            _ => continue,
        };
        let digits = value.strip_suffix(b" kB");
        *target += digits.and_then(number).unwrap_or(0) * 1024;
    }
    memory
}

/// Parses the voluntary and involuntary context switches in a `/proc/PID/task/TID/status`.
pub fn context_switches(text: &[u8]) -> Option<(u64, u64)> {
    let mut voluntary = None;
    let mut involuntary = None;
    // They are the last two of about fifty lines.
    for line in text.rsplit(|&byte| byte == b'\n') {
        if let Some(value) = line.strip_prefix(b"voluntary_ctxt_switches:") {
            voluntary = number(value.trim_ascii());
        } else if let Some(value) = line.strip_prefix(b"nonvoluntary_ctxt_switches:") {
            involuntary = number(value.trim_ascii());
        }
        if let (Some(voluntary), Some(involuntary)) = (voluntary, involuntary) {
            return Some((voluntary, involuntary));
        }
    }
    None
}

/// Parses a decimal number without sign or spaces.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit <= 9)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_parentheses_does_not_shift_fields() {
        let text = b"4711 (a) b (c) S 17 4711 4711 0 -1 4194560 31 32 3 4 150 50 25 12 20 0 9 0 98765 1000000 2560 18446744073709551615 1";
        let expected = ProcessStat {
            state: b'S',
            parent: 17,
            minor_faults: 31,
            children_minor_faults: 32,
            major_faults: 3,
            children_major_faults: 4,
            user_ticks: 150,
            system_ticks: 50,
            children_user_ticks: 25,
            children_system_ticks: 12,
            threads: 9,
            resident_pages: 2560,
        };
        assert_eq!(process_stat(text), Some(expected));
    }

    #[test]
    fn truncated_stat_is_rejected() {
        assert_eq!(process_stat(b"4711 (a) S 17 47"), None);
        assert_eq!(process_stat(b""), None);
    }

    #[test]
    fn only_single_cpus_are_read() {
        let text = b"cpu  3 3 3 3 3 3 3 3 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu11 0 0 0 9 0 0 0 1 0 0\nintr 5 1\n";
        let lines: Vec<_> = cpu_lines(text).collect();
        assert_eq!(lines, [(0, [1, 2, 3, 4, 5, 6, 7, 8]), (11, [0, 0, 0, 9, 0, 0, 0, 1])]);
    }

    #[test]
    fn memory_is_in_bytes() {
        let text = b"55d0-7ffc ---p 00000000 00:00 0    [rollup]\nRss:  900 kB\nPss:  500 kB\nPss_Dirty: 9 kB\nPrivate_Clean:  3 kB\nPrivate_Dirty:  4 kB\nSwap:  2 kB\nSwapPss: 7 kB\n";
        let expected = Memory { pss_bytes: 500 * 1024, private_bytes: 7 * 1024, swap_bytes: 2 * 1024 };
        assert_eq!(memory_rollup(text), expected);
    }

    #[test]
    fn io_counters_are_read_by_name() {
        let text = b"rchar: 10\nwchar: 20\nsyscr: 1\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 3\n";
        let expected = ProcessIo { rchar: 10, wchar: 20, disk_read: 4096, disk_written: 8192 };
        assert_eq!(process_io(text), expected);
    }

    #[test]
    fn context_switches_are_at_the_end() {
        let text = b"Name:\tx\nThreads:\t1\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t4\n";
        assert_eq!(context_switches(text), Some((17, 4)));
        assert_eq!(context_switches(b"Name:\tx\n"), None);
    }
}
