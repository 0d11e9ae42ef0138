//! Whether a response is right, and what is to be kept of it.

use memchr::memmem::Finder;
use regex::bytes::{CaptureLocations, Regex};
use serde_json::Value;

use crate::json::{self, Malformed, Pointer};

/// What came.
#[derive(Debug, Clone, Copy)]
pub struct Response<'a> {
    /// The status code.
    pub status: u16,
    /// Status line and headers as they came, if the step needs them.
    pub head: &'a [u8],
    /// The body, or as much of it as is kept, if the step needs it.
    pub body: &'a [u8],
    /// How long the whole body is, if the step needs to know.
    pub body_bytes: u64,
}

impl<'a> Response<'a> {
    fn is_cut(&self) -> bool {
        self.body_bytes > self.body.len() as u64
    }

    /// Whether a part of the body that ends here might go on beyond what is kept.
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

/// Why a response is not right. [`crate::Compiled::describe`] says it in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Another status.
    Status(u16),
    /// A body of so many bytes.
    TooLarge(u64),
    /// The response depends on more of the body than is kept.
    Cut,
    /// Another body.
    Differs,
    /// A body without the part that it must have.
    Lacks,
    /// A body in which the regular expression of this number, of those that must be found, is not.
    NoMatch(usize),
    /// A body in which the regular expression of this number, of those that must not be found, is.
    Match(usize),
    /// A body that is not JSON.
    NotJson,
    /// The JSON pointer of this number names another value.
    Json(usize),
    /// The extraction of this number found nothing.
    Missing(usize),
}

/// What a right response is.
#[derive(Debug)]
pub(crate) struct Check {
    /// None: every status below 400.
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
        if self
            .max_body_bytes
            .is_some_and(|most| response.body_bytes > most)
        {
            return Err(Reason::TooLarge(response.body_bytes));
        }
        if let Some(expected) = &self.equals {
            if expected.len() as u64 != response.body_bytes || !expected.starts_with(response.body)
            {
                return Err(Reason::Differs);
            }
            if response.is_cut() {
                return Err(Reason::Cut);
            }
        }
        if let Some(part) = &self.contains {
            if part.find(response.body).is_none() {
                return Err(if response.is_cut() {
                    Reason::Cut
                } else {
                    Reason::Lacks
                });
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

/// A variable, and where its value is.
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
        /// The number of the memory for its groups, which is the thread's.
        locations: usize,
    },
}

impl Extraction {
    /// Puts the value into `out`, replacing what was there. `number` is this extraction's own.
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
            Source::Regex {
                regex,
                locations: memory,
            } => {
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
