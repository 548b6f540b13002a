//! Why somebody is not signed in, and how messages repeat what others have said.

/// Longest text of a provider or browser that a message repeats, in characters.
const QUOTED_MAX: usize = 200;

/// Why somebody is not signed in.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The browser, the provider's answer or the person is not accepted.
    Refused(String),
    /// The provider does not answer, or too many sign in at once.
    Unavailable(String),
}

/// The beginning of a text from outside, without control characters.
pub(super) fn quoted(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(QUOTED_MAX).collect()
}
