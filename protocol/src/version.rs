//! Versions of stored and sent data, and the error for a version that this build does not read.
//! Each format has its own number; `docs/versions.md` lists them and says how a format changes.

/// The data has a version that this build does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionError {
    /// Kind of the data, such as `record`.
    pub what: &'static str,
    /// The version that the data names.
    pub found: u32,
    /// The oldest version that this build reads.
    pub oldest: u32,
    /// The newest version that this build reads. It is also the version that this build writes.
    pub newest: u32,
}

impl VersionError {
    /// Checks a version against the range that this build reads.
    pub fn check(what: &'static str, found: u32, (oldest, newest): (u32, u32)) -> Result<(), Self> {
        match (oldest..=newest).contains(&found) {
            true => Ok(()),
            false => Err(Self { what, found, oldest, newest }),
        }
    }
}

impl std::fmt::Display for VersionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, found, oldest, newest } = self;
        write!(f, "{what} has version {found}, and this build reads version {oldest}")?;
        if oldest != newest {
            write!(f, " to {newest}")?;
        }
        match found > newest {
            true => write!(f, "; use the build that wrote it, or a newer one"),
            false => write!(f, "; open it once with a build that reads both versions"),
        }
    }
}

impl std::error::Error for VersionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_both_versions_and_what_to_do() {
        let text = |found, reads| {
            VersionError::check("record", found, reads).map_err(|error| error.to_string())
        };
        assert_eq!(text(1, (1, 1)), Ok(()));
        assert_eq!(text(2, (1, 3)), Ok(()));
        assert_eq!(
            text(9, (1, 1)).unwrap_err(),
            "record has version 9, and this build reads version 1; use the build that wrote it, \
             or a newer one"
        );
        assert_eq!(
            text(1, (2, 3)).unwrap_err(),
            "record has version 1, and this build reads version 2 to 3; open it once with a \
             build that reads both versions"
        );
    }
}
