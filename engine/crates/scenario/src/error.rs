//! What can be wrong with a scenario, in words for the person who wrote it.

use std::fmt;

/// A scenario that cannot be used. All of these come before the first request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The path of the key below `scenario`, `steps[1].path`.
    pub key: String,
    /// What the scenario says.
    pub found: String,
    /// What it could say.
    pub expected: String,
}

impl ScenarioError {
    pub(crate) fn new(
        key: impl fmt::Display,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self {
            key: key.to_string(),
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }

    /// The next thing to try.
    pub fn hint(&self) -> String {
        format!("set scenario.{} to {}", self.key, self.expected)
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            found,
            expected,
        } = self;
        write!(
            formatter,
            "plan, key scenario.{key}: found {found}, expected {expected}"
        )
    }
}

impl std::error::Error for ScenarioError {}
