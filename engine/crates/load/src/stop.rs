//! A request to end a load early: by a signal, a closed input, a closed output or the first failure.

use std::sync::atomic::{AtomicU8, Ordering};

use weir_record::StopReason;

const RUNNING: u8 = 0;
const SIGNAL: u8 = 1;
const INPUT: u8 = 2;
const FIRST_FAILURE: u8 = 3;

/// Shared by the load and the threads that may end it. Load threads read it at least every 20 ms.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

impl Stop {
    /// Asks the load to end. Only the first reason is reported.
    pub fn request(&self, reason: StopReason) {
        let reason = match reason {
            StopReason::Duration | StopReason::Complete => return,
            StopReason::Signal => SIGNAL,
            StopReason::Input => INPUT,
            StopReason::FirstFailure => FIRST_FAILURE,
        };
        // Fails if there is a reason already, which stays.
        let _ = self.0.compare_exchange(RUNNING, reason, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns whether the load should end.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) != RUNNING
    }

    /// Returns why the load ended or will end.
    pub fn reason(&self) -> StopReason {
        match self.0.load(Ordering::Relaxed) {
            SIGNAL => StopReason::Signal,
            INPUT => StopReason::Input,
            FIRST_FAILURE => StopReason::FirstFailure,
            _ => StopReason::Duration,
        }
    }
}
