//! The parts of a request, and their rendering.
//!
//! Hot path. Rules: constant text is one copy; nothing is allocated once the buffers have grown to the size of a
//! request.

use weir_schedule::Random;

/// A part of a request.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// The bytes themselves.
    Literal(Box<[u8]>),
    /// The number of the request.
    Seq,
    /// A random UUID.
    Uuid,
    /// A random number from `low` to `low + count - 1`. A count of 0 means 2^64.
    Int { low: i64, count: u64 },
    /// So many random letters.
    Word(u32),
    /// A column of the user's row of a feeder.
    Cell { feeder: usize, column: usize, place: Place },
    /// One of the user's variables.
    Variable { index: usize, place: Place },
}

/// The place of a value in a request. It decides which bytes are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The beginning of the path: the value is a path or a URL, for example a `Location`.
    Target,
    /// Elsewhere in path and query: the value is data.
    Path,
    /// A header's value.
    Header,
    /// The body.
    Body,
}

/// The values for a request's placeholders.
pub(crate) struct Values<'a> {
    pub(crate) seq: u64,
    pub(crate) random: &'a mut Random,
    /// The text of a cell, by feeder and column.
    pub(crate) cell: &'a dyn Fn(usize, usize) -> &'a [u8],
    pub(crate) variables: &'a [Vec<u8>],
}

/// Appends the parts.
#[inline]
pub(crate) fn render(parts: &[Part], values: &mut Values<'_>, out: &mut Vec<u8>) {
    for part in parts {
        match part {
            Part::Literal(bytes) => out.extend_from_slice(bytes),
            Part::Seq => append_number(values.seq, out),
            Part::Uuid => append_uuid(values.random, out),
            Part::Int { low, count } => {
                let offset = match count {
                    0 => values.random.bits(),
                    count => values.random.below(*count),
                };
                append_number(low.wrapping_add_unsigned(offset), out);
            }
            Part::Word(length) => append_word(*length, values.random, out),
            Part::Cell { feeder, column, place } => append_value((values.cell)(*feeder, *column), *place, out),
            Part::Variable { index, place } => {
                append_value(&values.variables[*index], *place, out);
            }
        }
    }
}

pub(crate) fn append_number(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn append_word(length: u32, random: &mut Random, out: &mut Vec<u8>) {
    const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    // 11 letters of 52 take 62.7 bits. A fresh number for each 5 letters keeps their inequality below 10^-9.
    let mut left = length;
    while left > 0 {
        let mut bits = random.bits();
        for _ in 0..left.min(5) {
            let product = u128::from(bits) * LETTERS.len() as u128;
            out.push(LETTERS[(product >> 64) as usize]);
            bits = product as u64;
        }
        left -= left.min(5);
    }
}

/// RFC 9562, version 4.
fn append_uuid(random: &mut Random, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
    bits = bits & !(0xf << 76) | 4 << 76;
    bits = bits & !(0b11 << 62) | 0b10 << 62;
    let mut text = [b'-'; 36];
    let mut shift = 128;
    for (at, byte) in text.iter_mut().enumerate() {
        if !matches!(at, 8 | 13 | 18 | 23) {
            shift -= 4;
            *byte = DIGITS[(bits >> shift) as usize & 0xf];
        }
    }
    out.extend_from_slice(&text);
}

/// Appends the value of a placeholder.
fn append_value(value: &[u8], place: Place, out: &mut Vec<u8>) {
    match place {
        Place::Body => out.extend_from_slice(value),
        // RFC 9110, section 5.5: these bytes are replaced by a space.
        Place::Header => out.extend(value.iter().map(|&byte| match byte {
            b'\r' | b'\n' | 0 => b' ',
            byte => byte,
        })),
        Place::Path => append_encoded(value, out, is_data),
        Place::Target => {
            let path = without_authority(value);
            if !path.starts_with(b"/") {
                out.push(b'/');
            }
            append_encoded(path, out, is_url);
        }
    }
}

/// Appends text of a path from the plan.
pub(crate) fn append_path(text: &str, out: &mut Vec<u8>) {
    append_encoded(text.as_bytes(), out, is_url);
}

fn append_encoded(bytes: &[u8], out: &mut Vec<u8>, is_kept: fn(u8) -> bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if is_kept(byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]);
        }
    }
}

/// Returns whether a byte of data needs no escape: RFC 3986's unreserved characters, and those that paths commonly
/// contain.
fn is_data(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/:@,".contains(&byte)
}

/// Returns whether a byte of a URL needs no escape.
fn is_url(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte)
}

/// Returns `/path` of `http://host/path`, and of `/path`.
fn without_authority(url: &[u8]) -> &[u8] {
    let scheme = [&b"http://"[..], b"https://"]
        .into_iter()
        .find(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let Some(scheme) = scheme else { return url };
    let rest = &url[scheme.len()..];
    let end = rest.iter().position(|&byte| byte == b'/' || byte == b'?');
    &rest[end.unwrap_or(rest.len())..]
}
