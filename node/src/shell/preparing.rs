//! Prepares frames in tasks of its own, while devices render others. Each outcome is an event,
//! unless the preparation was abandoned before.

use super::event::{AnyFrame, Event, Prepared};
use super::logs::source_of;
use super::preparation::Preparation;
use crate::agent::FrameKey;
use crate::compute::Preparations;
use crate::frame_memory::{Claim, FrameMemory, NotPrepared};
use crate::inputs::InputsFetcher;
use crate::scene::Preparer;
use crate::scene::fetch::Fetcher;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tessera_protocol::logs::{LogSource, Severity};
use tessera_protocol::node::{Failure, Task};
use tessera_protocol::{BlobHash, JobKind};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tracing::Instrument;

/// What prepares frames. All preparations share it.
struct Means {
    preparer: Preparer,
    fetcher: Fetcher,
    views: PathBuf,
    inputs: InputsFetcher,
    preparations: Preparations,
    memory: Arc<FrameMemory>,
}

/// The preparations of a node.
pub(super) struct Preparing {
    means: Arc<Means>,
    events: mpsc::UnboundedSender<Event>,
    /// Number of the newest preparation.
    last: u64,
    running: BTreeMap<FrameKey, (u64, AbortHandle)>,
}

impl Preparing {
    pub(super) fn new(
        (preparer, preparations): (Preparer, Preparations),
        (fetcher, views, inputs): (Fetcher, PathBuf, InputsFetcher),
        memory: Arc<FrameMemory>,
        events: mpsc::UnboundedSender<Event>,
    ) -> Self {
        let means = Arc::new(Means { preparer, fetcher, views, inputs, preparations, memory });
        Self { means, events, last: 0, running: BTreeMap::new() }
    }

    /// Returns the hashes of the loaded scenes, in order.
    pub(super) fn scenes(&self) -> Vec<BlobHash> {
        self.means.preparer.scenes()
    }

    /// Begins to prepare a frame. [`Event::Frame`] follows.
    pub(super) fn begin(
        &mut self,
        frame: FrameKey,
        (kind, task): (Arc<JobKind>, Task),
        beside: bool,
    ) {
        self.last += 1;
        let (number, means, events) = (self.last, self.means.clone(), self.events.clone());
        let preparing = async move {
            let begun = Instant::now();
            let claim = means.memory.claim(beside);
            let prepared = means.prepare(frame, (&kind, task), &claim).await;
            let ended = Instant::now();
            let result = prepared.map(|(frame, asked)| {
                let preparation = Preparation { begun, asked: asked.unwrap_or(begun), ended };
                Prepared { frame, claim, preparation }
            });
            let took = ended.saturating_duration_since(begun);
            let _ = events.send(Event::Frame { frame, number, result, took });
        };
        // What is said meanwhile is about this frame.
        let about = tracing::info_span!("frame", job = %frame.job(), frame = %frame.frame());
        let task = tokio::spawn(preparing.instrument(about));
        if let Some((_, former)) = self.running.insert(frame, (number, task.abort_handle())) {
            former.abort();
        }
    }

    /// Stops the preparation of a frame. What it has fetched stays in the cache.
    pub(super) fn abandon(&mut self, frame: FrameKey) {
        if let Some((_, task)) = self.running.remove(&frame) {
            let (job, number, is_piece) = (frame.job(), frame.frame(), frame.is_piece());
            tracing::info!(
                %job, frame = %number, is_piece,
                "its units were taken back, so it is not prepared"
            );
            task.abort();
        }
    }

    /// Returns whether the outcome of a preparation is still wanted. It is then at its end.
    pub(super) fn ends(&mut self, frame: FrameKey, number: u64) -> bool {
        let is_it = self.running.get(&frame).is_some_and(|(running, _)| *running == number);
        if is_it {
            self.running.remove(&frame);
        }
        is_it
    }
}

impl Means {
    /// Returns a frame, and when it was asked for if there was something to do before.
    async fn prepare(
        &self,
        frame: FrameKey,
        (kind, task): (&Arc<JobKind>, Task),
        claim: &Claim,
    ) -> Result<(AnyFrame, Option<Instant>), NotPrepared> {
        let number = frame.frame();
        match (&**kind, task, frame) {
            (_, Task::Finish(finish), FrameKey::Piece(lease)) => self
                .inputs
                .prepare(lease, (kind, finish), claim)
                .await
                .map(|piece| (AnyFrame::Piece(piece), None)),
            (JobKind::Render(spec), ..) => {
                let (prepared, asked) = self.preparer.prepare(spec, number, claim).await?;
                Ok((AnyFrame::Scene(prepared), Some(asked)))
            }
            (JobKind::Compute(spec), task, _) => {
                let files = (&self.fetcher, self.views.as_path());
                let feed = match task {
                    Task::Chunk { feed, .. } => feed,
                    Task::Tile { .. } | Task::Finish(_) => None,
                };
                let prepared = self.preparations.prepare(files, spec, (number, feed), claim).await;
                prepared.map(|prepared| (AnyFrame::Compute(prepared), None))
            }
        }
    }
}

