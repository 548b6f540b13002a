//! The frames of a job. One to which nothing has happened takes no memory, so that a job of a
//! quarter of a million frames costs as much as one of a single frame.

use crate::splitter::Split;
use crate::state::done::{Done, DoneFrame, DoneFrames};
use crate::state::frame::{Begun, FailedFrame, Failure, Frame, OpenFrame};
use crate::state::job::counts::committed_of;
use crate::state::shelf::Shelf;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All frames of a job, by their position.
#[derive(Debug, PartialEq)]
pub(crate) struct Frames {
    count: u32,
    /// Frames that have begun and are not done, and those that have failed by themselves.
    begun: BTreeMap<u32, Begun>,
    done: DoneFrames,
    /// Why the other frames have failed, if their job has ended.
    ended: Option<String>,
}

impl Frames {
    pub(super) fn new(count: u32, shelf: Arc<dyn Shelf>) -> Self {
        Self { count, begun: BTreeMap::new(), done: DoneFrames::new(shelf), ended: None }
    }

    /// Returns the number of frames.
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// Returns the frame at a position; None if there is none.
    pub(crate) fn get(&self, position: u32) -> Option<Frame<'_>> {
        if position >= self.count {
            return None;
        }
        if let Some(begun) = self.begun.get(&position) {
            return Some(begun.view());
        }
        Some(match self.done.contains(position) {
            true => Frame::Done(Done { frames: &self.done, position }),
            false => self.untouched(),
        })
    }

    /// Returns how frames to which nothing has happened are seen.
    fn untouched(&self) -> Frame<'_> {
        match &self.ended {
            Some(reason) => {
                Frame::Failed(Failure { reason, units_committed: 0, samples_committed: 0 })
            }
            None => Frame::Untouched,
        }
    }

    /// Returns the frames that have begun and are not done, and those that have failed by
    /// themselves, in their order.
    pub(crate) fn begun(&self) -> impl Iterator<Item = (u32, &Begun)> {
        self.begun.iter().map(|(position, begun)| (*position, begun))
    }

    /// Returns the frames that have begun and are not finished, in their order.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = (u32, &OpenFrame)> {
        self.begun().filter_map(|(position, begun)| Some((position, begun.view().unfinished()?)))
    }

    /// Returns the finished frames.
    pub(crate) fn done(&self) -> &DoneFrames {
        &self.done
    }

    /// Returns the number of frames that have failed.
    pub(crate) fn failed(&self) -> u32 {
        let is_failed = |begun: &&Begun| matches!(begun, Begun::Failed(_));
        let rest = self.ended.as_ref().map_or(0, |_| self.rest());
        self.begun.values().filter(is_failed).count() as u32 + rest
    }

    /// Returns the number of frames to which nothing has happened before the end of the job.
    pub(crate) fn rest(&self) -> u32 {
        self.count - self.begun.len() as u32 - self.done.len()
    }

    /// Returns the first frame that has failed.
    pub(crate) fn first_failed(&self) -> Option<(u32, Failure<'_>)> {
        let failure = |frame| match frame {
            Frame::Failed(failure) => Some(failure),
            _ => None,
        };
        let by_itself =
            self.begun().find_map(|(position, begun)| Some((position, failure(begun.view())?)));
        let rest = self.first_of_rest().zip(failure(self.untouched()));
        by_itself.into_iter().chain(rest).min_by_key(|(position, _)| *position)
    }

    /// Returns the first frame to which nothing has happened.
    pub(crate) fn first_of_rest(&self) -> Option<u32> {
        (self.rest() > 0).then(|| self.first_not(|position| self.begun.contains_key(&position)))?
    }

    /// Returns the first frame that is not done.
    pub(crate) fn first_not_done(&self) -> Option<u32> {
        self.first_not(|_| false)
    }

    /// Returns the first frame that is not done and of which `other` does not hold.
    fn first_not(&self, other: impl Fn(u32) -> bool) -> Option<u32> {
        let mut done = self.done.positions().peekable();
        (0..self.count).find(|position| done.next_if_eq(position).is_none() && !other(*position))
    }

    // Changes.

    /// Returns a frame that has begun and is not done.
    pub(super) fn begun_mut(&mut self, position: u32) -> Option<&mut Begun> {
        self.begun.get_mut(&position)
    }

    /// Returns the frames that have begun and are not finished.
    pub(super) fn unfinished_mut(&mut self) -> impl Iterator<Item = &mut OpenFrame> {
        self.begun.values_mut().filter_map(Begun::unfinished_mut)
    }

    /// Returns the open state of a frame, created on first use; None if no unit may be committed
    /// any more.
    pub(super) fn open_mut(&mut self, position: u32, split: &Split) -> Option<&mut OpenFrame> {
        if self.done.contains(position) || position >= self.count || self.ended.is_some() {
            return None;
        }
        match self.begun.entry(position).or_insert_with(|| Begun::open(split)) {
            Begun::Open(open) => Some(open),
            _ => None,
        }
    }

    /// Makes a frame complete or open, according to its units, checks and rounds.
    pub(super) fn settle(&mut self, position: u32, split: &Split) {
        if let Some(begun) = self.begun.get_mut(&position) {
            begun.settle(split);
        }
    }

    /// Puts a frame of a snapshot in its place.
    pub(super) fn restore(&mut self, position: u32, begun: Begun) -> Result<(), String> {
        let free = position < self.count && !self.done.contains(position);
        match free && self.begun.insert(position, begun).is_none() {
            true => Ok(()),
            false => Err(format!("a frame at {position} is none, or is there twice")),
        }
    }

    /// Makes a frame done.
    pub(super) fn finish(&mut self, position: u32, done: &DoneFrame) -> Result<(), String> {
        if position >= self.count {
            return Err(format!("there is no frame at {position}"));
        }
        self.begun.remove(&position);
        self.done.insert(position, done)
    }

    /// Makes a frame fail.
    pub(super) fn fail(&mut self, position: u32, grid: &Split, reason: &str) {
        let Some(frame) = self.get(position).filter(|frame| !frame.is_final()) else { return };
        let failed = Begun::Failed(Box::new(failed(frame, grid, reason)));
        self.begun.insert(position, failed);
    }

    /// Makes all unfinished frames fail.
    pub(super) fn end(&mut self, grid: &Split, reason: &str) {
        for begun in self.begun.values_mut().filter(|begun| !begun.view().is_final()) {
            *begun = Begun::Failed(Box::new(failed(begun.view(), grid, reason)));
        }
        // Frames of which nothing was committed differ in nothing but their place.
        let same = |begun: &Begun| match begun {
            Begun::Failed(failed) => {
                failed.reason == reason
                    && (failed.units_committed, failed.samples_committed) == (0, 0)
            }
            _ => false,
        };
        self.begun.retain(|_, begun| !same(begun));
        self.ended = Some(reason.to_owned());
    }

    /// Opens the frames that have failed again, as if nothing had happened to them.
    pub(super) fn retry(&mut self) {
        self.begun.retain(|_, begun| !matches!(begun, Begun::Failed(_)));
        self.ended = None;
    }
}

fn failed(frame: Frame<'_>, grid: &Split, reason: &str) -> FailedFrame {
    let (units_committed, samples_committed) = committed_of(frame, grid);
    FailedFrame { reason: reason.to_owned(), units_committed, samples_committed }
}
