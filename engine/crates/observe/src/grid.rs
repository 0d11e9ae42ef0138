//! When samples are due: arithmetic on instants, no clock of its own.

use std::time::{Duration, Instant};

/// A grid of instants: `start + k × period`. A late sweep moves the next one to the grid, not by a period from where it ended.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    start: Instant,
    period: Duration,
    next: u64,
}

impl Grid {
    /// A grid whose first instant is `start`.
    pub fn new(start: Instant, period: Duration) -> Self {
        let period = period.max(Duration::from_millis(1));
        Self {
            start,
            period,
            next: 0,
        }
    }

    /// When the next sample is due.
    pub fn due(&self) -> Instant {
        self.start + Duration::from_nanos(self.period_ns().saturating_mul(self.next))
    }

    /// Takes the point that is due and every later one that has passed too. False: nothing is due yet.
    pub fn take(&mut self, now: Instant) -> bool {
        if now < self.due() {
            return false;
        }
        let elapsed = u64::try_from((now - self.start).as_nanos()).unwrap_or(u64::MAX);
        self.next = elapsed / self.period_ns() + 1;
        true
    }

    fn period_ns(&self) -> u64 {
        u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_sample_does_not_shift_the_ones_after_it() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut grid = Grid::new(start, Duration::from_millis(100));
        assert!(grid.take(at(0)));
        assert!(!grid.take(at(99)));
        assert!(grid.take(at(130)));
        assert_eq!(grid.due(), at(200));
        assert!(grid.take(at(450)), "the points at 200, 300 and 400 are one");
        assert_eq!(grid.due(), at(500));
    }
}
