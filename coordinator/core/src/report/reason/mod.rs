//! Every reason why a job waits, a node has no work, or an attempt failed: why, and what helps. One
//! text for each, in one place; who shows it shows these words. Decides nothing.

pub(crate) mod failure;
pub(crate) mod frame;
pub(crate) mod node;
#[cfg(test)]
mod tests;
pub(crate) mod wait;

use tessera_protocol::explain::Reason;

/// Most things that a text names.
const NAMED_MAX: usize = 3;

/// A reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) why: String,
    pub(crate) help: String,
    /// Whether a line of a listing has the reason alone, because the help is the usual one.
    brief: bool,
    secs: Option<u64>,
}

/// A reason whose help belongs to it.
fn text(why: impl Into<String>, help: impl Into<String>) -> Text {
    Text { why: why.into(), help: help.into(), brief: false, secs: None }
}

/// A reason that says enough in a listing.
fn brief(why: impl Into<String>, help: impl Into<String>) -> Text {
    Text { brief: true, ..text(why, help) }
}

impl Text {
    /// The same, and it ends by itself after so many seconds.
    fn ends_in(self, secs: u64) -> Self {
        Self { secs: Some(secs), ..self }
    }

    /// Returns the line for listings.
    pub(crate) fn note(self) -> String {
        match self.brief || self.help.is_empty() {
            true => self.why,
            false => format!("{}; {}", self.why, self.help),
        }
    }

    /// Returns the reason as clients get it.
    pub(crate) fn reason(self, word: &str) -> Reason {
        Reason { word: word.to_owned(), why: self.why, help: self.help, ends_secs: self.secs }
    }
}

/// Writes the first few of several things in one line.
pub(crate) fn some_of<T: std::fmt::Display>(things: impl IntoIterator<Item = T>) -> String {
    let things: Vec<String> = things.into_iter().map(|thing| thing.to_string()).collect();
    let named = things[..things.len().min(NAMED_MAX)].join(", ");
    match things.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Returns ` of pool `x``, or nothing.
fn of_pool(pool: Option<&String>) -> String {
    pool.map_or(String::new(), |pool| format!(" of pool `{pool}`"))
}
