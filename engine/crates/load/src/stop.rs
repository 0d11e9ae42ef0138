//! A request to end a load early: by a signal, a closed input, or a reader that has gone.

use std::sync::atomic::{AtomicU8, Ordering};

use weir_record::StopReason;

const RUNNING: u8 = 0;
const SIGNAL: u8 = 1;
const INPUT: u8 = 2;
const FIRST_FAILURE: u8 = 3;

/// Shared by the load and the threads that may end it. Load threads look at it at least every 20 ms.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

impl Stop {
    /// Asks the load to end; the first reason given is the one that is reported.
    pub fn request(&self, reason: StopReason) {
        let reason = match reason {
            StopReason::Duration | StopReason::Complete => return,
            StopReason::Signal => SIGNAL,
            StopReason::Input => INPUT,
            StopReason::FirstFailure => FIRST_FAILURE,
        };
        // The first reason stays; that it is already there is fine.
        let _ = self
            .0
            .compare_exchange(RUNNING, reason, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether the load should end.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) != RUNNING
    }

    /// Why the load ended, or will.
    pub fn reason(&self) -> StopReason {
        match self.0.load(Ordering::Relaxed) {
            SIGNAL => StopReason::Signal,
            INPUT => StopReason::Input,
            FIRST_FAILURE => StopReason::FirstFailure,
            _ => StopReason::Duration,
        }
    }
}
