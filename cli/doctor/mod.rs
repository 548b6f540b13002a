//! Checks whether a machine can be a node, and what a coordinator's store promises. Each check is a
//! module; `commands/doctor.rs` decides the order.

pub(crate) mod burn;
pub(crate) mod clock;
pub(crate) mod devices;
pub(crate) mod disk;
pub(crate) mod machine;
pub(crate) mod network;
mod skew;
pub(crate) mod store;

use serde::Serialize;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The check passed.
    Ok,
    /// It works, and there is something to know.
    Warn,
    /// It does not work like that.
    Fail,
}

impl Verdict {
    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One line of the doctor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Name of the check.
    pub(crate) check: &'static str,
    /// How it came out.
    pub(crate) verdict: Verdict,
    /// Observation.
    pub(crate) text: String,
    /// Advice to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

impl Finding {
    /// All is well.
    pub(crate) fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, text: text.into(), hint: None }
    }

    /// It works, but.
    pub(crate) fn warn(
        check: &'static str,
        text: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { check, verdict: Verdict::Warn, text: text.into(), hint: Some(hint.into()) }
    }

    /// It does not work.
    pub(crate) fn fail(
        check: &'static str,
        text: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { check, verdict: Verdict::Fail, text: text.into(), hint: Some(hint.into()) }
    }

    /// Formats the check as a line, and a second one for its hint.
    pub(crate) fn for_people(&self) -> String {
        let mut text = format!("{:<5} {:<12} {}", self.verdict.word(), self.check, self.text);
        if let Some(hint) = &self.hint {
            text += &format!("\n      hint: {hint}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_line_and_a_hint() {
        let finding = Finding::warn("disk", "3 GiB free", "make room");
        assert_eq!(finding.for_people(), "warn  disk         3 GiB free\n      hint: make room");
        assert!(Verdict::Fail > Verdict::Warn && Verdict::Warn > Verdict::Ok);
    }
}
