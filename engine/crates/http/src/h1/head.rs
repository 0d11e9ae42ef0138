//! The head of a response, and how it frames the bytes that follow.

use std::mem::MaybeUninit;

use crate::{HttpError, MAX_HEAD_BYTES, MAX_HEADERS};

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After this many bytes.
    Length(u64),
    /// After the chunk of size 0.
    Chunked,
    /// At the end of the connection.
    UntilClose,
    /// The head is an interim one (1xx); the final head follows.
    Interim,
}

/// The facts of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) keep_alive: bool,
    pub(crate) framing: Framing,
}

/// Returns the rule for heads that RFC 9112 lets a client accept: folded lines (section 5.2) and a space before the
/// colon (section 5.1) are read, a line that is no field is left out.
fn lenient() -> httparse::ParserConfig {
    let mut config = httparse::ParserConfig::default();
    config
        .allow_multiple_spaces_in_response_status_delimiters(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .ignore_invalid_headers_in_responses(true);
    config
}

/// Returns the value of the first field of this name in a whole head.
pub(crate) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    lenient().parse_response(&mut httparse::Response::new(&mut headers), head).ok()?;
    headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value.trim_ascii())
}

/// Returns whether a final response has no body, whatever its fields say (RFC 9112, section 6.3).
pub fn is_bodiless(status: u16, to_head_request: bool) -> bool {
    to_head_request || matches!(status, 204 | 304)
}

/// Parses a head at the beginning of `bytes`. Returns it with its length, `None` if more bytes are needed. The response
/// to a HEAD request has no body, whatever its fields say.
pub(crate) fn parse_head(bytes: &[u8], to_head_request: bool) -> Result<Option<(Head, usize)>, HttpError> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = lenient().parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    let length = match parsed.map_err(HttpError::Head)? {
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(length) if length > MAX_HEAD_BYTES => {
            return Err(HttpError::HeadTooLarge);
        }
        httparse::Status::Complete(length) => length,
    };
    let status = response.code.unwrap_or(0);
    let version = response.version.unwrap_or(0);
    let mut fields = Fields::default();
    for header in &*response.headers {
        fields.take(header.name, header.value)?;
    }
    let framing = match status {
        101 => return Err(HttpError::Upgrade),
        100..=199 => Framing::Interim,
        200..=999 if is_bodiless(status, to_head_request) => Framing::Length(0),
        200..=999 => fields.framing(),
        // Three digits that are no status class.
        _ => return Err(HttpError::Head(httparse::Error::Status)),
    };
    let persistent = if version == 0 { fields.keep_alive && !fields.close } else { !fields.close };
    let head = Head { status, keep_alive: persistent && framing != Framing::UntilClose, framing };
    Ok(Some((head, length)))
}

/// The fields that decide where a response ends and whether another may follow.
#[derive(Default)]
struct Fields {
    content_length: Option<u64>,
    transfer_encoding: bool,
    chunked_last: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn take(&mut self, name: &str, value: &[u8]) -> Result<(), HttpError> {
        // The length is looked at first: most headers are none of these.
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                for token in tokens(value) {
                    self.close |= token.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                for token in tokens(value) {
                    let length = decimal(token).ok_or(HttpError::ContentLength)?;
                    if self.content_length.is_some_and(|other| other != length) {
                        return Err(HttpError::ContentLength);
                    }
                    self.content_length = Some(length);
                }
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                self.transfer_encoding = true;
                if let Some(last) = tokens(value).last() {
                    self.chunked_last = last.eq_ignore_ascii_case(b"chunked");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// RFC 9112, section 6.3: Transfer-Encoding wins over Content-Length; with neither, the body ends with the
    /// connection.
    fn framing(&self) -> Framing {
        match (self.transfer_encoding, self.content_length) {
            (true, _) if self.chunked_last => Framing::Chunked,
            (true, _) | (false, None) => Framing::UntilClose,
            (false, Some(length)) => Framing::Length(length),
        }
    }
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}
