//! The address of a store: `postgres://USER[:PASSWORD]@HOST[:PORT]/DB[?OPTIONS]`. Its text is never
//! part of an error or of a log, because a password may be in it.

use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Default term of a leader, by the database's clock.
const TERM: Duration = Duration::from_secs(15);
/// Shortest and longest term in seconds.
const TERM_SECS: std::ops::RangeInclusive<u64> = 2..=600;
/// Port where the address names none.
const PORT: u16 = 5432;

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is not an address of PostgreSQL.
    #[error("a store is `sled`, or `postgres://USER@HOST[:PORT]/DB`")]
    Form,
    /// A part that is needed is not there, or cannot be read.
    #[error("the address of the store has {0}; it is `postgres://USER@HOST[:PORT]/DB[?OPTIONS]`")]
    Part(&'static str),
    /// An option has a value that is refused.
    #[error("option `{name}` of the store's address is {wanted}")]
    Option {
        /// Name of the option.
        name: String,
        /// What it can be.
        wanted: &'static str,
    },
}

/// How the connection is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Not at all: for sockets of this machine.
    None,
    /// TLS. The server's certificate must be of its name, by an authority of this file or, without
    /// one, of the system.
    Verified(Option<PathBuf>),
}

/// Where a store is, and how it is spoken to.
#[derive(Clone)]
pub struct StoreAddress {
    pub(crate) config: Config,
    pub(crate) protection: Protection,
    /// How long a leader leads without renewing, by the database's clock.
    pub(crate) term: Duration,
}

impl StoreAddress {
    /// Returns whether a text is meant to be an address of PostgreSQL.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if !Self::is_one(text) {
            return Err(AddressError::Form);
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut rest, mut mode, mut root, mut term) = (Vec::new(), None, None, TERM);
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                "sslmode" => mode = Some(value),
                "sslrootcert" => root = Some(PathBuf::from(value)),
                "term" => term = parse_term(value)?,
                // Each has a setting of its own here, or none that is right for a store.
                "options" | "target_session_attrs" | "load_balance_hosts" | "sslnegotiation" => {
                    let name = name.to_owned();
                    return Err(AddressError::Option { name, wanted: "not one that can be set" });
                }
                _ => rest.push(option),
            }
        }
        let plain = match rest.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", rest.join("&")),
        };
        let config: Config =
            plain.parse().map_err(|_| AddressError::Part("a part that cannot be read"))?;
        if config.get_user().is_none() || !base.contains('@') {
            return Err(AddressError::Part("no user"));
        }
        if config.get_hosts().is_empty() {
            return Err(AddressError::Part("no host"));
        }
        if config.get_dbname().is_none() {
            return Err(AddressError::Part("no database"));
        }
        let protection = protection(&config, mode, root)?;
        Ok(Self { config, protection, term })
    }

    /// Whether a password is in the address.
    pub(crate) fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    pub(crate) fn user(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    pub(crate) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }

    /// Returns hosts and ports, in the order in which they are tried.
    pub(crate) fn hosts(&self) -> Vec<(String, u16)> {
        let ports = self.config.get_ports();
        let host = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(PORT);
        let hosts = self.config.get_hosts().iter().enumerate();
        hosts.map(|(index, name)| (host(name), port(index))).collect()
    }
}

/// The address without password and options.
impl std::fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hosts: Vec<String> =
            self.hosts().iter().map(|(host, port)| format!("{host}:{port}")).collect();
        write!(f, "postgres://{}@{}/{}", self.user(), hosts.join(","), self.database())
    }
}

impl std::fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreAddress({self})")
    }
}

fn parse_term(value: &str) -> Result<Duration, AddressError> {
    let secs = value.parse().ok().filter(|secs| TERM_SECS.contains(secs));
    let wanted = "a number of seconds from 2 to 600";
    secs.map(Duration::from_secs).ok_or(AddressError::Option { name: "term".into(), wanted })
}

/// Unencrypted within this machine, checked TLS to others, unless the address says otherwise.
fn protection(
    config: &Config,
    mode: Option<&str>,
    root: Option<PathBuf>,
) -> Result<Protection, AddressError> {
    let here = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost"
                || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    });
    match (mode, root) {
        (Some("disable"), None) => Ok(Protection::None),
        (Some("verify-full"), root) | (None, root @ Some(_)) => Ok(Protection::Verified(root)),
        (None, None) if here => Ok(Protection::None),
        (None, None) => Ok(Protection::Verified(None)),
        _ => Err(AddressError::Option {
            name: "sslmode".into(),
            wanted: "`verify-full` or `disable` (without sslrootcert): the others do not check \
                     who answers",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_password_and_options() {
        let text = "postgres://ada:s%3Acret@db.example:6432/farm?connect_timeout=3&term=20";
        let address = StoreAddress::parse(text).unwrap();
        assert_eq!(address.to_string(), "postgres://ada@db.example:6432/farm");
        assert!(!format!("{address:?}").contains("cret"));
        assert_eq!(address.term, Duration::from_secs(20));
        assert_eq!(address.config.get_password(), Some(&b"s:cret"[..]));
        assert_eq!(address.protection, Protection::Verified(None));
        let socket = StoreAddress::parse("postgres://ada@%2Frun%2Fpg:5433/farm").unwrap();
        assert_eq!(socket.hosts(), [("/run/pg".to_owned(), 5433)]);
        assert_eq!(socket.protection, Protection::None);
    }

    #[test]
    fn malformed_addresses_are_refused_without_their_text() {
        for text in [
            "mysql://ada:secret@h/farm",
            "postgres://h/farm",
            "postgres://ada:secret@/farm",
            "postgres://ada:secret@h",
            "postgres://ada:secret@h/farm?term=1",
            "postgres://ada:secret@h/farm?term=secret",
            "postgres://ada:secret@h/farm?sslmode=require",
            "postgres://ada:secret@h/farm?sslmode=disable&sslrootcert=/x",
            "postgres://ada:secret@h/farm?options=-c%20fsync%3Doff",
            "postgres://ada:secret@h/farm?secret=secret",
            "postgres://ada:secret@h:secret/farm",
        ] {
            let error = StoreAddress::parse(text).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{text}: {error}");
        }
    }
}
