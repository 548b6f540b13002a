//! Errors of connections: why one was not made or has ended, in words that a user can act on. The
//! command line owns the exit statuses.

use crate::close::{CLOSE_REASON_MAX, CloseCode, cut};
use crate::endpoint::address::{Address, AddressError};
use crate::endpoint::seen_clock::ClocksApart;
use quinn::ConnectionError;
use std::time::Duration;
use tessera_protocol::HelloError;

/// TLS alerts (RFC 8446 §6) as QUIC error codes (RFC 9001 §4.8).
const CRYPTO_ERRORS: std::ops::Range<u64> = 0x100..0x200;
const ALERT_CERTIFICATE_EXPIRED: u8 = 45;
const ALERT_NO_APPLICATION_PROTOCOL: u8 = 120;
/// bad_certificate to unknown_ca, access_denied, decrypt_error, certificate_required.
const ALERTS_OF_CERTIFICATES: [u8; 10] = [42, 43, 44, 45, 46, 47, 48, 49, 51, 116];

/// Why a live connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The peer closed it.
    #[error("the peer closed the connection: {reason} ({})", code_name(*code))]
    Closed {
        /// Reason code; None for a code that this build does not know.
        code: Option<CloseCode>,
        /// Text from the peer. Even from an authenticated peer it is only text.
        reason: String,
    },
    /// The peer was silent for too long.
    #[error("the connection timed out")]
    TimedOut,
    /// This side closed it.
    #[error("the connection is closed")]
    Here,
    /// TLS or QUIC failed.
    #[error("the connection failed: {0}")]
    Transport(String),
}

fn code_name(code: Option<CloseCode>) -> String {
    code.map_or_else(|| "unknown code".to_owned(), |code| format!("{code:?}"))
}

impl From<ConnectionError> for Ended {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::ApplicationClosed(close) => Self::Closed {
                code: CloseCode::from_number(close.error_code.into_inner()),
                reason: printable(&close.reason),
            },
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::LocallyClosed => Self::Here,
            other => Self::Transport(other.to_string()),
        }
    }
}

/// Cuts a peer's text and shows its control characters, because it reaches terminals and logs.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    tessera_protocol::names::printable(cut(&text, CLOSE_REASON_MAX))
}

/// Returns an error and its causes in one line. A cause that the text ends with is not said again.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |cause| cause.source()) {
        let part = cause.to_string();
        if !text.ends_with(&part) {
            text += &format!(": {part}");
        }
    }
    text
}

/// Why there is no connection to a coordinator.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is malformed, or its host has no address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The system could not open a socket.
    #[error("cannot open a UDP socket")]
    Socket(#[source] std::io::Error),
    /// The key or the certificate of this side cannot be used.
    #[error("cannot use the identity: {0}")]
    Identity(String),
    /// There is no route to the address.
    #[error("no way to `{address}`")]
    NoRoute {
        /// Address that was dialled.
        address: Address,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// No answer came in time.
    #[error("no answer from `{address}` within {} s", within.as_secs_f32())]
    Unreachable {
        /// Address that was dialled.
        address: Address,
        /// Time that was waited.
        within: Duration,
    },
    /// None of the places where a coordinator may be has one.
    #[error("no coordinator is found: {each}")]
    Nowhere {
        /// What was found at each place.
        each: String,
    },
    /// The machine answers, but nothing listens on the port.
    #[error("nothing listens at `{address}`")]
    Refused {
        /// Address that was dialled.
        address: Address,
    },
    /// The server has a certificate of another authority.
    #[error("the server at `{address}` is not this farm's coordinator: {problem}")]
    Foreign {
        /// Address that was dialled.
        address: Address,
        /// Fault of its certificate.
        problem: String,
    },
    /// The clocks of both machines are so far apart that one side refuses the other's certificate.
    #[error(
        "the clock of this machine is {days} days or more {} that of the coordinator at \
         `{address}`, so their certificates do not hold for each other: {problem}",
        if *behind { "behind" } else { "ahead of" }
    )]
    Clocks {
        /// Address that was dialled.
        address: Address,
        /// Whole days between the clocks, at least.
        days: u64,
        /// Whether this machine's clock is the one that is behind.
        behind: bool,
        /// Fault of a certificate, as the side that refused it sees it.
        problem: String,
    },
    /// The server does not accept our certificate.
    #[error("the coordinator at `{address}` rejects this identity: {reason}")]
    Rejected {
        /// Address that was dialled.
        address: Address,
        /// Reason of the server.
        reason: String,
    },
    /// The server says that our certificate has expired so long ago that it cannot be renewed.
    #[error("the certificate of this identity has expired, says the coordinator at `{address}`")]
    Expired {
        /// Address that was dialled.
        address: Address,
    },
    /// The server speaks another protocol.
    #[error("the server at `{address}` does not speak the Tessera protocol")]
    NotTessera {
        /// Address that was dialled.
        address: Address,
    },
    /// According to this side, there is no protocol version in common.
    #[error("this build and the coordinator at `{address}` cannot work together")]
    Version {
        /// Address that was dialled.
        address: Address,
        /// Versions of both sides.
        #[source]
        source: HelloError,
    },
    /// According to the coordinator, there is no protocol version in common.
    #[error("this build and the coordinator at `{address}` cannot work together: {reason}")]
    VersionRefused {
        /// Address that was dialled.
        address: Address,
        /// Text from the coordinator.
        reason: String,
    },
    /// The connection ended before it was ready.
    #[error("the connection to `{address}` ended")]
    Ended {
        /// Address that was dialled.
        address: Address,
        /// How the connection ended.
        #[source]
        source: Ended,
    },
}

