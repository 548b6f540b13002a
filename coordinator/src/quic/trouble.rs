//! Why streams are not handled, and when that closes the connection of the peer.

use crate::access::Refusal;
use quinn::Connection;
use tessera_protocol::stream::StreamKind;
use tessera_transport::close::close;
use tessera_transport::error::Ended;
use tessera_transport::{BlobError, CloseCode, FrameError, Link};

/// Why a stream was not handled.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// The peer broke the protocol, stopped answering, or is gone.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A blob was not transferred. The other side knows why.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The peer's role does not have the right.
    #[error("{0}")]
    NotAllowed(String),
    /// The peer sent an invalid message.
    #[error("{0}")]
    Protocol(String),
    /// The peer's certificate has expired.
    #[error("the certificate has expired; renew it before anything else")]
    Expired,
    /// The peer has lost its access.
    #[error("{}", .0.text)]
    Refused(Refusal),
    /// The coordinator is stopping.
    #[error("the coordinator is stopping")]
    Stopping,
}

impl Trouble {
    /// Returns the code with which a peer's connection is closed for what it may not do.
    fn code(&self) -> Option<CloseCode> {
        match self {
            Self::NotAllowed(_) => Some(CloseCode::NotAllowed),
            Self::Protocol(_) => Some(CloseCode::Protocol),
            Self::Expired => Some(CloseCode::Expired),
            Self::Refused(refusal) => Some(refusal.code),
            Self::Frame(_) | Self::Blob(_) | Self::Stopping => None,
        }
    }

    /// Closes the peer's connection while the stream that is refused is still open. A stream that
    /// is dropped ends as if it were whole, and its peer might see that before the reason.
    pub(super) fn closing(self, connection: &Connection) -> Self {
        if let Some(code) = self.code() {
            close(connection, code, &self.to_string());
        }
        self
    }
}

/// Closes the connection of a peer that breaks the rules, with the reason. Other errors concern
/// only their stream: also a blob whose bytes stop coming, or that nobody reads. The connection
/// may have other work, and a peer that is really gone is found by QUIC.
pub(super) fn settle(connection: &Connection, result: Result<(), Trouble>) {
    let Err(trouble) = result else { return };
    let code = match &trouble {
        Trouble::Blob(BlobError::Frame(error @ (FrameError::Silent(_) | FrameError::Cut))) => {
            let from = connection.remote_address();
            tracing::info!(%from, %error, "a transfer was given up; the connection stays");
            return;
        }
        Trouble::Frame(error) | Trouble::Blob(BlobError::Frame(error)) => match error {
            error if error.is_peers_fault() => CloseCode::Protocol,
            FrameError::Silent(_) => CloseCode::Silent,
            // A node that knows a newer coordinator of this farm, for example.
            FrameError::Ended(Ended::Closed { code: Some(CloseCode::Failed), reason }) => {
                let from = connection.remote_address();
                tracing::warn!(%from, reason, "the peer ended the connection");
                return;
            }
            _ => return,
        },
        Trouble::Blob(error) => {
            tracing::warn!(error = error as &dyn std::error::Error, "blob was not transferred");
            return;
        }
        other => match other.code() {
            Some(code) => code,
            None => return,
        },
    };
    tracing::warn!(from = %connection.remote_address(), reason = %trouble, "connection closed");
    close(connection, code, &trouble.to_string());
}

/// Returns the refusal of a stream that the peer may not open.
pub(super) fn wrong_kind(kind: StreamKind) -> Trouble {
    Trouble::NotAllowed(format!("streams of kind {kind:?} are not for this identity"))
}

/// Closes the link's connection when it is dropped.
pub(super) struct Closing<'a>(pub(super) &'a Link);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        close(&self.0.connection, CloseCode::Done, "");
    }
}
