//! Checks of responses, and the values that are extracted from them.

use memchr::memmem::Finder;
use regex::bytes::{CaptureLocations, Regex};
use serde_json::Value;

use crate::json::{self, Malformed, Pointer};

/// A whole response, as far as its step needs it.
#[derive(Debug, Clone, Copy)]
pub struct Response<'a> {
    /// The status code.
    pub status: u16,
    /// Bytes of status line and fields, if the step needs them.
    pub head: &'a [u8],
    /// The beginning of the body, if the step needs it.
    pub body: &'a [u8],
    /// Length of the whole body, if the step needs it.
    pub body_bytes: u64,
}

impl<'a> Response<'a> {
    fn is_cut(&self) -> bool {
        self.body_bytes > self.body.len() as u64
    }

    /// Returns whether a part of the body may continue behind the kept bytes.
    fn may_go_on(&self, part: &[u8]) -> bool {
        self.is_cut() && part.as_ptr_range().end == self.body.as_ptr_range().end
    }

    /// Returns the values of the fields of this name.
    pub(crate) fn headers(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let head = self.head;
        memchr::memchr_iter(b'\n', head).filter_map(move |end_of_line| {
            let line = &head[end_of_line + 1..];
            let (start, rest) = line.split_at_checked(name.len())?;
            let value = rest.strip_prefix(b":")?;
            if !start.eq_ignore_ascii_case(name.as_bytes()) {
                return None;
            }
            let end = memchr::memchr(b'\n', value).unwrap_or(value.len());
            Some(value[..end].trim_ascii())
        })
    }

    fn json(&self, pointer: &Pointer) -> Result<Option<&'a [u8]>, Reason> {
        match json::find(self.body, pointer) {
            Ok(Some(value)) if self.may_go_on(value) => Err(Reason::Cut),
            Ok(found) => Ok(found),
            Err(Malformed) if self.is_cut() => Err(Reason::Cut),
            Err(Malformed) => Err(Reason::NotJson),
        }
    }
}

/// Why a response is wrong. [`crate::Compiled::describe`] returns it in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Unexpected status.
    Status(u16),
    /// The body has so many bytes.
    TooLarge(u64),
    /// The check needs more of the body than is kept.
    Cut,
    /// Unexpected body.
    Differs,
    /// The body does not contain the expected text.
    Lacks,
    /// The body does not match the expression with this index in `body_matches`.
    NoMatch(usize),
    /// The body matches the expression with this index in `body_lacks`.
    Match(usize),
    /// The body is not JSON.
    NotJson,
    /// The JSON pointer with this index names an unexpected value or none.
    Json(usize),
    /// The extraction with this index found nothing.
    Missing(usize),
}

/// The conditions of a right response.
#[derive(Debug)]
pub(crate) struct Check {
    /// `None`: every status below 400.
    pub(crate) status: Option<Box<[u16]>>,
    pub(crate) max_body_bytes: Option<u64>,
    pub(crate) equals: Option<Box<[u8]>>,
    pub(crate) contains: Option<Finder<'static>>,
    pub(crate) matches: Box<[Regex]>,
    pub(crate) lacks: Box<[Regex]>,
    pub(crate) json: Box<[JsonCheck]>,
}

#[derive(Debug)]
pub(crate) struct JsonCheck {
    pub(crate) text: String,
    pub(crate) pointer: Pointer,
    pub(crate) expected: Value,
}

impl Check {
    pub(crate) fn why_wrong(&self, response: &Response<'_>) -> Result<(), Reason> {
        let status = response.status;
        let is_right = match &self.status {
            Some(statuses) => statuses.contains(&status),
            None => status < 400,
        };
        if !is_right {
            return Err(Reason::Status(status));
        }
        if self.max_body_bytes.is_some_and(|most| response.body_bytes > most) {
            return Err(Reason::TooLarge(response.body_bytes));
        }
        if let Some(expected) = &self.equals {
            if expected.len() as u64 != response.body_bytes || !expected.starts_with(response.body) {
                return Err(Reason::Differs);
            }
            if response.is_cut() {
                return Err(Reason::Cut);
            }
        }
        if let Some(part) = &self.contains {
            if part.find(response.body).is_none() {
                return Err(if response.is_cut() { Reason::Cut } else { Reason::Lacks });
            }
        }
        if response.is_cut() && (!self.matches.is_empty() || !self.lacks.is_empty()) {
            return Err(Reason::Cut);
        }
        let is_found = |regex: &Regex| regex.is_match(response.body);
        if let Some(index) = self.matches.iter().position(|regex| !is_found(regex)) {
            return Err(Reason::NoMatch(index));
        }
        if let Some(index) = self.lacks.iter().position(is_found) {
            return Err(Reason::Match(index));
        }
        for (index, check) in self.json.iter().enumerate() {
            let value = response.json(&check.pointer)?.ok_or(Reason::Json(index))?;
            if !json::equals(value, &check.expected).map_err(|Malformed| Reason::NotJson)? {
                return Err(Reason::Json(index));
            }
        }
        Ok(())
    }
}

/// A variable, and the source of its value.
#[derive(Debug)]
pub(crate) struct Extraction {
    pub(crate) name: String,
    pub(crate) variable: usize,
    pub(crate) source: Source,
}

#[derive(Debug)]
pub(crate) enum Source {
    Json(Pointer),
    Header(String),
    Regex {
        regex: Regex,
        /// Index of the thread's memory for its groups.
        locations: usize,
    },
}

impl Extraction {
    /// Replaces the content of `out` by the value. `number` is the index of this extraction.
    pub(crate) fn extract(
        &self,
        number: usize,
        response: &Response<'_>,
        locations: &mut [CaptureLocations],
        out: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        out.clear();
        let missing = Reason::Missing(number);
        match &self.source {
            Source::Json(pointer) => {
                let value = response.json(pointer)?.ok_or(missing)?;
                json::append_content(value, out).map_err(|Malformed| Reason::NotJson)
            }
            Source::Header(name) => {
                let value = response.headers(name).next().ok_or(missing)?;
                out.extend_from_slice(value);
                Ok(())
            }
            Source::Regex { regex, locations: memory } => {
                let locations = &mut locations[*memory];
                let found = regex.captures_read(locations, response.body);
                let group = usize::from(locations.len() > 1);
                match (found, locations.get(group)) {
                    (Some(whole), _) if response.may_go_on(whole.as_bytes()) => Err(Reason::Cut),
                    (Some(_), Some((start, end))) => {
                        out.extend_from_slice(&response.body[start..end]);
                        Ok(())
                    }
                    (None, _) if response.is_cut() => Err(Reason::Cut),
                    _ => Err(missing),
                }
            }
        }
    }
}
