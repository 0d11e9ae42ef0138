//! The bare loops: how many requests per second does a client reach that only sends and counts?
//!
//! A loop has a fixed number of connections and one thread. After a complete response it sends the next request on the
//! same connection. It has no histogram, and looks at the clock once per batch of events.

mod epoll;
mod uring;

use std::io::{self, Error, ErrorKind};
use std::net::TcpStream;
use std::time::Duration;

use crate::{positive, response, usage};

/// Time for the server to accept one connection; weir waits as long.
const ACCEPT: Duration = Duration::from_micros(20);

/// Open connections, the request that they all send, and the response's length.
struct Client {
    streams: Vec<TcpStream>,
    request: Vec<u8>,
    response_bytes: usize,
}

/// The result of a loop.
struct Counted {
    responses: u64,
    elapsed_s: f64,
}

/// Runs a loop. Returns its result as JSON.
pub(crate) fn run(arguments: &[String]) -> io::Result<String> {
    let usage = || usage("bare epoll|io_uring ADDRESS REQUEST_FILE CONNECTIONS DURATION_S");
    let [back_end, address, request_file, connections, duration_s] = arguments else {
        return Err(usage());
    };
    let connections = connections.parse().map_err(|_| usage())?;
    let duration = Duration::from_secs_f64(positive(duration_s).ok_or_else(usage)?);
    let client = Client::connect(address, std::fs::read(request_file)?, connections)?;
    let counted = match back_end.as_str() {
        "epoll" => epoll::run(client, duration)?,
        "io_uring" => uring::run(client, duration)?,
        _ => return Err(usage()),
    };
    Ok(format!(
        r#"{{"completed": {}, "throughput_rps": {}}}"#,
        counted.responses,
        counted.responses as f64 / counted.elapsed_s
    ))
}

impl Client {
    /// Opens the connections and sends the request once on the first one, to learn the length of a response.
    fn connect(address: &str, request: Vec<u8>, connections: usize) -> io::Result<Self> {
        let mut streams = Vec::with_capacity(connections);
        for _ in 0..connections {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let first =
            streams.first_mut().ok_or_else(|| Error::new(ErrorKind::InvalidInput, "expected at least 1 connection"))?;
        let response_bytes = response::length(first, &request)?;
        std::thread::sleep(ACCEPT * u32::try_from(connections).unwrap_or(u32::MAX));
        Ok(Self { streams, request, response_bytes })
    }
}

/// Adds received bytes to those of the same response and returns whether the response is complete. Fails if more bytes
/// came than one response has, because each connection has one request at a time.
#[inline]
fn is_complete(received: &mut u32, bytes: usize, response_bytes: usize) -> io::Result<bool> {
    *received += bytes as u32;
    if (*received as usize) < response_bytes {
        return Ok(false);
    }
    if *received as usize > response_bytes {
        return Err(Error::new(ErrorKind::InvalidData, "a response is longer than the first one"));
    }
    *received = 0;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_one_response() -> io::Result<()> {
        let mut received = 0;
        assert!(!is_complete(&mut received, 60, 100)?);
        assert!(is_complete(&mut received, 40, 100)?);
        assert!(is_complete(&mut received, 100, 100)?);
        assert!(is_complete(&mut received, 101, 100).is_err());
        Ok(())
    }
}
