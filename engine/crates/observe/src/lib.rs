//! Observes processes through /proc: the resources of process trees, the states of their threads, and the machine
//! around them.
//!
//! An [`Observer`] holds *groups*; each is a named process tree. [`Observer::sweep`] reads all of them once and returns
//! a [`Sample`]. The caller decides when to sweep, for example by a [`Ticker`].
//!
//! The observer is no profiler. It attaches to no process and reads only what the kernel counts anyway. This has two
//! limits. The CPU time of a live process comes in ticks of 10 ms. The kernel drops the CPU time of a child if its
//! parent ignores SIGCHLD. A tree with its own control group has neither limit.
//!
//! A *procfs* is one mounted instance of /proc, which shows one PID namespace. A *root* is the topmost process of a
//! tree.
//!
//! `tests/cost.rs` measures the cost, and `weir-engine/tests/observe_delay.rs` the delay of a load on the same CPU.
//! Reading one thread takes 0.5 us with warm caches and 1 to 3 us with cold ones. It takes half as much again if the
//! thread ran. `budget::ThreadBudget` limits this cost. After 20 us of work the observer yields its CPU before the next
//! read. Proportional memory takes 3 to 4 ms per GiB, so processes above 256 MiB have it in full samples only.

mod budget;
mod cgroup_cpu;
mod counters;
mod descendants;
mod descriptors;
pub mod hierarchies;
mod machine;
mod network;
mod observer;
mod parse;
mod pools;
mod process;
mod procfs;
mod procfs_trees;
mod sample;
mod thread_state;
mod threads;
mod throttling;
mod ticker;
mod tree;

pub use descendants::own_descendants;
pub use descriptors::raise_open_files;
pub use observer::{Observer, Reading};
pub use sample::{Cpu, Group, Network, ObserverCost, PoolTimes, Pressure, Pressures, Sample, Sockets};
pub use ticker::Ticker;

/// An error of the observer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No process has this PID.
    #[error("there is no process with PID {0}")]
    NoSuchProcess(i32),
    /// A file of /proc is not readable: its path, and the error.
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, std::io::Error),
}

impl Error {
    /// Returns the next thing to try.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSuchProcess(_) => "`ps -e -o pid,args` lists the processes there are",
            Self::Unreadable(..) => "`mount -t proc proc /proc` mounts it",
        }
    }
}
