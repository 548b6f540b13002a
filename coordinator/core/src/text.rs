//! Texts of peers, within their limits.

/// A text of a peer, cut at a character.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
