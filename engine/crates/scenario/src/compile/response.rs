//! Compiles the checks and extractions of a step.

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};
use weir_plan::scenario::{Extract, StepCheck};

use super::request::is_token;
use super::{Base, Compiler};
use crate::check::{Check, Extraction, JsonCheck, Source};
use crate::json::Pointer;
use crate::{ScenarioError, template};

impl Compiler<'_> {
    pub(super) fn extraction(&mut self, key: &str, name: &str, extract: &Extract) -> Result<Extraction, ScenarioError> {
        if !template::is_variable(name) {
            return Err(ScenarioError::new(
                key,
                format_args!("the name {name:?}"),
                "letters, digits and _, no digit first, and no placeholder's name",
            ));
        }
        let source = match extract {
            Extract::Json(text) => Source::Json(pointer(&format!("{key}.json"), text)?),
            Extract::Header(name) if is_token(name) => Source::Header(name.clone()),
            Extract::Header(name) => {
                return Err(ScenarioError::new(
                    format_args!("{key}.header"),
                    format_args!("{name:?}"),
                    "the name of a header",
                ));
            }
            Extract::Regex(text) => {
                let regex = regex(&format!("{key}.regex"), text)?;
                self.regexes.push(regex.clone());
                Source::Regex { regex, locations: self.regexes.len() - 1 }
            }
        };
        Ok(Extraction { name: name.to_owned(), variable: self.binder.add_variable(name), source })
    }
}

fn pointer(key: &str, text: &str) -> Result<Pointer, ScenarioError> {
    Pointer::parse(text).ok_or_else(|| {
        ScenarioError::new(key, format_args!("{text:?}"), "a JSON pointer, \"/a/0/b\" or \"\" for all of the body")
    })
}

fn regex(key: &str, text: &str) -> Result<Regex, ScenarioError> {
    let built = RegexBuilder::new(text).unicode(false).build();
    built.map_err(|error| {
        ScenarioError::new(
            key,
            format_args!("{text:?}: {}", last_line(&error.to_string())),
            "a regular expression (the syntax of Rust's regex)",
        )
    })
}

fn regexes(key: &str, texts: &[String]) -> Result<Box<[Regex]>, ScenarioError> {
    texts.iter().map(|text| regex(key, text)).collect()
}

pub(super) fn check(key: &str, check: &StepCheck, base: &Base<'_>) -> Result<Check, ScenarioError> {
    if let Some(statuses) = &check.status {
        let wrong = statuses.iter().find(|status| !(200..=599).contains(*status));
        let found = match wrong {
            Some(status) => Some(status.to_string()),
            None => statuses.is_empty().then(|| "[]".to_owned()),
        };
        if let Some(found) = found {
            return Err(ScenarioError::new(
                format_args!("{key}.status"),
                found,
                "statuses from 200 to 599, at least one",
            ));
        }
    }
    let json = check.json.iter().map(|(text, expected)| {
        Ok(JsonCheck {
            text: text.clone(),
            pointer: pointer(&format!("{key}.json"), text)?,
            expected: expected.clone(),
        })
    });
    Ok(Check {
        status: check.status.as_deref().or(base.right_statuses).map(Into::into),
        max_body_bytes: check.max_body_bytes,
        equals: check.body_equals.as_ref().map(|text| text.as_bytes().into()),
        contains: check.body_contains.as_ref().map(|text| Finder::new(text).into_owned()),
        matches: regexes(&format!("{key}.body_matches"), &check.body_matches)?,
        lacks: regexes(&format!("{key}.body_lacks"), &check.body_lacks)?,
        json: json.collect::<Result<_, _>>()?,
    })
}

/// Returns the last line of regex's message, which names the error. The lines before it draw its place.
fn last_line(message: &str) -> &str {
    message.lines().last().unwrap_or(message).trim_start_matches("error: ")
}
