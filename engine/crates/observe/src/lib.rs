//! What processes cost and what their threads do, read from /proc: process trees, their threads, cgroups and network namespaces, and the
//! machine around them.
//!
//! An [`Observer`] holds *groups*: a named process tree each. [`Observer::sweep`] reads all of them once and gives a [`Sample`]. When to
//! sweep is the caller's business; [`Grid`] says when the next one is due.
//!
//! It is not a profiler and attaches to nothing: it sees what the kernel counts anyway. Two limits follow. The CPU of a live process comes in
//! ticks of 10 ms, and the CPU of a child whose parent ignores SIGCHLD is dropped by the kernel when that child ends; neither where a tree has
//! a control group to itself.
//!
//! Words: a *procfs* is one mounted instance of /proc, which shows one PID namespace; a *root* is the process a tree hangs from.
//!
//! Cost is measured by `tests/cost.rs`, and what it does to a load on the same CPU by `weir-engine/tests/observe_delay.rs`. Reading one thread
//! takes 0.5 us where the caches are warm and 1 to 3 us where they are not, and half as much again if it ran; `sweep::ThreadBudget` keeps that
//! within its share. After 20 us at work the CPU is offered, before the next reading, to whoever waits for it. Proportional memory takes 3 to 4
//! ms a GiB: of processes with more than 256 MiB it is read only when a full sample is asked for.

mod account;
mod counters;
mod descriptors;
mod family;
mod grid;
pub mod hierarchies;
mod machine;
mod member;
mod network;
mod observer;
mod parse;
mod pools;
mod procfs;
mod sample;
mod scope;
mod sweep;
mod thread_state;
mod threads;
mod throttling;
mod tree;

use std::fmt;

pub use descriptors::raise_open_files;
pub use family::descendants;
pub use grid::Grid;
pub use observer::{Observer, Reading};
pub use sample::{
    Cpu, Group, Network, ObserverCost, PoolTimes, Pressure, Pressures, Sample, Sockets,
};

/// What can go wrong.
#[derive(Debug)]
pub enum Error {
    /// There is no process with this PID.
    NoSuchProcess(i32),
    /// /proc cannot be read; the path and why.
    Unreadable(String, std::io::Error),
}

impl Error {
    /// The next thing to try.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSuchProcess(_) => "`ps -e -o pid,args` lists the processes there are",
            Self::Unreadable(..) => "`mount -t proc proc /proc` mounts it",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchProcess(pid) => {
                write!(formatter, "there is no process with PID {pid}")
            }
            Self::Unreadable(path, error) => write!(formatter, "{path} cannot be read: {error}"),
        }
    }
}

impl std::error::Error for Error {}
