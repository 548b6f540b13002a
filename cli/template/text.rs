//! Texts with names in braces: `{name}` stands for a value, `{{` and `}}` for braces.

use super::bounds::TEXT_BYTES_MAX;
use super::error::TemplateError;

/// Fills in the values. The text that comes out is bounded too.
pub(super) fn fill<'a>(
    text: &str,
    value: impl Fn(&str) -> Result<&'a str, TemplateError>,
) -> Result<String, TemplateError> {
    let mut filled = String::new();
    let mut rest = text;
    // Braces are one byte each, so both sides of one are texts.
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'{' | b'}')) {
        filled.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(doubled) = rest.strip_prefix(brace) {
            filled.push_str(brace);
            rest = doubled;
            continue;
        }
        let end = rest.find('}').filter(|_| brace == "{").ok_or_else(|| {
            TemplateError::new(format!("{text:?} has a `{brace}` without its other one"))
                .hint(format!("for the character itself write it twice: `{brace}{brace}`"))
        })?;
        filled.push_str(value(&rest[..end])?);
        rest = &rest[end + 1..];
        check(&filled)?;
    }
    filled.push_str(rest);
    check(&filled)?;
    Ok(filled)
}

/// The name, where a text is nothing but one name in braces.
pub(super) fn whole_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    (!name.contains(['{', '}'])).then_some(name)
}

fn check(text: &str) -> Result<(), TemplateError> {
    match text.len() > TEXT_BYTES_MAX {
        true => Err(TemplateError::new(format!("a text has more than {TEXT_BYTES_MAX} bytes"))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, TemplateError> {
        fill(text, |name| match name {
            "spp" => Ok("64"),
            "long" => Ok("0123456789abcdef"),
            name => Err(TemplateError::new(format!("there is no {name}"))),
        })
    }

    #[test]
    fn names_in_braces_stand_for_values() {
        for (text, wanted) in [
            ("", ""),
            ("{spp}", "64"),
            ("a{spp}b{spp}", "a64b64"),
            ("{{spp}}", "{spp}"),
            ("ß{spp}ß", "ß64ß"),
        ] {
            assert_eq!(filled(text).unwrap(), wanted, "{text}");
        }
        assert_eq!(whole_name("{spp}"), Some("spp"));
        assert_eq!((whole_name("{a}{b}"), whole_name("a{b}")), (None, None));
    }

    #[test]
    fn lone_braces_and_unknown_names_are_refused() {
        for text in ["{", "}", "a{spp", "spp}", "{none}", "{}"] {
            assert!(filled(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_text_that_grows_is_refused_while_it_grows() {
        let bomb = "{long}".repeat(TEXT_BYTES_MAX / 16 + 1);
        assert!(filled(&bomb).unwrap_err().to_string().contains("more than"));
    }
}
