//! The observing thread: sweeps on a grid of time, at the lowest priority, so that a load generator on the same CPU is not held up.
//!
//! It alone owns the observer; the host's event loop tells it what to do over a channel and never waits for it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use weir_observe::{Grid, Observer, Reading};

use crate::isolation::Isolation;
use crate::record::Record;
use weir_sys::process::leads_session;

/// Lowest: whatever else wants the CPU gets it first.
const NICE: i32 = 19;

/// What the thread can be told.
pub enum Order {
    /// Observe a started process. `init` is the parent of its tree.
    Add {
        name: String,
        tier: String,
        init: i32,
        isolation: Isolation,
        /// A control group with nothing else in it.
        account: Option<PathBuf>,
    },
    Remove {
        name: String,
    },
    Begin {
        period: Duration,
        memory_period: Duration,
    },
    End {
        id: u64,
    },
    /// One full sample, now.
    Once {
        id: u64,
    },
}

/// Begun and not ended.
struct Sampling {
    usual: Grid,
    memory: Grid,
}

/// Follows orders until nobody can give any.
pub fn run(mut observer: Observer, orders: &Receiver<Order>, records: &Sender<Record>) {
    be_nice();
    let mut sampling: Option<Sampling> = None;
    loop {
        let order = match &sampling {
            None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(sampling) => orders.recv_timeout(
                sampling
                    .usual
                    .due()
                    .saturating_duration_since(Instant::now()),
            ),
        };
        // A record that nobody takes any more is no reason to end: the host ends when its output is closed.
        match order {
            Ok(Order::Add {
                name,
                tier,
                init,
                isolation,
                account,
            }) => add(
                &mut observer,
                &name,
                &tier,
                init,
                isolation,
                account.as_deref(),
            ),
            Ok(Order::Remove { name }) => observer.remove(&name),
            Ok(Order::Begin {
                period,
                memory_period,
            }) => {
                let now = Instant::now();
                sampling = Some(Sampling {
                    usual: Grid::new(now, period),
                    memory: Grid::new(now, memory_period),
                });
            }
            Ok(Order::End { id }) => {
                sampling = None;
                let _ = records.send(Record::Unobserved { id });
            }
            Ok(Order::Once { id }) => {
                let _ = records.send(sample(&mut observer, Reading::Full, Some(id)));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        if let Some(sampling) = &mut sampling {
            if sampling.usual.take(now) {
                let reading = if sampling.memory.take(now) {
                    Reading::Memory
                } else {
                    Reading::Usual
                };
                let _ = records.send(sample(&mut observer, reading, None));
            }
        }
    }
}

/// Linux knows niceness by thread, and making oneself nicer is always allowed. Where the kernel groups CPU time by session ("autogroup") it
/// holds only inside the session; if the host leads one of its own, that is made as nice. Servers lead theirs, which are not.
fn be_nice() {
    weir_sys::limits::lower_priority(NICE);
    if leads_session() {
        // Not there: the kernel does not group by session.
        let _ = std::fs::write("/proc/self/autogroup", NICE.to_string());
    }
}

fn add(
    observer: &mut Observer,
    name: &str,
    tier: &str,
    init: i32,
    isolation: Isolation,
    account: Option<&Path>,
) {
    let as_namespace =
        isolation == Isolation::Namespace && observer.add_namespace(name, tier, init).is_ok();
    if !as_namespace {
        // Fails only where the init has ended, and its group is about to be removed.
        let _ = observer.add_tree(name, tier, init, false);
    }
    if let Some(folder) = account {
        // Without it CPU time is added up from the processes.
        let _ = observer.account(name, folder);
    }
}

fn sample(observer: &mut Observer, reading: Reading, id: Option<u64>) -> Record {
    match observer.sweep(reading) {
        Ok(mut sample) => {
            sample.id = id;
            Record::Sample(sample)
        }
        Err(error) => Record::Error {
            id,
            message: error.to_string(),
            hint: error.hint().to_owned(),
        },
    }
}
