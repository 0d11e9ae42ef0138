//! The time of a load: when it began, when it ends, and when its open interval ends.

/// Moments of CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct Window {
    /// Whether the clock runs. Before, connections are opened and nothing is sent or counted.
    pub(crate) is_running: bool,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// The end of the open interval or of the load: later events do not belong to it.
    pub(crate) boundary_ns: u64,
}

impl Window {
    /// Returns the time before a load.
    pub(crate) fn before() -> Self {
        Self { is_running: false, start_ns: 0, end_ns: u64::MAX, boundary_ns: u64::MAX }
    }

    /// The clock starts.
    pub(crate) fn start(&mut self, start_ns: u64, duration_ns: u64, interval_end_ns: u64) {
        self.is_running = true;
        self.start_ns = start_ns;
        self.end_ns = start_ns + duration_ns;
        self.boundary_ns = interval_end_ns.min(self.end_ns);
    }

    /// The load ends now.
    pub(crate) fn end(&mut self, now: u64) {
        self.end_ns = now;
        self.boundary_ns = now;
    }

    /// Returns the latest moment of the load that is not after `now`.
    #[inline]
    pub(crate) fn clamp(&self, now: u64) -> u64 {
        now.min(self.end_ns - 1)
    }
}
