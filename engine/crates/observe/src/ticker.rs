//! The times of periodic samples: arithmetic on instants, without a clock.

use std::time::{Duration, Instant};

/// A periodic ticker with ticks at `start + k × period`. A late tick does not delay the next one.
#[derive(Clone, Copy, Debug)]
pub struct Ticker {
    start: Instant,
    period: Duration,
    next: u64,
}

impl Ticker {
    /// Returns a ticker whose first tick is at `start`.
    pub fn new(start: Instant, period: Duration) -> Self {
        let period = period.max(Duration::from_millis(1));
        Self { start, period, next: 0 }
    }

    /// Returns the time of the next tick.
    pub fn due(&self) -> Instant {
        self.start + Duration::from_nanos(self.period_ns().saturating_mul(self.next))
    }

    /// Consumes every tick up to `now`. Returns whether there was one.
    pub fn tick(&mut self, now: Instant) -> bool {
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
    fn late_tick_does_not_delay_the_next() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut ticker = Ticker::new(start, Duration::from_millis(100));
        assert!(ticker.tick(at(0)));
        assert!(!ticker.tick(at(99)));
        assert!(ticker.tick(at(130)));
        assert_eq!(ticker.due(), at(200));
        assert!(ticker.tick(at(450)), "the ticks at 200, 300 and 400 are one");
        assert_eq!(ticker.due(), at(500));
    }
}
