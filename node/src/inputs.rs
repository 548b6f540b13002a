//! Fetches what finishing units read, each under its lease, into files that are gone once the unit
//! ends. Waits while there is no session. Owns the files; knows no device.

use self::elsewhere::There;
use crate::disk::failure_of;
use crate::frame_memory::{Claim, NotPrepared};
use crate::piece::PreparedPiece;
use bytes::Bytes;
use quinn::Connection;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tessera_finishing::{FinishError, Inputs, memory_of};
use tessera_protocol::job::Bands;
use tessera_protocol::limits::{FRAME_UNITS_MAX, REASON_MAX, RESULT_BYTES_MAX};
use tessera_protocol::node::{Failure, Finish, Piece};
use tessera_protocol::stream::{InputsReply, InputsRequest, StreamKind};
use tessera_protocol::{FrameNumber, JobKind, Lease, RenderSpec};
use tessera_transport::close::cut;
use tessera_transport::error::chain;
use tessera_transport::frame::{open_both, within};
use tessera_transport::{FrameError, FrameReceiver};
use tokio::sync::{mpsc, watch};

/// Tries for the inputs of one unit during a session. Lost sessions do not count.
const TRIES_MAX: u32 = 4;
/// Wait between two tries.
const TRY_AGAIN: Duration = Duration::from_millis(300);
/// Pieces that are taken from QUIC at once.
const PIECES: usize = 64;
/// Steps between the connection and the disk. A step is at most [`PIECES`] packets, so together
/// they are less than 1 MiB.
const STEPS: usize = 8;
/// Bytes before each part: its place and its length.
const PART_HEAD_BYTES: u64 = 8;
/// Most bytes of a film besides its planes.
const FILM_HEAD_BYTES: u64 = 1 << 10;

