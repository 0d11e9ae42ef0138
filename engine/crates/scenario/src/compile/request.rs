//! What a step sends: the request line, headers and body, in as few parts as their placeholders leave.

use weir_plan::Method;
use weir_plan::scenario::Step;

use super::Compiler;
use crate::compiled::End;
use crate::render::{Part, Place};
use crate::{ScenarioError, template};

impl Compiler<'_> {
    /// The beginning of the request line, where in it the path begins, and the rest of the path.
    pub(super) fn path(
        &mut self,
        key: &str,
        step: &Step,
    ) -> Result<(Vec<u8>, usize, Vec<Part>), ScenarioError> {
        let text = &step.path;
        let expected =
            "a path that begins with / or a variable, without spaces but in placeholders";
        let wrong = || ScenarioError::new(key, format_args!("{text:?}"), expected);
        let pieces = template::parse(text)
            .map_err(|(found, expected)| ScenarioError::new(key, found, expected))?;
        for (index, piece) in pieces.iter().enumerate() {
            let is_right = match piece {
                template::Piece::Text(text) => {
                    (index > 0 || text.starts_with('/'))
                        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
                }
                template::Piece::Variable(_)
                | template::Piece::Csv { .. }
                | template::Piece::Json { .. } => true,
                _ => index > 0,
            };
            if !is_right {
                return Err(wrong());
            }
        }
        if pieces.is_empty() {
            return Err(wrong());
        }
        let mut parts = self.binder.bind(key, text, Place::Path)?;
        let mut start = format!("{} ", step.method.as_str()).into_bytes();
        let path_at = start.len();
        if let Some(Part::Literal(_)) = parts.first() {
            start.extend_from_slice(self.base.path_prefix.as_bytes());
            if let Part::Literal(text) = parts.remove(0) {
                start.extend_from_slice(&text);
            }
        }
        Ok((start, path_at, parts))
    }

    /// What follows the path, and whether the jar's cookies are sent.
    pub(super) fn headers(
        &mut self,
        key: &str,
        step: &Step,
    ) -> Result<(Vec<Part>, bool), ScenarioError> {
        let has = |wanted: &str| {
            step.headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        let mut parts = vec![literal(" HTTP/1.1\r\n")];
        if !has("host") {
            parts.push(literal(&format!("Host: {}\r\n", self.base.authority)));
        }
        if !self.base.keep_alive && !has("connection") {
            parts.push(literal("Connection: close\r\n"));
        }
        for (name, value) in &step.headers {
            check_header(key, name, value)?;
            parts.push(literal(&format!("{name}: ")));
            parts.extend(
                self.binder
                    .bind(&format!("{key}.{name}"), value, Place::Header)?,
            );
            parts.push(literal("\r\n"));
        }
        Ok((merged(parts), !has("cookie")))
    }

    pub(super) fn end(&mut self, key: &str, step: &Step) -> Result<End, ScenarioError> {
        let Some(body) = &step.body else {
            // RFC 9110, section 8.6: a method that anticipates a body says its length even when there is none.
            let wants_length = matches!(step.method, Method::Post | Method::Put | Method::Patch);
            let end: &[u8] = if wants_length {
                b"Content-Length: 0\r\n\r\n"
            } else {
                b"\r\n"
            };
            return Ok(End::Constant(end.into()));
        };
        let parts = merged(self.binder.bind(key, body, Place::Body)?);
        Ok(match &parts[..] {
            [] => End::Constant((*b"Content-Length: 0\r\n\r\n").into()),
            [Part::Literal(body)] => {
                let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
                bytes.extend_from_slice(body);
                End::Constant(bytes.into())
            }
            _ => End::Body(parts.into()),
        })
    }
}

fn literal(text: &str) -> Part {
    Part::Literal(text.as_bytes().into())
}

/// The same parts with neighbouring text in one.
fn merged(parts: Vec<Part>) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match (merged.last_mut(), part) {
            (Some(Part::Literal(before)), Part::Literal(text)) => {
                *before = [&before[..], &text].concat().into();
            }
            (_, part) => merged.push(part),
        }
    }
    merged
}

/// Appends parts to what is constant so far; nothing is left of it if one of them is not.
pub(super) fn append_constant(constant: &mut Option<Vec<u8>>, parts: &[Part]) {
    for part in parts {
        match (constant.as_mut(), part) {
            (Some(bytes), Part::Literal(text)) => bytes.extend_from_slice(text),
            _ => *constant = None,
        }
    }
}

fn check_header(key: &str, name: &str, value: &str) -> Result<(), ScenarioError> {
    if !is_token(name) {
        return Err(ScenarioError::new(
            key,
            format_args!("the name {name:?}"),
            "letters, digits and !#$%&'*+-.^_`|~",
        ));
    }
    if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err(ScenarioError::new(
            key,
            format_args!("the value {value:?} of {name}"),
            "a value of one line",
        ));
    }
    if ["transfer-encoding", "content-length"]
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own))
    {
        return Err(ScenarioError::new(
            key,
            format_args!("the name {name:?}"),
            "no such header: the body is sent with its Content-Length",
        ));
    }
    Ok(())
}

/// RFC 9110, section 5.6.2.
pub(super) fn is_token(name: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token_byte)
}
