//! A function as every language gives it.

/// A function of a source file.
pub(super) struct Function {
    /// Its first line.
    pub(super) line: usize,
    pub(super) name: String,
    /// Lines.
    pub(super) length: usize,
}
