//! What commands are about: a job, a frame or a unit of it, in one word.

use crate::error::{CliError, Status};
use crate::table::printable;
use tessera_protocol::{FrameNumber, UnitIndex};

/// Where in a farm: `JOB`, `JOB/f0007` or `JOB/7/12`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) job: &'a str,
    pub(crate) frame: Option<FrameNumber>,
    pub(crate) unit: Option<UnitIndex>,
}

impl<'a> Place<'a> {
    /// Reads what was typed. Names of jobs have no slash.
    pub(crate) fn of(text: &'a str) -> Result<Self, CliError> {
        let wrong = || {
            let text = format!("`{}` is no JOB, JOB/FRAME or JOB/FRAME/UNIT", printable(text));
            CliError::new(Status::Usage, text).hint("`tessera job JOB` names the units that failed")
        };
        let number = |text: &str, sign: char| -> Result<u32, CliError> {
            text.strip_prefix(sign).unwrap_or(text).parse().map_err(|_| wrong())
        };
        let mut parts = text.split('/');
        let job = parts.next().unwrap_or_default();
        let frame = parts.next().map(|part| number(part, 'f')).transpose()?;
        let unit = parts.next().map(|part| number(part, 'u')).transpose()?;
        match parts.next() {
            Some(_) => Err(wrong()),
            None => Ok(Self { job, frame: frame.map(FrameNumber), unit: unit.map(UnitIndex) }),
        }
    }
}

/// The error for a word that names neither a job nor a node.
pub(crate) fn neither(what: &str) -> CliError {
    let text = format!("there is no job and no node `{}`", printable(what));
    CliError::new(Status::NotFound, text).hint("`tessera jobs` and `tessera nodes` list them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_job_a_frame_or_a_unit() {
        let place = |job, frame: Option<u32>, unit: Option<u32>| Place {
            job,
            frame: frame.map(FrameNumber),
            unit: unit.map(UnitIndex),
        };
        for (text, expected) in [
            ("shot 1", place("shot 1", None, None)),
            ("0a1b/f0007", place("0a1b", Some(7), None)),
            ("0a1b/f0007/u00012", place("0a1b", Some(7), Some(12))),
            ("0a1b/7/12", place("0a1b", Some(7), Some(12))),
        ] {
            assert_eq!(Place::of(text).unwrap(), expected, "{text}");
        }
        for text in ["a/b", "a/7/b", "a/7/12/1", "a/", "a/-1", "a/u7"] {
            assert_eq!(Place::of(text).unwrap_err().status(), Status::Usage, "{text}");
        }
    }
}
