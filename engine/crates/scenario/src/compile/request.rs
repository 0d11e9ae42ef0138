//! The request of a step: its path, fields and content, constant parts already encoded.

use weir_http::{RequestWriter, anticipates_body, has_field, list_fields};
use weir_plan::scenario::Step;

use super::Compiler;
use crate::compiled::Content;
use crate::render::{Part, Place};
use crate::{ScenarioError, template};

impl Compiler<'_> {
    /// Returns the request's constant beginning, where in it the path begins, and the rest of path and query.
    pub(super) fn path<W: RequestWriter>(
        &mut self,
        key: &str,
        step: &Step,
    ) -> Result<(Vec<u8>, usize, Vec<Part>), ScenarioError> {
        let text = &step.path;
        let expected = "a path that begins with / or a variable, without spaces but in placeholders";
        let wrong = || ScenarioError::new(key, format_args!("{text:?}"), expected);
        let pieces = template::parse(text).map_err(|(found, expected)| ScenarioError::new(key, found, expected))?;
        for (index, piece) in pieces.iter().enumerate() {
            let is_right = match piece {
                template::Piece::Text(text) => {
                    (index > 0 || text.starts_with('/')) && !text.chars().any(|c| c.is_whitespace() || c.is_control())
                }
                template::Piece::Variable(_) | template::Piece::Csv { .. } | template::Piece::Json { .. } => true,
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
        let mut start = Vec::new();
        W::before_path(&mut start, step.method.as_str());
        let path_at = start.len();
        if let Some(Part::Literal(text)) = parts.first() {
            start.extend_from_slice(self.base.path_prefix.as_bytes());
            start.extend_from_slice(text);
            parts.remove(0);
        }
        Ok((start, path_at, parts))
    }

    /// Returns what follows the path: the fields without `Cookie` and the body's length.
    pub(super) fn fields<W: RequestWriter>(&mut self, key: &str, step: &Step) -> Result<Vec<Part>, ScenarioError> {
        for (name, value) in &step.headers {
            check_header(key, name, value)?;
        }
        let mut parts = vec![literal(W::after_path)];
        let base = self.base;
        for (name, value) in list_fields(base.authority, &step.headers, base.keep_alive) {
            parts.push(literal(|out| W::before_value(out, name)));
            let key = format!("{key}.{name}");
            parts.extend(self.binder.bind(&key, value, Place::Header)?);
            parts.push(literal(W::after_value));
        }
        Ok(merged(parts))
    }

    /// Returns the end of the request.
    pub(super) fn content<W: RequestWriter>(&mut self, key: &str, step: &Step) -> Result<Content, ScenarioError> {
        let mut bytes = Vec::new();
        let Some(body) = &step.body else {
            if anticipates_body(step.method.as_str()) {
                W::body(&mut bytes, b"", false);
            } else {
                W::end(&mut bytes);
            }
            return Ok(Content::Encoded(bytes.into()));
        };
        let parts = merged(self.binder.bind(key, body, Place::Body)?);
        match &parts[..] {
            [] => W::body(&mut bytes, b"", false),
            [Part::Literal(body)] => W::body(&mut bytes, body, false),
            _ => return Ok(Content::Body(parts.into())),
        }
        Ok(Content::Encoded(bytes.into()))
    }
}

/// Returns whether the jar's cookies are sent: a step may set its own.
pub(super) fn takes_cookies(step: &Step) -> bool {
    !has_field(&step.headers, "cookie")
}

/// Returns all bytes of a request, `None` if a part of it is rendered.
pub(super) fn constant_request(start: &[u8], path: &[Part], fields: &[Part], content: &Content) -> Option<Box<[u8]>> {
    let ([], [Part::Literal(fields)], Content::Encoded(end)) = (path, fields, content) else {
        return None;
    };
    Some([start, fields, end].concat().into())
}

/// Returns the bytes that a function appends.
fn literal(append: impl FnOnce(&mut Vec<u8>)) -> Part {
    let mut bytes = Vec::new();
    append(&mut bytes);
    Part::Literal(bytes.into())
}

/// Returns the parts with neighbouring literals joined.
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

fn check_header(key: &str, name: &str, value: &str) -> Result<(), ScenarioError> {
    if !is_token(name) {
        return Err(ScenarioError::new(key, format_args!("the name {name:?}"), "letters, digits and !#$%&'*+-.^_`|~"));
    }
    if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err(ScenarioError::new(key, format_args!("the value {value:?} of {name}"), "a value of one line"));
    }
    if ["transfer-encoding", "content-length"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
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
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token_byte)
}