/// Why the inputs of a unit could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputsError {
    /// The coordinator does not give them.
    #[error("the coordinator refuses them: {0}")]
    Refused(String),
    /// There are more of them than such a unit can read.
    #[error("the coordinator announces {parts} parts of {bytes} bytes; such a unit reads less")]
    TooMuch { parts: u32, bytes: u64 },
    /// More or fewer bytes came than were announced.
    #[error("{found} bytes came, {announced} were announced")]
    Length { announced: u64, found: u64 },
    /// The stream failed.
    #[error("the stream failed")]
    Stream(#[from] FrameError),
    /// They cannot be written.
    #[error("cannot write to `{path}`")]
    Disk {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Their form is wrong.
    #[error("what came is damaged")]
    Damaged(#[source] FinishError),
    /// They cannot be got where they are.
    #[error("they cannot be got from the farm's store")]
    NotThere,
    /// The node stops.
    #[error("the node stops")]
    Stopping,
}

impl InputsError {
    /// Converts the error for the coordinator. `what`: the inputs, for people.
    fn into_failure(self, what: &str) -> Failure {
        let reason = format!("{what} not fetched: {}", chain(&self));
        match &self {
            Self::Disk { source, .. } => failure_of(source, reason),
            Self::Refused(_) | Self::Stream(_) | Self::NotThere | Self::Stopping => {
                Failure::Asset(reason)
            }
            // No wait helps, and the node is well: after some attempts, the coordinator looks at
            // them itself.
            Self::TooMuch { .. } | Self::Length { .. } | Self::Damaged(_) => {
                Failure::Kernel(reason)
            }
        }
    }
}

/// Most that a unit of a job can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Most {
    parts: u64,
    part_bytes: u64,
    /// Whether the parts are pixels of bands.
    is_bands: bool,
}

impl Most {
    /// A band reads films of tiles, each of at least one sample of its tile; the assembly reads the
    /// pixels of each band.
    fn of(spec: &RenderSpec, finish: &Finish) -> Self {
        match finish.piece {
            Piece::Assembly => {
                let parts = Bands::of(spec).count().into();
                Self { parts, part_bytes: RESULT_BYTES_MAX as u64, is_bands: true }
            }
            Piece::Band { .. } | Piece::Frame { .. } => {
                let tiles = spec.tiles();
                let parts = u64::from(tiles.count()) * u64::from(spec.spp);
                let planes = tiles.tile_pixels_max() * u64::from(spec.channels()) * 8;
                // Compression makes them at most a 16th larger.
                let film = planes + planes / 16 + FILM_HEAD_BYTES;
                Self {
                    parts: parts.min(FRAME_UNITS_MAX),
                    part_bytes: film.min(RESULT_BYTES_MAX as u64),
                    is_bands: false,
                }
            }
        }
    }

    fn allows(&self, parts: u32, bytes: u64) -> bool {
        let parts = u64::from(parts);
        parts <= self.parts && bytes <= parts * (self.part_bytes + PART_HEAD_BYTES)
    }
}

/// Returns the name of a unit's inputs, for people.
fn name_of(spec: &RenderSpec, frame: FrameNumber, finish: &Finish) -> String {
    let bands = Bands::of(spec);
    match finish.piece {
        Piece::Band { first, .. } => {
            let is_it = |band: &u32| bands.band(*band).is_some_and(|(row, _)| row == first);
            let band = (0..bands.count()).find(is_it).unwrap_or_default();
            format!("inputs of band {band} of frame {}", frame.0)
        }
        Piece::Frame { .. } => format!("inputs of frame {}", frame.0),
        Piece::Assembly => format!("bands of frame {}", frame.0),
    }
}

/// Fetches inputs over the present session.
#[derive(Clone)]
pub(crate) struct InputsFetcher {
    folder: PathBuf,
    /// Connection of the session; None between sessions.
    connection: watch::Receiver<Option<Connection>>,
    /// Longest wait for an answer of the coordinator, and for the next bytes.
    answer: Duration,
}

impl InputsFetcher {
    pub(crate) fn new(
        folder: PathBuf,
        connection: watch::Receiver<Option<Connection>>,
        answer: Duration,
    ) -> Self {
        Self { folder, connection, answer }
    }

    /// Fetches what a unit reads. `claim` is the memory in which the unit is made. If this is
    /// dropped, nothing more is fetched.
    pub(crate) async fn prepare(
        &self,
        lease: Lease,
        (job, finish): (&Arc<JobKind>, Finish),
        claim: &Claim,
    ) -> Result<Arc<PreparedPiece>, NotPrepared> {
        let JobKind::Render(spec) = &**job else {
            return Err(Failure::Device("a finishing unit of a compute job".into()).into());
        };
        claim.expect(memory_of(spec, &finish))?;
        let fetched = self.fetch(lease, Most::of(spec, &finish)).await;
        let inputs = fetched
            .map_err(|error| error.into_failure(&name_of(spec, lease.unit.frame, &finish)))?;
        Ok(Arc::new(PreparedPiece { job: job.clone(), finish, inputs }))
    }

    async fn fetch(&self, lease: Lease, most: Most) -> Result<Inputs, InputsError> {
        let (mut sessions, mut tries, mut was_lost) = (self.connection.clone(), 0, false);
        let mut direct = true;
        loop {
            let present = sessions.wait_for(Option::is_some).await;
            let present = present.map_err(|_| InputsError::Stopping)?.clone();
            let Some(connection) = present else { return Err(InputsError::Stopping) };
            let error = match self.fetch_once(&connection, (lease, direct), most).await {
                Ok(inputs) => return Ok(inputs),
                Err(InputsError::NotThere) => {
                    // The coordinator sends them, and sees what is wrong with them.
                    direct = false;
                    continue;
                }
                Err(error) => error,
            };
            let may_help = match &error {
                InputsError::Stream(_) if connection.close_reason().is_some() => {
                    // The lease is kept. The next session asks again, from the start.
                    was_lost = true;
                    let id = connection.stable_id();
                    let is_over = |now: &Option<Connection>| {
                        now.as_ref().is_none_or(|now| now.stable_id() != id)
                    };
                    sessions.wait_for(is_over).await.map_err(|_| InputsError::Stopping)?;
                    continue;
                }
                // The coordinator may not have read yet which leases the node has kept.
                InputsError::Refused(_) => was_lost,
                InputsError::Stream(_) | InputsError::Length { .. } | InputsError::Damaged(_) => {
                    true
                }
                InputsError::TooMuch { .. }
                | InputsError::Disk { .. }
                | InputsError::NotThere
                | InputsError::Stopping => false,
            };
            tries += 1;
            if !may_help || tries >= TRIES_MAX {
                return Err(error);
            }
            tracing::warn!(%lease, error = chain(&error), "fetching what the unit reads again");
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    async fn fetch_once(
        &self,
        connection: &Connection,
        (lease, direct): (Lease, bool),
        most: Most,
    ) -> Result<Inputs, InputsError> {
        let (mut sender, mut receiver) =
            within(self.answer, open_both(connection, StreamKind::FinishInputs)).await?;
        within(self.answer, sender.send(&InputsRequest { lease, direct })).await?;
        sender.finish();
        let (parts, bytes) = match receiver.expect(self.answer).await? {
            InputsReply::Inputs { parts, bytes } => (parts, bytes),
            InputsReply::Refused(reason) => {
                return Err(InputsError::Refused(cut(&reason, REASON_MAX).to_owned()));
            }
            InputsReply::Elsewhere { addresses, parts } => {
                let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
                let bytes = parts.iter().map(|part| u64::from(part.length) + PART_HEAD_BYTES).sum();
                if !most.allows(count, bytes) {
                    return Err(InputsError::TooMuch { parts: count, bytes });
                }
                let there = There { addresses, parts, is_bands: most.is_bands };
                return elsewhere::fetch(&self.folder, there).await;
            }
        };
        if !most.allows(parts, bytes) {
            return Err(InputsError::TooMuch { parts, bytes });
        }
        let file = self.receive(&mut receiver, bytes).await?;
        let opened = tokio::task::spawn_blocking(move || Inputs::open(file, parts, bytes)).await;
        // The task is never aborted.
        opened.map_err(|_| InputsError::Stopping)?.map_err(InputsError::Damaged)
    }

    /// Writes this many bytes to a file as they arrive. Dropping this ends the writing.
    async fn receive(
        &self,
        receiver: &mut FrameReceiver,
        announced: u64,
    ) -> Result<File, InputsError> {
        let (steps, arriving) = mpsc::channel(STEPS);
        let folder = self.folder.clone();
        let writing = tokio::task::spawn_blocking(move || write(&folder, arriving));
        let received = self.hand_on(receiver, announced, &steps).await;
        drop(steps);
        let written = writing.await.map_err(|_| InputsError::Stopping)?;
        let file =
            written.map_err(|source| InputsError::Disk { path: self.folder.clone(), source })?;
        received.map(|()| file)
    }

    /// Hands arriving bytes on to the writing thread. Ends early if that has ended.
    async fn hand_on(
        &self,
        receiver: &mut FrameReceiver,
        announced: u64,
        steps: &mpsc::Sender<Vec<Bytes>>,
    ) -> Result<(), InputsError> {
        let mut found = 0;
        loop {
            let mut pieces = vec![Bytes::new(); PIECES];
            let count = within(self.answer, receiver.receive_pieces(&mut pieces)).await?;
            pieces.truncate(count.unwrap_or(0));
            found += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
            if found > announced || count.is_none() && found < announced {
                return Err(InputsError::Length { announced, found });
            }
            if count.is_none() || steps.send(pieces).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Writes what arrives to a file without a name. If it ends early, no more is taken.
fn write(folder: &std::path::Path, mut arriving: mpsc::Receiver<Vec<Bytes>>) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(folder)?;
    while let Some(pieces) = arriving.blocking_recv() {
        for piece in pieces {
            file.write_all(&piece)?;
        }
    }
    Ok(file)
}

pub(crate) mod elsewhere;

#[cfg(test)]
#[path = "inputs_tests.rs"]
mod tests;
