//! Choice of one of the things of a file that have names: a scene, an animation.

use crate::report::warning::shortened;
use serde::{Deserialize, Serialize};

/// Most names that a refusal lists.
const LISTED_MAX: usize = 16;
/// Longest name that a refusal shows, in characters.
const LISTED_CHARS_MAX: usize = 60;

/// A thing of a file, by its name or by its number from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    /// The first with this name.
    Named(String),
    /// The one at this position in the file.
    Index(u32),
}

impl Choice {
    /// Returns the position of the chosen one. The error names `what` there is none of, and lists
    /// those that there are.
    pub(crate) fn find(&self, what: &str, names: &[&str]) -> Result<usize, String> {
        let (found, wanted) = match self {
            Self::Named(name) => (
                names.iter().position(|other| other == name),
                format!("named {:?}", shortened(name, LISTED_CHARS_MAX)),
            ),
            Self::Index(index) => {
                (Some(*index as usize).filter(|index| *index < names.len()), index.to_string())
            }
        };
        found.ok_or_else(|| {
            let listed = names.iter().enumerate().take(LISTED_MAX);
            let listed =
                listed.map(|(n, name)| format!("{n} {:?}", shortened(name, LISTED_CHARS_MAX)));
            let listed: Vec<String> = listed.collect();
            match listed.is_empty() {
                true => format!("there is no {what} {wanted}; the file has none"),
                false => format!("there is no {what} {wanted}; the file has {}", listed.join(", ")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Choice;

    #[test]
    fn a_thing_is_found_by_name_or_number_and_others_are_listed() {
        let names = ["Walk", "Run", "Walk"];
        let find = |choice: Choice| choice.find("animation", &names);
        assert_eq!(find(Choice::Named("Walk".into())), Ok(0));
        assert_eq!(find(Choice::Index(2)), Ok(2));
        let list = "; the file has 0 \"Walk\", 1 \"Run\", 2 \"Walk\"";
        for (choice, wanted) in
            [(Choice::Named("run".into()), "named \"run\""), (Choice::Index(3), "3")]
        {
            assert_eq!(find(choice), Err(format!("there is no animation {wanted}{list}")));
        }
        let none = Choice::Index(0).find("scene", &[]);
        assert_eq!(none, Err("there is no scene 0; the file has none".into()));
    }
}
