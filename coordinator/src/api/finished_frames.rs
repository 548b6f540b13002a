//! Finished frames that a watcher of a job does not know yet, and the pause between two updates.

use std::collections::BTreeSet;
use std::time::Duration;
use tessera_protocol::{FrameNumber, JobId};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, timeout_at};

/// Finished frames of one job, for one watcher.
pub(super) struct FinishedFrames {
    job: JobId,
    finished: Receiver<(JobId, FrameNumber)>,
    told: BTreeSet<FrameNumber>,
    heard: BTreeSet<FrameNumber>,
    /// Whether announcements were lost, because there were more than are kept for a watcher.
    lagged: bool,
}

impl FinishedFrames {
    pub(super) fn new(job: JobId, finished: Receiver<(JobId, FrameNumber)>) -> Self {
        Self { job, finished, told: BTreeSet::new(), heard: BTreeSet::new(), lagged: false }
    }

    /// Records that the watcher knows these frames.
    pub(super) fn tell(&mut self, frames: &[FrameNumber]) {
        self.told.extend(frames);
    }

    /// Returns the frames that the watcher does not know.
    pub(super) fn new_ones(&self, frames: Vec<FrameNumber>) -> Vec<FrameNumber> {
        frames.into_iter().filter(|frame| !self.told.contains(frame)).collect()
    }

    /// Waits for the given time. Ends early when `missing` frames (at least one) have finished, so
    /// that the watcher gets the last frame at once.
    pub(super) async fn pause(&mut self, time: Duration, missing: usize) {
        let over = Instant::now() + time;
        while self.heard.len() < missing.max(1) {
            match timeout_at(over, self.finished.recv()).await {
                Ok(Ok(finished)) => self.hear(finished),
                Ok(Err(RecvError::Lagged(_))) => self.lagged = true,
                Ok(Err(RecvError::Closed)) | Err(_) => return,
            }
        }
    }

    /// Returns the frames that have finished since the last call; None if announcements were lost.
    pub(super) fn take(&mut self) -> Option<Vec<FrameNumber>> {
        loop {
            match self.finished.try_recv() {
                Ok(finished) => self.hear(finished),
                Err(TryRecvError::Lagged(_)) => self.lagged = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        let heard = std::mem::take(&mut self.heard);
        (!std::mem::take(&mut self.lagged)).then(|| heard.into_iter().collect())
    }

    fn hear(&mut self, (job, frame): (JobId, FrameNumber)) {
        if job == self.job && !self.told.contains(&frame) {
            self.heard.insert(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::broadcast::{Sender, channel};

    const JOB: JobId = JobId(uuid::Uuid::from_u128(1));
    const OTHER: JobId = JobId(uuid::Uuid::from_u128(2));
    /// Longer than any test: only announced frames can end such a pause.
    const LONG: Duration = Duration::from_secs(24 * 3600);

    fn announced(kept: usize) -> (Sender<(JobId, FrameNumber)>, FinishedFrames) {
        let (sender, receiver) = channel(kept);
        (sender, FinishedFrames::new(JOB, receiver))
    }

    fn frames(numbers: &[u32]) -> Vec<FrameNumber> {
        numbers.iter().copied().map(FrameNumber).collect()
    }

    fn send(sender: &Sender<(JobId, FrameNumber)>, job: JobId, numbers: &[u32]) {
        for number in numbers {
            sender.send((job, FrameNumber(*number))).unwrap();
        }
    }

    #[tokio::test]
    async fn a_pause_ends_with_the_last_frame() {
        let (sender, mut announced) = announced(16);
        send(&sender, JOB, &[4, 7]);
        announced.pause(LONG, 2).await;
        assert_eq!(announced.take(), Some(frames(&[4, 7])));
        send(&sender, JOB, &[5]);
        announced.pause(LONG, 0).await;
        assert_eq!(announced.take(), Some(frames(&[5])));
        assert_eq!(announced.take(), Some(Vec::new()));
    }

    #[tokio::test]
    async fn a_pause_lasts_while_a_frame_is_missing() {
        let (sender, mut announced) = announced(16);
        announced.tell(&frames(&[1]));
        // These are from another job, are known already, or come twice.
        send(&sender, OTHER, &[2, 3]);
        send(&sender, JOB, &[1, 4, 4]);
        let (short, began) = (Duration::from_millis(20), Instant::now());
        announced.pause(short, 2).await;
        assert!(began.elapsed() >= short);
        assert_eq!(announced.take(), Some(frames(&[4])));
    }

    #[tokio::test]
    async fn a_lagging_watcher_is_told_to_look_again() {
        let (sender, mut announced) = announced(2);
        send(&sender, JOB, &[1, 2, 3, 4, 5]);
        announced.pause(LONG, 2).await;
        assert_eq!(announced.take(), None);
        send(&sender, JOB, &[6]);
        assert_eq!(announced.take(), Some(frames(&[6])));
        send(&sender, JOB, &[7, 8, 9, 10, 11]);
        assert_eq!(announced.take(), None);
    }

    #[tokio::test]
    async fn a_pause_ends_when_every_sender_is_gone() {
        let (sender, mut announced) = announced(2);
        drop(sender);
        announced.pause(LONG, 1).await;
        assert_eq!(announced.take(), Some(Vec::new()));
    }
}
