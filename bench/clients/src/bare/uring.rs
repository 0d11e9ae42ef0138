//! The loop on io_uring, without a system call per request. One receive operation per connection fills shared buffers
//! again and again. The next wait submits all pending sends. The kernel reports only failed sends.

mod ring;

use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{Client, Counted, is_complete};
use crate::response;
use ring::Ring;

/// Sends requests on all connections until the time is over.
pub(super) fn run(client: Client, duration: Duration) -> io::Result<Counted> {
    let mut ring = Ring::new(client.streams.len(), client.request)?;
    let mut received = vec![0_u32; client.streams.len()];
    let mut responses = 0;
    let start = Instant::now();
    for (slot, stream) in client.streams.iter().enumerate() {
        ring.receive(stream, slot as u32)?;
        ring.send(stream, slot as u32)?;
    }
    while start.elapsed() < duration {
        ring.submit_and_wait()?;
        while let Some(completed) = ring.next() {
            let slot = completed.slot as usize;
            let stream = &client.streams[slot];
            match completed.result {
                Ok(0) => return Err(response::closed()),
                Ok(bytes) => {
                    if is_complete(&mut received[slot], bytes as usize, client.response_bytes)? {
                        responses += 1;
                        ring.send(stream, completed.slot)?;
                    }
                }
                // All buffers were full; they are empty again when the new receive is submitted.
                Err(Errno::NOBUFS) => {}
                Err(errno) => return Err(errno.into()),
            }
            if !completed.goes_on {
                ring.receive(stream, completed.slot)?;
            }
        }
    }
    Ok(Counted { responses, elapsed_s: start.elapsed().as_secs_f64() })
}
