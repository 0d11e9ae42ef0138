//! What can be wrong with a plan, in words for the person who wrote it.

use std::fmt;

/// A plan that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanError {
    /// The text is not JSON, or a key is unknown, missing or of the wrong type.
    Json {
        /// What serde found and expected, with line and column.
        problem: String,
    },
    /// A key's value is of the right type and yet cannot be used.
    Value {
        /// The path of the key, `load.open.rate_rps`.
        key: &'static str,
        /// What the plan says.
        found: String,
        /// What it could say.
        expected: String,
    },
}

impl PlanError {
    pub(crate) fn json(error: &serde_json::Error) -> Self {
        Self::Json {
            problem: error.to_string(),
        }
    }

    /// A value of `key` that cannot be used.
    pub fn value(key: &'static str, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self::Value {
            key,
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }

    /// The same of another key.
    pub(crate) fn about(self, key: &'static str) -> Self {
        match self {
            Self::Value {
                found, expected, ..
            } => Self::Value {
                key,
                found,
                expected,
            },
            json @ Self::Json { .. } => json,
        }
    }

    /// The next thing to try.
    pub fn hint(&self) -> String {
        match self {
            Self::Json { .. } => {
                "the form of a plan is in docs/reference/engine.md, under \"the plan\"".to_owned()
            }
            Self::Value { key, expected, .. } => format!("set {key} to {expected}"),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json { problem } => write!(formatter, "plan: {problem}"),
            Self::Value {
                key,
                found,
                expected,
            } => {
                write!(
                    formatter,
                    "plan, key {key}: found {found}, expected {expected}"
                )
            }
        }
    }
}

impl std::error::Error for PlanError {}
