//! Values in JSON text, found without building a tree.
//!
//! A pull scanner: it walks from the beginning of a document to the value that a pointer names, and stops there. It
//! allocates nothing and does not recurse into the document. It validates skipped values only as far as it must to find
//! their ends. If two members have the same name, it finds the first.

use memchr::{memchr, memchr2};
use serde_json::{Number, Value};

/// The text is not JSON, or ends too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// A JSON pointer (RFC 6901), taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(Box<[Token]>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    key: Box<str>,
    /// The token as an index of an array.
    index: Option<usize>,
}

impl Pointer {
    /// Reads a pointer: empty for the whole document, or tokens that each begin with `/`. Returns `None` if the text is
    /// no pointer.
    ///
    /// ```
    /// use weir_scenario::json::{Pointer, find};
    /// let pointer = Pointer::parse("/users/1/name").unwrap();
    /// assert_eq!(find(br#"{"users": [{}, {"name": "Ada"}]}"#, &pointer), Ok(Some(&br#""Ada""#[..])));
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(Box::default()));
        }
        let tokens = text.strip_prefix('/')?.split('/').map(|token| {
            let mut rest = token;
            while let Some(at) = rest.find('~') {
                rest = &rest[at + 1..];
                if !rest.starts_with(['0', '1']) {
                    return None;
                }
            }
            Some(Token::new(&token.replace("~1", "/").replace("~0", "~")))
        });
        tokens.collect::<Option<_>>().map(Self)
    }

    /// Returns the pointer to the document's member of this name.
    pub fn of_key(key: &str) -> Self {
        Self(Box::new([Token::new(key)]))
    }
}

impl Token {
    fn new(key: &str) -> Self {
        let is_index = key == "0" || !key.starts_with('0') && key.bytes().all(|b| b.is_ascii_digit());
        Self { key: key.into(), index: key.parse().ok().filter(|_| is_index) }
    }
}

/// Returns the text of the value that a pointer names, `None` if the document has none.
///
/// # Errors
/// When the text up to the end of the value is not JSON.
pub fn find<'a>(document: &'a [u8], pointer: &Pointer) -> Result<Option<&'a [u8]>, Malformed> {
    let mut scanner = Scanner::new(document);
    for token in &pointer.0 {
        let is_there = match (scanner.peek()?, token.index) {
            (b'{', _) => scanner.enter_member(&token.key)?,
            (b'[', Some(index)) => scanner.enter_element(index)?,
            _ => {
                scanner.value()?;
                false
            }
        };
        if !is_there {
            return Ok(None);
        }
    }
    scanner.value().map(Some)
}

/// Returns whether the text of a value, from [`find`], is equal to a value. Numbers are compared by value and not by
/// spelling. The order of members does not matter.
///
/// # Errors
/// When the text is not JSON.
pub fn equals(text: &[u8], expected: &Value) -> Result<bool, Malformed> {
    Scanner::new(text).equals(expected)
}

/// Appends a value as a request contains it: a string without quotes and escapes, any other value as JSON.
///
/// # Errors
/// When a string has an invalid escape. A part of the string may have been appended.
pub fn append_content(text: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    match text {
        [b'"', content @ .., b'"'] => decode(content, |bytes| {
            out.extend_from_slice(bytes);
            true
        }),
        _ => {
            out.extend_from_slice(text);
            Ok(())
        }
    }
}

