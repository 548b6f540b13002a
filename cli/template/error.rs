//! What is wrong with a template, and where.

/// A template that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{problem}")]
pub(crate) struct TemplateError {
    /// Such as ``step `render`, spp: ``; empty for the file as a whole.
    place: String,
    problem: String,
    hint: Option<String>,
}

impl TemplateError {
    /// An error of the file as a whole.
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { place: String::new(), problem: problem.into(), hint: None }
    }

    /// An error of this machine.
    pub(crate) fn of(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }

    /// Says where it is, outside of what is said already.
    pub(crate) fn at(mut self, place: impl AsRef<str>) -> Self {
        self.place = format!("{}: {}", place.as_ref(), self.place);
        self
    }

    /// Adds what to do.
    pub(crate) fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| text.into());
        self
    }

    /// What to do.
    pub(crate) fn what_to_do(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// Where a step is.
pub(crate) fn step(name: &str) -> String {
    format!("step `{name}`")
}

/// Where a parameter is.
pub(crate) fn parameter(name: &str) -> String {
    format!("parameter `{name}`")
}
