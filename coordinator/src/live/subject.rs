//! What is kept of one watched frame or job: live tiles in the order of their arrival.

use super::meters::Outcome;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tessera_protocol::live::LiveTile;
use tessera_protocol::{Epoch, FrameNumber, UnitIndex};
use tokio::sync::watch;

/// Bytes that a kept live tile takes beside its values, in this table and the next one.
const ABOUT_BYTES: usize = 256;

/// A unit's samples: parts of a unit begin with different ones.
type Part = (FrameNumber, UnitIndex, u32);

/// A watched frame or job.
#[derive(Debug)]
pub(super) struct Subject {
    /// Number of those who watch it.
    pub(super) watchers: usize,
    /// When the last one left; None while somebody watches.
    pub(super) left: Option<Instant>,
    /// Whether no more will come.
    pub(super) is_over: bool,
    /// Bytes of what is kept.
    pub(super) bytes: usize,
    kept: BTreeMap<u64, Arc<LiveTile>>,
    parts: BTreeMap<Part, (Epoch, u64)>,
    changed: watch::Sender<()>,
}

/// Returns the bytes that a kept live tile counts for.
pub(super) fn bytes_of(tile: &LiveTile) -> usize {
    tile.values.0.len() + ABOUT_BYTES
}

impl Subject {
    /// Nothing is kept, and nobody watches.
    pub(super) fn new() -> Self {
        Self {
            watchers: 0,
            left: None,
            is_over: false,
            bytes: 0,
            kept: BTreeMap::new(),
            parts: BTreeMap::new(),
            changed: watch::Sender::new(()),
        }
    }

    /// Returns what tells that there is something new.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Tells all who watch that there is something new.
    pub(super) fn tell(&self) {
        self.changed.send_replace(());
    }

    /// Keeps a live tile under a number above all others. There is one for each lease; a later
    /// lease of the same samples takes the place of an earlier one.
    pub(super) fn keep(&mut self, number: u64, tile: &Arc<LiveTile>) -> Outcome {
        let unit = tile.lease.unit;
        let (frame, index) = (unit.frame, unit.unit);
        let mut of_unit = self.parts.range((frame, index, 0)..=(frame, index, u32::MAX));
        if of_unit.any(|(_, (epoch, _))| *epoch == tile.lease.epoch) {
            return Outcome::Repeated;
        }
        let part = (frame, index, tile.samples.first);
        if let Some((_, former)) = self.parts.insert(part, (tile.lease.epoch, number))
            && let Some(former) = self.kept.remove(&former)
        {
            self.bytes -= bytes_of(&former);
        }
        self.kept.insert(number, tile.clone());
        self.bytes += bytes_of(tile);
        Outcome::Passed
    }

    /// Drops the oldest live tile. Returns the bytes that it counted for.
    pub(super) fn drop_oldest(&mut self) -> usize {
        let Some((number, tile)) = self.kept.pop_first() else { return 0 };
        let unit = tile.lease.unit;
        let part = (unit.frame, unit.unit, tile.samples.first);
        if self.parts.get(&part).is_some_and(|(_, kept)| *kept == number) {
            self.parts.remove(&part);
        }
        let bytes = bytes_of(&tile);
        self.bytes -= bytes;
        bytes
    }

    /// Returns the oldest live tile that is newer than a number.
    pub(super) fn after(&self, number: u64) -> Option<(u64, Arc<LiveTile>)> {
        let newer = (std::ops::Bound::Excluded(number), std::ops::Bound::Unbounded);
        self.kept.range(newer).next().map(|(number, tile)| (*number, tile.clone()))
    }

    /// Drops everything that is kept.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.parts.clear();
        self.bytes = 0;
    }
}
