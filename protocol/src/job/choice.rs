//! Choice of a file's scene and animations, by name or number.

use super::error::{SpecError, wrong};
use crate::limits::{ANIMATIONS_MAX, NAME_MAX};
use serde::{Deserialize, Serialize};

/// One of the things of a file that have names, by its name or by its number from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChoiceSpec {
    /// The first with this name, of 1 to [`NAME_MAX`] bytes.
    Named(String),
    /// The one at this position in the file.
    Index(u32),
}

impl ChoiceSpec {
    /// Reads what a person wrote: a number is a position, everything else a name.
    pub fn of(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Named(text.to_owned()), Self::Index)
    }

    fn check(&self, field: &'static str) -> Result<(), SpecError> {
        match self {
            Self::Named(name) if !(1..=NAME_MAX).contains(&name.len()) => {
                wrong(field, format!("a name of {} bytes is not in 1 to {NAME_MAX}", name.len()))
            }
            _ => Ok(()),
        }
    }
}

/// Checks the names of a chosen scene and chosen animations, and their number.
pub(super) fn check(
    scene: Option<&ChoiceSpec>,
    animations: &[ChoiceSpec],
) -> Result<(), SpecError> {
    scene.into_iter().try_for_each(|choice| choice.check("scene"))?;
    if animations.len() > ANIMATIONS_MAX {
        let count = animations.len();
        return wrong("animation", format!("{count} are more than {ANIMATIONS_MAX}"));
    }
    animations.iter().try_for_each(|choice| choice.check("animation"))
}
