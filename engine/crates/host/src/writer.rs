//! The writer thread: the only one that waits for the reader of the records.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::record::Record;

/// Time for the last records if the reader is slow.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The thread that writes records. The host itself never waits for the reader.
pub struct Writer {
    /// Disconnected once everything is written or the reader is gone.
    finished: Receiver<()>,
}

impl Writer {
    /// Starts the thread. It ends when all senders are dropped or the reader is gone.
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
        std::thread::Builder::new().name("write".to_owned()).spawn(write)?;
        Ok(Self { finished })
    }

    /// Waits until the last records are written, for at most 1 s. Call this after the host has run.
    pub fn finish(self) {
        let _ = self.finished.recv_timeout(FLUSH_TIMEOUT);
    }
}