/// Classes of [`ConnectError`] on which a program can act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// The coordinator is not reachable. Try again later or elsewhere.
    Unreachable,
    /// The identity or the farm is the wrong one.
    NotAllowed,
    /// The builds do not match.
    Version,
    /// Something on this side failed.
    Local,
}

impl ConnectError {
    /// Returns the class of the failure.
    pub fn failure(&self) -> ConnectFailure {
        match self {
            Self::Address(AddressError::Resolve { .. })
            | Self::NoRoute { .. }
            | Self::Unreachable { .. }
            | Self::Nowhere { .. }
            | Self::Refused { .. } => ConnectFailure::Unreachable,
            Self::Ended { source, .. } => match source {
                Ended::Closed { code: Some(code), .. } if code.turns_away() => {
                    ConnectFailure::NotAllowed
                }
                _ => ConnectFailure::Unreachable,
            },
            // A clock can be set while a node waits.
            Self::Clocks { .. } => ConnectFailure::Unreachable,
            Self::Foreign { .. } | Self::Rejected { .. } | Self::Expired { .. } => {
                ConnectFailure::NotAllowed
            }
            Self::NotTessera { .. } | Self::Version { .. } | Self::VersionRefused { .. } => {
                ConnectFailure::Version
            }
            Self::Address(AddressError::Form { .. }) | Self::Socket(_) | Self::Identity(_) => {
                ConnectFailure::Local
            }
        }
    }

    /// Returns advice for a person, in one line.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Address(_) | Self::Socket(_) | Self::Ended { .. } => return None,
            Self::Identity(_) => "enrol again with a join token",
            Self::NoRoute { .. } => "check the network of this machine",
            Self::Unreachable { .. } => {
                "check the address, and that UDP to this port passes the firewalls"
            }
            Self::Nowhere { .. } => {
                "start a coordinator, or check the addresses, and that UDP to these ports passes \
                 the firewalls"
            }
            Self::Refused { .. } => {
                "start the coordinator, or give its address with --coordinator HOST:PORT"
            }
            Self::Foreign { .. } => {
                "use the identity (or a join token) of the farm at this address"
            }
            Self::Clocks { .. } => {
                "set the clock that is wrong (`date` shows this machine's), and let a time service \
                 (NTP) keep both"
            }
            Self::Rejected { .. } => {
                "enrol again with a join token of this farm, and check both machines' clocks"
            }
            Self::Expired { .. } => {
                "ask an administrator of the farm for a join token (`tessera token create`), and \
                 enrol again with it: users by `tessera enrol --replace --token-file FILE`, nodes \
                 by a start with --token-file FILE; check this machine's clock if the certificate \
                 should still be valid"
            }
            Self::NotTessera { .. } => {
                "check the port: it is the coordinator's UDP port, 7420 unless changed"
            }
            Self::Version { .. } | Self::VersionRefused { .. } => {
                "install the same version on both sides"
            }
        })
    }

    /// Names the clocks instead, if a certificate was refused and they are days apart.
    pub(crate) fn with_clocks(self, apart: Option<ClocksApart>) -> Self {
        let Some(ClocksApart { days, behind }) = apart else { return self };
        let (address, problem) = match self {
            Self::Foreign { address, problem } => (address, problem),
            Self::Rejected { address, reason } => (address, reason),
            Self::Expired { address } => (address, "it has expired".to_owned()),
            other => return other,
        };
        Self::Clocks { address, days, behind, problem }
    }

    /// Converts an error of QUIC while dialling `address`.
    pub(crate) fn from_connection(
        address: &Address,
        error: ConnectionError,
        within: Duration,
    ) -> Self {
        let address = address.clone();
        let (code, reason, ours) = match &error {
            // A reset comes from a peer that does not know the connection: too little of it arrived
            // there, or the peer was restarted.
            ConnectionError::TimedOut | ConnectionError::Reset => {
                return Self::Unreachable { address, within };
            }
            ConnectionError::VersionMismatch => return Self::NotTessera { address },
            ConnectionError::TransportError(error) => {
                (u64::from(error.code), error.reason.clone(), true)
            }
            ConnectionError::ConnectionClosed(close) => {
                (u64::from(close.error_code), printable(&close.reason), false)
            }
            _ => (0, String::new(), false),
        };
        let alert = CRYPTO_ERRORS.contains(&code).then_some(code as u8);
        match (alert, Ended::from(error)) {
            (Some(ALERT_NO_APPLICATION_PROTOCOL), _) => Self::NotTessera { address },
            (Some(alert), _) if ours && ALERTS_OF_CERTIFICATES.contains(&alert) => {
                Self::Foreign { address, problem: reason }
            }
            (Some(ALERT_CERTIFICATE_EXPIRED), _) => Self::Expired { address },
            (Some(alert), _) if ALERTS_OF_CERTIFICATES.contains(&alert) => {
                let reason = if reason.is_empty() { format!("TLS alert {alert}") } else { reason };
                Self::Rejected { address, reason }
            }
            (_, Ended::Closed { code: Some(CloseCode::Version), reason }) => {
                Self::VersionRefused { address, reason }
            }
            (_, source) => Self::Ended { address, source },
        }
    }
}
