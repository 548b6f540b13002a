//! The targets of events that a job names. Which there are, the coordinator knows.

use super::error::{SpecError, wrong};
use crate::limits::{NOTIFY_MAX, TARGET_NAME_MAX};
use std::collections::BTreeSet;

/// Checks the form of the names.
pub(super) fn check(names: &[String]) -> Result<(), SpecError> {
    if names.len() > NOTIFY_MAX {
        wrong("notify", format!("{} targets are more than {NOTIFY_MAX}", names.len()))?;
    }
    let mut named = BTreeSet::new();
    for name in names {
        if !is_target_name(name) {
            wrong("notify", format!("{name:?} is not the name of a target"))?;
        }
        if !named.insert(name) {
            wrong("notify", format!("the target {name:?} is named twice"))?;
        }
    }
    Ok(())
}

/// Returns whether a text can name a target: letters, digits, `.`, `_` and `-`.
pub fn is_target_name(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=TARGET_NAME_MAX).contains(&text.len()) && text.chars().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_targets_are_few_and_plain() {
        let names = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(check(&names(&["studio", "ada.mail_2-x"])).is_ok());
        for wrong in [names(&["a", "a"]), names(&[""]), names(&["a b"]), names(&["a\n"])] {
            assert!(check(&wrong).is_err_and(|error| error.field == "notify"), "{wrong:?}");
        }
        let many: Vec<String> = (0..=NOTIFY_MAX).map(|at| format!("t{at}")).collect();
        assert!(check(&many).is_err() && check(&many[1..]).is_ok());
        assert!(!is_target_name(&"x".repeat(TARGET_NAME_MAX + 1)));
    }
}
