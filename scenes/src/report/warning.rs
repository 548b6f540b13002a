//! Warnings: what will look different from what the file asks for, each once and in a fixed order.

/// Warnings kept at most; a hostile file could otherwise fill the memory with them.
const WARNINGS_MAX: usize = 256;

/// Longest warning: names come from the file.
const WARNING_CHARS_MAX: usize = 500;

/// As much of a text from a file as a person should be shown.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A list of warnings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings {
    list: Vec<String>,
    dropped: usize,
}

impl Warnings {
    /// Adds a warning, unless it is there already.
    pub(crate) fn add(&mut self, text: impl Into<String>) {
        let text = shortened(&text.into(), WARNING_CHARS_MAX);
        if self.list.contains(&text) {
            return;
        }
        if self.list.len() < WARNINGS_MAX {
            self.list.push(text);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds warnings.
    pub(crate) fn extend(&mut self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.add(text));
    }

    /// All of them.
    pub(crate) fn into_list(mut self) -> Vec<String> {
        if self.dropped > 0 {
            self.list.push(format!("and {} more warnings", self.dropped));
        }
        self.list
    }
}
