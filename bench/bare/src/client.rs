//! The common parts of both loops: open connections, the request, and the length of its response.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Time for the server to accept one connection; weir waits as long.
const ACCEPT: Duration = Duration::from_micros(20);

/// Open connections, the request that they all send, and the response's length.
pub(crate) struct Client {
    pub(crate) streams: Vec<TcpStream>,
    pub(crate) request: Vec<u8>,
    pub(crate) answer_bytes: usize,
}

/// The result of a loop.
pub(crate) struct Counted {
    pub(crate) answers: u64,
    pub(crate) elapsed_s: f64,
}

impl Client {
    /// Opens the connections and sends the request once on the first one, to learn the length of a response.
    pub(crate) fn connect(address: &str, request: Vec<u8>, connections: usize) -> io::Result<Self> {
        let mut streams = Vec::with_capacity(connections);
        for _ in 0..connections {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let first = streams
            .first_mut()
            .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "expected at least 1 connection"))?;
        let answer_bytes = length_of_answer(first, &request)?;
        std::thread::sleep(ACCEPT * u32::try_from(connections).unwrap_or(u32::MAX));
        Ok(Self {
            streams,
            request,
            answer_bytes,
        })
    }
}

/// Adds received bytes to those of the same response and returns whether the response is complete. Fails if more bytes
/// came than one response has, because each connection has one request at a time.
#[inline]
pub(crate) fn is_whole(received: &mut u32, bytes: usize, answer_bytes: usize) -> io::Result<bool> {
    *received += bytes as u32;
    if (*received as usize) < answer_bytes {
        return Ok(false);
    }
    if *received as usize > answer_bytes {
        return Err(Error::new(
            ErrorKind::InvalidData,
            "a response is longer than the first one",
        ));
    }
    *received = 0;
    Ok(true)
}

/// Returns the error for a connection that the server closed.
pub(crate) fn ended() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")
}

fn length_of_answer(stream: &mut TcpStream, request: &[u8]) -> io::Result<usize> {
    stream.write_all(request)?;
    let mut buffer = vec![0; 64 * 1024];
    let mut received = 0;
    loop {
        match stream.read(&mut buffer[received..])? {
            0 => return Err(ended()),
            read => received += read,
        }
        if let Some(length) = announced_length(&buffer[..received])? {
            if received >= length {
                return Ok(length);
            }
        }
    }
}

/// Returns the length of head and body, or `None` until the head is complete.
fn announced_length(received: &[u8]) -> io::Result<Option<usize>> {
    let Some(head) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(None);
    };
    String::from_utf8_lossy(&received[..head])
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok())
        .map(|body| Some(head + 4 + body))
        .ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidData,
                "the first response has no Content-Length",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_as_long_as_its_head_and_the_length_that_it_announces() -> io::Result<()> {
        let answer = b"HTTP/1.1 200 OK\r\nContent-length: 5\r\n\r\nhello";
        assert_eq!(announced_length(answer)?, Some(answer.len()));
        assert_eq!(announced_length(&answer[..20])?, None);
        assert!(announced_length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        Ok(())
    }

    #[test]
    fn pieces_of_an_answer_add_up_to_one_and_no_more() -> io::Result<()> {
        let mut received = 0;
        assert!(!is_whole(&mut received, 60, 100)?);
        assert!(is_whole(&mut received, 40, 100)?);
        assert!(is_whole(&mut received, 100, 100)?);
        assert!(is_whole(&mut received, 101, 100).is_err());
        Ok(())
    }
}