/// Logs that a frame was not prepared. A fault of the scene is no fault of the node: the job fails
/// with it, and the user reads it there.
pub(super) fn log_unprepared(frame: FrameKey, reason: &NotPrepared) {
    let (job, is_piece, frame) = (frame.job(), frame.is_piece(), frame.frame());
    // To the job, it is an error.
    let severity = Severity::Error.name();
    match reason {
        NotPrepared::Failed(failure) if is_piece => {
            let source = LogSource::Finishing.name();
            let reason = failure.reason();
            tracing::warn!(%job, %frame, source, severity, reason, "frame not finished here");
        }
        NotPrepared::Postponed(shortage) if is_piece => tracing::info!(
            %job, %frame, %shortage,
            "a part of the frame is finished later, since it does not fit into memory beside the \
             present frames"
        ),
        NotPrepared::Failed(Failure::Scene(reason)) => {
            let source = LogSource::Importer.name();
            tracing::info!(%job, %frame, source, severity, reason, "frame not prepared");
        }
        NotPrepared::Failed(failure) => {
            let (source, reason) = (source_of(failure).name(), failure.reason());
            tracing::warn!(%job, %frame, source, severity, reason, "frame not prepared");
        }
        NotPrepared::Postponed(shortage) => tracing::info!(
            %job, %frame, %shortage,
            "the next frame does not fit into memory beside the present one, so devices wait for \
             it; more memory for this node would help"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::BlobCache;
    use crate::device::worker::Sandbox;
    use crate::import::{ImportLimits, Importer};
    use quinn::Connection;
    use std::time::Duration;
    use tokio::sync::watch;

    /// Preparations of a node that waits for a session, and its channels.
    fn waiting(
        folder: &std::path::Path,
        memory: &Arc<FrameMemory>,
    ) -> (Preparing, mpsc::UnboundedReceiver<Event>, watch::Sender<Option<Connection>>) {
        let cache = Arc::new(BlobCache::open(folder, 1 << 20).unwrap());
        let (connection, sessions) = watch::channel(None);
        let answer = Duration::from_secs(9);
        let inputs = InputsFetcher::new(folder.to_owned(), sessions.clone(), answer);
        let fetcher = Fetcher::new(cache, sessions, answer);
        let importer =
            Importer::new("/bin/false".into(), ImportLimits::default(), None, Sandbox::Off);
        let preparer = Preparer::new(fetcher.clone(), importer, folder.to_owned(), (0, 0));
        let (sender, events) = mpsc::unbounded_channel();
        let means = (preparer, Preparations::new(0, 0, 0));
        let files = (fetcher, folder.to_owned(), inputs);
        (Preparing::new(means, files, memory.clone(), sender), events, connection)
    }

    #[tokio::test]
    async fn an_abandoned_preparation_ends_and_takes_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let memory = FrameMemory::new(8 << 20, 0);
        let (mut preparing, mut events, _connection) = waiting(folder.path(), &memory);
        let unit = crate::job::tests::assignment(1, 0);
        let frame = FrameKey::of(&unit);
        let scene = b"a scene that nobody sends";
        let kind = Arc::new(JobKind::Render(crate::job::tests::spec(scene)));
        preparing.begin(frame, (kind.clone(), unit.task), false);
        // What is left beside the files of the scene, and a byte more.
        let (other, left) = (memory.claim(true), (7 << 20) - scene.len() as u64 + 1);
        while other.expect(left).is_ok() {
            tokio::task::yield_now().await;
        }
        preparing.abandon(frame);
        while other.expect(left).is_err() {
            tokio::task::yield_now().await;
        }
        assert!(events.try_recv().is_err(), "nothing failed");
        // Its outcome may have been on the way.
        preparing.begin(frame, (kind, unit.task), false);
        assert!(!preparing.ends(frame, 1));
        assert!(preparing.ends(frame, 2) && !preparing.ends(frame, 2));
    }
}
