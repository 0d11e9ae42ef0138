//! The writing thread: it alone waits for whoever reads the records.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::record::Record;

/// What it gets to pass on the last records when nobody reads them.
const LAST_RECORDS: Duration = Duration::from_secs(1);

/// The thread that writes records, so that the host never waits for whoever reads them.
pub struct Writer {
    /// Disconnected once everything is written or nobody reads.
    finished: Receiver<()>,
}

impl Writer {
    /// Starts the thread. It ends when nobody can send any more, or nobody reads.
    pub(crate) fn start(
        records: Receiver<Record>,
        mut emit: impl FnMut(&Record) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (finishing, finished) = channel();
        let write = move || {
            let _finishing: Sender<()> = finishing;
            for record in records {
                if !emit(&record) {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("write".to_owned())
            .spawn(write)?;
        Ok(Self { finished })
    }

    /// Waits, for a little, until the last records are written. To be called once the host has run.
    pub fn finish(self) {
        let _ = self.finished.recv_timeout(LAST_RECORDS);
    }
}
