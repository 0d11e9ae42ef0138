//! The chunked transfer coding, decoded as its bytes come.

use crate::{HttpError, MAX_HEAD_BYTES};

/// Where in a chunked body the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerLine,
    TrailerLineLf,
    EndLf,
}

/// The state of one chunked body: 24 bytes, whatever the body's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunked {
    /// The chunk's size while it is read, then its missing bytes.
    left: u64,
    /// Bytes of extensions and trailers so far, which are limited.
    overhead: u32,
    digits: u8,
    place: Place,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self { left: 0, overhead: 0, digits: 0, place: Place::Size }
    }

    /// Takes bytes. Returns how many belong to the body, and whether the body has ended.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut on_body: impl FnMut(&[u8])) -> Result<(usize, bool), HttpError> {
        let mut at = 0;
        while at < bytes.len() {
            if self.place == Place::Data {
                let here = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - at);
                on_body(&bytes[at..at + here]);
                at += here;
                self.left -= here as u64;
                if self.left == 0 {
                    self.place = Place::DataCr;
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            if self.step(byte)? {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// Takes a byte that is not data; true at the end of the body.
    fn step(&mut self, byte: u8) -> Result<bool, HttpError> {
        self.place = match (self.place, byte) {
            (Place::Size, b'\r') if self.digits > 0 => Place::SizeLf,
            (Place::Size, b';' | b' ' | b'\t') if self.digits > 0 => Place::Extension,
            (Place::Size, _) => {
                let digit = (byte as char).to_digit(16).ok_or(HttpError::ChunkSize)?;
                if self.digits == 16 {
                    return Err(HttpError::ChunkSize);
                }
                self.digits += 1;
                self.left = self.left << 4 | u64::from(digit);
                Place::Size
            }
            (Place::Extension, b'\r') => Place::SizeLf,
            (Place::Extension, b'\n') => return Err(HttpError::ChunkSize),
            (Place::Extension, _) => self.limited(Place::Extension)?,
            (Place::SizeLf, b'\n') => {
                self.digits = 0;
                if self.left == 0 { Place::TrailerStart } else { Place::Data }
            }
            (Place::SizeLf, _) => return Err(HttpError::ChunkSize),
            (Place::DataCr, b'\r') => Place::DataLf,
            (Place::DataLf, b'\n') => Place::Size,
            (Place::DataCr | Place::DataLf, _) => return Err(HttpError::ChunkEnd),
            (Place::TrailerStart, b'\r') => Place::EndLf,
            (Place::TrailerLine, b'\r') => Place::TrailerLineLf,
            (Place::TrailerStart | Place::TrailerLine, _) => self.limited(Place::TrailerLine)?,
            (Place::TrailerLineLf, b'\n') => Place::TrailerStart,
            (Place::EndLf, b'\n') => return Ok(true),
            (Place::TrailerLineLf | Place::EndLf, _) => return Err(HttpError::ChunkEnd),
            (Place::Data, _) => Place::Data,
        };
        Ok(false)
    }

    fn limited(&mut self, place: Place) -> Result<Place, HttpError> {
        self.overhead += 1;
        if self.overhead as usize > MAX_HEAD_BYTES {
            return Err(HttpError::TrailersTooLarge);
        }
        Ok(place)
    }
}
