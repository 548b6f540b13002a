//! Patterns of whole texts, as people write them: `shot_*`.

/// Returns whether a pattern fits a whole text: `*` is any text, also none, `?` one character.
pub fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from) = (0, 0);
    // The last star, and the text that it covers up to.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(c) if *c == '?' || *c == text[from] => (at, from) = (at + 1, from + 1),
            _ => match star.as_mut() {
                // It covers one character more, and the rest of the pattern begins again.
                Some((place, covered)) => {
                    *covered += 1;
                    (at, from) = (*place + 1, *covered);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::NAME_MAX;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "shot"),
            ("shot_*", "shot_"),
            ("shot_*", "shot_010"),
            ("*_010", "shot_010"),
            ("sh?t_01?", "shot_010"),
            ("*0*0*", "shot_010"),
            ("a*b*c", "aXbYbZc"),
            ("größe*", "größe 2"),
            ("?", "ß"),
            ("", ""),
            ("a[1]", "a[1]"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("", "a"), ("?", ""), ("shot", "shot_010"), ("*_020", "shot_010"), ("a*b", "acbd")]
        {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
        // A pattern of stars costs its length times that of the text, and no more.
        let stars = "*a".repeat(NAME_MAX / 2);
        assert!(!fits(&stars, &"a".repeat(NAME_MAX / 2 - 1)));
    }
}
