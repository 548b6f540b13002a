//! What a check finds.

/// A broken invariant, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation(pub(crate) String);

/// What a check gives.
pub(crate) type Checked = Result<(), Violation>;

/// An invariant is broken.
pub(crate) fn violated<T>(text: impl Into<String>) -> Result<T, Violation> {
    Err(Violation(text.into()))
}
