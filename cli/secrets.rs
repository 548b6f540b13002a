//! Hides what nobody else may know in settings that are shown to others.

/// Parts of names whose values are hidden.
const SECRET: [&str; 7] =
    ["credential", "key", "passphrase", "password", "secret", "token", "authorization"];
const HIDDEN: &str = "(hidden)";

/// Whether the value of a name may be a secret, or lead to one.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|part| name.contains(part))
}

/// A value, without what it must not show.
pub(crate) fn shown(name: &str, value: &str) -> String {
    if is_secret(name) { HIDDEN.to_owned() } else { without_user(value) }
}

/// The lines of a settings file, with hidden values. A value that goes over several lines ends
/// where a line begins with a name or a table again.
pub(crate) fn settings(text: &str) -> String {
    let mut shown_lines = Vec::new();
    let mut is_hidden = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let name = trimmed.split_once('=').map(|(name, _)| name.trim());
        let begins = name.is_some_and(is_name) || trimmed.starts_with('[') || trimmed.is_empty();
        if begins {
            is_hidden = name.is_some_and(is_secret);
            shown_lines.push(match name {
                Some(name) if is_hidden => format!("{name} = {HIDDEN}"),
                _ => without_user(line),
            });
        } else if !is_hidden {
            shown_lines.push(without_user(line));
        }
    }
    shown_lines.join("\n")
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '"' | '\'');
    !text.is_empty() && text.chars().all(fits)
}

/// Addresses without the user and the password that stand before the host.
pub(crate) fn without_user(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | ',');
        let place = after.find(ends).unwrap_or(after.len());
        rest = match after[..place].rfind('@') {
            Some(host) => {
                shown.push_str(HIDDEN);
                &after[host..]
            }
            None => after,
        };
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_user_and_password() {
        for (text, shown) in [
            ("postgres://ada:x%40y@db:5432/farm?ssl=on", "postgres://(hidden)@db:5432/farm?ssl=on"),
            ("a='https://t:p@h', b='s3://bucket'", "a='https://(hidden)@h', b='s3://bucket'"),
            ("mail ada@example.org", "mail ada@example.org"),
            ("https://h/a@b", "https://h/a@b"),
        ] {
            assert_eq!(without_user(text), shown);
        }
    }

    #[test]
    fn secrets_of_settings_are_hidden_with_all_their_lines() {
        let text = "coordinator = 'farm:7420'\nfarm-key = '''\nabc\ndef'''\n[submit]\nspp = 4\n\
            api_token = \"t\"\nstore = 'postgres://a:b@c/d'\nlist = [\n 1,\n]\n";
        let shown = settings(text);
        for secret in ["abc", "def", "\"t\"", "a:b"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        for kept in ["farm:7420", "farm-key = (hidden)", "[submit]\nspp = 4", "@c/d", " 1,"] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        assert_eq!(shown.lines().filter(|line| line.contains(HIDDEN)).count(), 3);
    }

    #[test]
    fn names_of_secrets_are_known_in_any_case() {
        for name in ["TESSERA_FARM_KEY", "smtp.password-file", "AWS_SECRET_ACCESS_KEY", "Token"] {
            assert!(is_secret(name) && shown(name, "x") == HIDDEN, "{name}");
        }
        assert!(!is_secret("TESSERA_COORDINATOR") && shown("a", "b") == "b");
    }
}
