//! The length of a response, by which both clients recognise its end.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::TcpStream;

/// Sends the request once and reads the response. Returns the length of its head and body.
pub(crate) fn length(stream: &mut TcpStream, request: &[u8]) -> io::Result<usize> {
    stream.write_all(request)?;
    let mut buffer = vec![0; 64 * 1024];
    let mut received = 0;
    loop {
        match stream.read(&mut buffer[received..])? {
            0 => return Err(closed()),
            read => received += read,
        }
        if let Some(length) = announced_length(&buffer[..received])? {
            if received >= length {
                return Ok(length);
            }
        }
    }
}

/// Returns the error for a connection that the server closed.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")
}

/// Fails after a partial write: a request is far smaller than a socket's buffer, so a partial write is an error.
#[inline]
pub(crate) fn check_sent(sent: usize, request: &[u8]) -> io::Result<()> {
    if sent == request.len() {
        return Ok(());
    }
    let message = format!("wrote {sent} of {} bytes", request.len());
    Err(Error::new(ErrorKind::WriteZero, message))
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
        .ok_or_else(|| Error::new(ErrorKind::InvalidData, "the first response has no Content-Length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_head_plus_content_length() -> io::Result<()> {
        let response = b"HTTP/1.1 200 OK\r\nContent-length: 5\r\n\r\nhello";
        assert_eq!(announced_length(response)?, Some(response.len()));
        assert_eq!(announced_length(&response[..20])?, None);
        assert!(announced_length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        Ok(())
    }
}
