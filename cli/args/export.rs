//! Forms in which jobs are written for other farms.

use std::str::FromStr;

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportArg {
    /// A job template of Open Job Description, as JSON.
    OpenJd,
}

impl FromStr for ExportArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "openjd" => Ok(Self::OpenJd),
            _ => Err(format!("`{text}` is not one of: openjd")),
        }
    }
}
