//! What errors of a connection mean for who asked.

use tokio_postgres::error::SqlState;

/// Why a statement has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// The connection could not be made or has ended, the answer came too late, or the database is
    /// stopping, starting or full. What was sent may have happened or not.
    #[error("{0}")]
    Unknown(String),
    /// The database refused. Nothing has happened, and trying again does not help.
    #[error("{0}")]
    Refused(String, SqlState),
    /// The connection cannot be made as it is asked for.
    #[error("{0}")]
    Setup(String),
}

impl LinkError {
    /// Returns advice for who gave the address.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        let refusal = match self {
            Self::Unknown(_) => {
                return Some(
                    "is PostgreSQL running there, and can it be reached? `psql` with the same \
                     address tries it",
                );
            }
            Self::Setup(_) => return None,
            Self::Refused(_, state) => state.code(),
        };
        match refusal {
            "28P01" => Some("give the user's password: --store-password-file FILE"),
            "28000" => Some("the server's pg_hba.conf does not let this user in from here"),
            "3D000" => Some("make the database: `createdb --owner USER DB`"),
            "42501" => Some("the user must own the database: `ALTER DATABASE DB OWNER TO USER`"),
            _ => None,
        }
    }
}

/// Says what an error means. The database's own text is kept, without what was sent.
pub(crate) fn understood(error: tokio_postgres::Error) -> LinkError {
    let Some(refusal) = error.as_db_error() else {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            text = format!("{text}: {deeper}");
            cause = deeper.source();
        }
        return LinkError::Unknown(text);
    };
    let state = refusal.code().clone();
    let text = format!("{} (SQLSTATE {})", refusal.message(), state.code());
    match may_pass(state.code()) {
        true => LinkError::Unknown(text),
        false => LinkError::Refused(text, state),
    }
}

/// Whether an error is of the connection, or of a database that stops, starts, is full, busy or not
/// the one that takes writes now.
fn may_pass(state: &str) -> bool {
    let of_class = |class: &str| state.starts_with(class) && state != "08P01";
    ["08", "40", "53", "57P", "58"].into_iter().any(of_class) || ["57014", "25006"].contains(&state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_told_from_a_refusal() {
        for state in ["08006", "57P01", "57P03", "53100", "53300", "40001", "57014", "25006"] {
            assert!(may_pass(state), "{state}");
        }
        for state in ["28P01", "42P01", "42501", "3D000", "08P01", "23505"] {
            assert!(!may_pass(state), "{state}");
        }
    }
}
