//! Errors of a plan, for its author.

use std::fmt;

use thiserror::Error;

/// An invalid plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The text is not JSON, or a key is unknown, missing or of the wrong type.
    #[error("plan: {problem}")]
    Json {
        /// The error of serde, with line and column.
        problem: String,
    },
    /// A value has the right type, but is invalid.
    #[error("plan, key {key}: found {found}, expected {expected}")]
    Value {
        /// Path of the key, such as `load.open.rate_rps`.
        key: &'static str,
        /// The value found.
        found: String,
        /// The values expected.
        expected: String,
    },
}

impl PlanError {
    pub(crate) fn json(error: &serde_json::Error) -> Self {
        Self::Json { problem: error.to_string() }
    }

    /// Returns the error of an invalid value.
    pub fn value(key: &'static str, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self::Value { key, found: found.to_string(), expected: expected.to_string() }
    }

    /// Fails with the error of an invalid value if `is_wrong`.
    pub(crate) fn reject_if(
        is_wrong: bool,
        key: &'static str,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Result<(), Self> {
        if is_wrong {
            return Err(Self::value(key, found, expected));
        }
        Ok(())
    }

    /// Returns the same error for another key.
    pub(crate) fn with_key(self, key: &'static str) -> Self {
        match self {
            Self::Value { found, expected, .. } => Self::Value { key, found, expected },
            json @ Self::Json { .. } => json,
        }
    }

    /// Returns the next thing to try.
    pub fn hint(&self) -> String {
        match self {
            Self::Json { .. } => "the form of a plan is in docs/reference/engine.md, under \"the plan\"".to_owned(),
            Self::Value { key, expected, .. } => format!("set {key} to {expected}"),
        }
    }
}
