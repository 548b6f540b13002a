//! Errors of the store, in words: without keys, and with what to do.

use object_store::Error;
use std::io;

/// Why a request to the store failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The service's error.
    #[error("the store of files: {what}")]
    Store {
        /// What happened, for people.
        what: String,
        kind: io::ErrorKind,
    },
    /// No end of the answer in time.
    #[error("the store of files does not answer in time")]
    Late,
    /// What runs the requests has ended.
    #[error("the process is ending")]
    Ending,
}

impl Failure {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Store { kind: io::ErrorKind::PermissionDenied, .. } => Some(
                "check the credentials, and that they may get, put, list and delete in the bucket",
            ),
            Self::Store { kind: io::ErrorKind::NotFound, .. } => {
                Some("make the bucket first; the farm makes none")
            }
            Self::Store { .. } | Self::Late => {
                Some("see that the service is up and can be reached from this machine")
            }
            Self::Ending => None,
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Store { kind: io::ErrorKind::Other, .. } | Self::Late)
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Store { kind: io::ErrorKind::NotFound, .. })
    }

    pub(crate) fn is_there(&self) -> bool {
        matches!(self, Self::Store { kind: io::ErrorKind::AlreadyExists, .. })
    }

    pub(crate) fn into_io(self) -> io::Error {
        let kind = match &self {
            Self::Store { kind, .. } => *kind,
            Self::Late => io::ErrorKind::TimedOut,
            Self::Ending => io::ErrorKind::Other,
        };
        io::Error::new(kind, self)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::NotFound { .. } => io::ErrorKind::NotFound,
            Error::AlreadyExists { .. } | Error::Precondition { .. } => {
                io::ErrorKind::AlreadyExists
            }
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                io::ErrorKind::PermissionDenied
            }
            _ => io::ErrorKind::Other,
        };
        Self::Store { what: innermost(&error), kind }
    }
}

/// The last of an error's causes: what the system or the service said. Those before it repeat it.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text: String = last.to_string().chars().take(500).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