/// For a fuzzer: takes bytes as a pointer, a line end and a document, and compares the found value with serde_json's.
///
/// # Panics
/// When they differ.
#[doc(hidden)]
pub fn differential(data: &[u8]) {
    let end = memchr(b'\n', data).unwrap_or(data.len());
    let document = data.get(end + 1..).unwrap_or_default();
    let Some((text, pointer)) =
        std::str::from_utf8(&data[..end]).ok().and_then(|text| Some((text, Pointer::parse(text)?)))
    else {
        return;
    };
    let found = find(document, &pointer);
    if let Ok(Some(value)) = found {
        let _ = append_content(value, &mut Vec::new());
    }
    let Ok(tree) = serde_json::from_slice::<Value>(document) else {
        return;
    };
    // If two members have the same name, serde_json keeps the last. Its own output has one member of each name.
    let written = tree.to_string();
    let found = find(written.as_bytes(), &pointer);
    match (tree.pointer(text), found) {
        (Some(expected), Ok(Some(value))) => assert_eq!(equals(value, expected), Ok(true)),
        (None, Ok(None)) => {}
        (expected, found) => panic!("{text:?}: expected {expected:?}, found {found:?}"),
    }
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the next byte that is not white space, without taking it.
    #[inline]
    fn peek(&mut self) -> Result<u8, Malformed> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Malformed)
    }

    fn take(&mut self, wanted: u8) -> Result<(), Malformed> {
        if self.peek()? != wanted {
            return Err(Malformed);
        }
        self.at += 1;
        Ok(())
    }

    /// Takes a string. Returns the bytes between its quotes, with escapes.
    #[inline]
    fn string(&mut self) -> Result<&'a [u8], Malformed> {
        self.take(b'"')?;
        let start = self.at;
        let mut at = start;
        loop {
            let rest = self.bytes.get(at..).ok_or(Malformed)?;
            let found = memchr2(b'"', b'\\', rest).ok_or(Malformed)?;
            if rest[found] == b'"' {
                self.at = at + found + 1;
                return Ok(&self.bytes[start..at + found]);
            }
            at += found + 2;
        }
    }

    /// Takes any value. Returns its text.
    fn value(&mut self) -> Result<&'a [u8], Malformed> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => {
                self.string()?;
            }
            b'{' | b'[' => self.container()?,
            _ => {
                let rest = &self.bytes[start..];
                let length = rest
                    .iter()
                    .position(|byte| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t'))
                    .unwrap_or(rest.len());
                let scalar = &rest[..length];
                if !matches!(scalar, b"true" | b"false" | b"null") && !is_number(scalar) {
                    return Err(Malformed);
                }
                self.at += length;
            }
        }
        Ok(&self.bytes[start..self.at])
    }

    /// Takes an object or array by counting brackets.
    fn container(&mut self) -> Result<(), Malformed> {
        let mut depth = 0_usize;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        Err(Malformed)
    }

    /// Takes the opening bracket of a container. Returns false if the container is empty, and then takes all of it.
    fn open(&mut self, open: u8, close: u8) -> Result<bool, Malformed> {
        self.take(open)?;
        if self.peek()? == close {
            self.at += 1;
            return Ok(false);
        }
        Ok(true)
    }

    /// Takes the comma or bracket behind a member or element. Returns false if the container has ended.
    fn goes_on(&mut self, close: u8) -> Result<bool, Malformed> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Ok(true),
            _ if byte == close => Ok(false),
            _ => Err(Malformed),
        }
    }

    fn member_name(&mut self) -> Result<&'a [u8], Malformed> {
        let name = self.string()?;
        self.take(b':')?;
        Ok(name)
    }

    /// Goes to the value of an object's member. Returns false if there is no member of this name.
    fn enter_member(&mut self, key: &str) -> Result<bool, Malformed> {
        let mut has_more = self.open(b'{', b'}')?;
        while has_more {
            let name = self.member_name()?;
            if string_equals(name, key)? {
                return Ok(true);
            }
            self.value()?;
            has_more = self.goes_on(b'}')?;
        }
        Ok(false)
    }

    /// Goes to an element of an array. Returns false if the array has fewer elements.
    fn enter_element(&mut self, index: usize) -> Result<bool, Malformed> {
        let mut has_more = self.open(b'[', b']')?;
        let mut passed = 0;
        while has_more {
            if passed == index {
                return Ok(true);
            }
            self.value()?;
            passed += 1;
            has_more = self.goes_on(b']')?;
        }
        Ok(false)
    }

    /// Takes a value and compares it up to the first difference. Recurses as deep as `expected`, which comes from the
    /// plan.
    fn equals(&mut self, expected: &Value) -> Result<bool, Malformed> {
        match (self.peek()?, expected) {
            (b'"', Value::String(expected)) => string_equals(self.string()?, expected),
            (b'[', Value::Array(expected)) => {
                let mut rest = expected.iter();
                let mut has_more = self.open(b'[', b']')?;
                while has_more {
                    match rest.next() {
                        Some(expected) if self.equals(expected)? => {}
                        _ => return Ok(false),
                    }
                    has_more = self.goes_on(b']')?;
                }
                Ok(rest.next().is_none())
            }
            (b'{', Value::Object(expected)) => {
                let mut count = 0;
                let mut has_more = self.open(b'{', b'}')?;
                while has_more {
                    let name = self.member_name()?;
                    let value = match std::str::from_utf8(name) {
                        Ok(name) if !name.contains('\\') => expected.get(name),
                        _ => escaped_member(name, expected)?,
                    };
                    match value {
                        Some(expected) if self.equals(expected)? => {}
                        _ => return Ok(false),
                    }
                    count += 1;
                    has_more = self.goes_on(b'}')?;
                }
                Ok(count == expected.len())
            }
            (_, Value::Number(expected)) => Ok(number_equals(self.value()?, expected)),
            (_, Value::Bool(expected)) => {
                let text: &[u8] = if *expected { b"true" } else { b"false" };
                Ok(self.value()? == text)
            }
            (_, Value::Null) => Ok(self.value()? == b"null"),
            _ => self.value().map(|_| false),
        }
    }
}

