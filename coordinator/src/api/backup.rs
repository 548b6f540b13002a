//! A backup of a running coordinator, as a stream of pieces.

use super::caller::Caller;
use super::context::{Context, unavailable};
use crate::backup::{self, PIECE_BYTES};
use crate::fsck::Places;
use std::io::{self, Write};
use tessera_protocol::client::RequestError;
use tokio::sync::mpsc;

/// Most pieces that wait for the network.
const PIECES_WAITING_MAX: usize = 4;

/// The pieces of a backup, in order. Dropping this value ends the backup.
#[derive(Debug)]
pub struct BackupPieces(mpsc::Receiver<Result<Vec<u8>, RequestError>>);

impl BackupPieces {
    pub(super) fn empty() -> Self {
        Self(mpsc::channel(1).1)
    }

    /// Returns the next piece, at most [`PIECE_BYTES`] long; None at the end. An error is the last
    /// item.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, RequestError>> {
        self.0.recv().await
    }
}

/// Begins a backup of the running farm. Spools and blobs that are no longer needed are kept until
/// the backup has ended.
pub(super) async fn begin(
    context: &Context,
    caller: &Caller,
) -> Result<BackupPieces, RequestError> {
    let held = (context.blobs.hold(), context.writer.hold_spools());
    let loaded = context.inspect().await?;
    // The log already has the entry about this backup.
    let log = context.access.log.clone();
    let still = tokio::task::spawn_blocking(move || log.still()).await;
    let still = still
        .map_err(io::Error::other)
        .flatten()
        .map_err(|error| unavailable(format!("the audit log cannot be backed up: {error}")))?;
    tracing::info!(by = %caller, records = loaded.records.len(), "backup begins");
    let places = Places { blobs: context.blobs.store(), spools: context.spools.clone() };
    let (sender, pieces) = mpsc::channel(PIECES_WAITING_MAX);
    tokio::task::spawn_blocking(move || {
        let _held = held;
        let mut out = Sending { piece: Vec::new(), sender };
        let written = backup::write(&loaded, &places, still, &mut out);
        match written.and_then(|()| out.flush().map_err(backup::BackupError::Write)) {
            Ok(()) => tracing::info!("backup is sent"),
            Err(error) => {
                let mut text = error.to_string();
                if let Some(cause) = std::error::Error::source(&error) {
                    text = format!("{text}: {cause}");
                }
                tracing::warn!(error = text, "backup has failed");
                // The receiver may be gone; that may be the reason of the error.
                drop(out.sender.blocking_send(Err(RequestError::Unavailable(text))));
            }
        }
    });
    Ok(BackupPieces(pieces))
}

/// A writer that sends its bytes to a client, in pieces.
struct Sending {
    piece: Vec<u8>,
    sender: mpsc::Sender<Result<Vec<u8>, RequestError>>,
}

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        let sent = self.sender.blocking_send(Ok(piece));
        sent.map_err(|_| {
            io::Error::new(io::ErrorKind::BrokenPipe, "the receiver of the backup is gone")
        })
    }
}
