//! Errors in a scenario, in words for its author.

use std::fmt;

use thiserror::Error;

/// An error in a scenario, found before the first request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("plan, key scenario.{key}: found {found}, expected {expected}")]
pub struct ScenarioError {
    /// The path of the key below `scenario`, `steps[1].path`.
    pub key: String,
    /// The value in the scenario.
    pub found: String,
    /// The expected values.
    pub expected: String,
}

impl ScenarioError {
    pub(crate) fn new(key: impl fmt::Display, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self { key: key.to_string(), found: found.to_string(), expected: expected.to_string() }
    }

    /// Returns the next thing to try.
    pub fn hint(&self) -> String {
        format!("set scenario.{} to {}", self.key, self.expected)
    }
}
