//! Why a spec is refused.

use std::borrow::Cow;

/// The spec has a wrong value. The error names the field and says what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SpecError {
    /// Field, as the command line or the spec names it.
    pub field: Cow<'static, str>,
    /// Says what is wrong and what would be right.
    pub problem: String,
    /// Whether this build does not know the field or its value. Another build may know it.
    pub unknown: bool,
}

pub(crate) fn wrong(field: &'static str, problem: impl Into<String>) -> Result<(), SpecError> {
    Err(SpecError { field: field.into(), problem: problem.into(), unknown: false })
}