fn escaped_member<'e>(
    name: &[u8],
    expected: &'e serde_json::Map<String, Value>,
) -> Result<Option<&'e Value>, Malformed> {
    for (key, value) in expected {
        if string_equals(name, key)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

fn number_equals(text: &[u8], expected: &Number) -> bool {
    let Some(text) = std::str::from_utf8(text).ok().filter(|text| is_number(text.as_bytes())) else {
        return false;
    };
    if let (Ok(found), Some(expected)) = (text.parse::<i64>(), expected.as_i64()) {
        return found == expected;
    }
    if let (Ok(found), Some(expected)) = (text.parse::<u64>(), expected.as_u64()) {
        return found == expected;
    }
    text.parse().ok() == expected.as_f64()
}

/// Returns whether the text is a number of RFC 8259, section 6.
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || whole > 1 && rest[0] == b'0' {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', digits @ ..] => digits,
            digits => digits,
        };
        let length = digits(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

/// Returns whether the content of a string, with escapes, is this text.
#[inline]
fn string_equals(content: &[u8], expected: &str) -> Result<bool, Malformed> {
    if memchr(b'\\', content).is_none() {
        return Ok(content == expected.as_bytes());
    }
    let mut rest = expected.as_bytes();
    let mut is_equal = true;
    decode(content, |bytes| {
        is_equal = match rest.strip_prefix(bytes) {
            Some(after) => {
                rest = after;
                true
            }
            None => false,
        };
        is_equal
    })?;
    Ok(is_equal && rest.is_empty())
}

/// Passes the content of a string on, a run or a character at a time, until `take` returns false.
fn decode(content: &[u8], mut push: impl FnMut(&[u8]) -> bool) -> Result<(), Malformed> {
    let mut rest = content;
    while let Some(at) = memchr(b'\\', rest) {
        if !push(&rest[..at]) {
            return Ok(());
        }
        let (&escape, after) = rest[at + 1..].split_first().ok_or(Malformed)?;
        rest = after;
        let byte = match escape {
            b'"' | b'\\' | b'/' => escape,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let character = unicode_escape(&mut rest)?;
                if !push(character.encode_utf8(&mut [0; 4]).as_bytes()) {
                    return Ok(());
                }
                continue;
            }
            _ => return Err(Malformed),
        };
        if !push(&[byte]) {
            return Ok(());
        }
    }
    push(rest);
    Ok(())
}

/// Returns the character of `XXXX`, or of the surrogate pair `XXXX\uXXXX`.
fn unicode_escape(rest: &mut &[u8]) -> Result<char, Malformed> {
    let first = hexadecimal(rest)?;
    if !(0xD800..0xDC00).contains(&first) {
        return char::from_u32(first).ok_or(Malformed);
    }
    *rest = rest.strip_prefix(b"\\u").ok_or(Malformed)?;
    let second = hexadecimal(rest)?;
    if !(0xDC00..0xE000).contains(&second) {
        return Err(Malformed);
    }
    char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).ok_or(Malformed)
}

fn hexadecimal(rest: &mut &[u8]) -> Result<u32, Malformed> {
    let (digits, after) = rest.split_at_checked(4).ok_or(Malformed)?;
    *rest = after;
    digits.iter().try_fold(0, |number, &digit| {
        let value = char::from(digit).to_digit(16).ok_or(Malformed)?;
        Ok(number << 4 | value)
    })
}

#[cfg(test)]
mod tests;
