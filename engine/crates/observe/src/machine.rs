//! The machine as a whole: the times of its CPUs, and the pressure on its resources.

use std::os::fd::OwnedFd;

use crate::Error;
use crate::parse::{self, CpuTicks};
use crate::procfs::Procfs;
use crate::sample::{Cpu, Pressure, Pressures};

/// The open `/proc/stat`.
pub struct Cpus(OwnedFd);

impl Cpus {
    pub fn open(procfs: &mut Procfs) -> Result<Self, Error> {
        let file = procfs.open(format_args!("stat")).map_err(unreadable)?;
        Ok(Self(file))
    }

    pub fn read(&self, procfs: &mut Procfs) -> Result<Vec<Cpu>, Error> {
        let text = procfs.read_again(&self.0).map_err(unreadable)?;
        Ok(parse::cpu_lines(text).map(|(cpu, ticks)| cpu_seconds(cpu, &ticks)).collect())
    }
}

fn unreadable(error: rustix::io::Errno) -> Error {
    Error::Unreadable("/proc/stat".to_owned(), error.into())
}

fn cpu_seconds(cpu: u32, ticks: &CpuTicks) -> Cpu {
    let seconds = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    let [user, nice, system, idle, iowait, irq, softirq, steal] = *ticks;
    Cpu {
        cpu,
        user_s: seconds(user + nice),
        system_s: seconds(system),
        idle_s: seconds(idle),
        iowait_s: seconds(iowait),
        irq_s: seconds(irq),
        softirq_s: seconds(softirq),
        steal_s: seconds(steal),
    }
}

/// Reads the pressure of the machine. Returns `None` if the kernel does not count it.
pub fn read_pressures(procfs: &mut Procfs) -> Option<Pressures> {
    let mut read = |resource: &str| {
        let text = procfs.read(format_args!("pressure/{resource}")).ok()?;
        Some(parse_pressure(text))
    };
    Some(Pressures { cpu: read("cpu")?, memory: read("memory")?, io: read("io")? })
}

/// Parses `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234` and the same for `full`. Totals are in microseconds.
fn parse_pressure(text: &[u8]) -> Pressure {
    let mut pressure = Pressure::default();
    for line in text.split(|&byte| byte == b'\n') {
        let mut words = parse::words(line);
        let target = match words.next() {
            Some(b"some") => &mut pressure.some_s,
            Some(b"full") => &mut pressure.full_s,
            _ => continue,
        };
        let total = words.find_map(|word| word.strip_prefix(b"total="));
        *target = total.and_then(parse::number).unwrap_or(0) as f64 / 1e6;
    }
    pressure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_in_seconds() {
        let text = b"some avg10=1.00 avg60=0.50 avg300=0.10 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n";
        let expected = Pressure { some_s: 2.5, full_s: 0.5 };
        assert_eq!(parse_pressure(text), expected);
    }
}
