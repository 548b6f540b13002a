//! A copy of another core's state that follows its journal. Answers queries; decides nothing, and
//! makes no record.

use super::{Core, ReplayError, restored};
use crate::books::Books;
use crate::journal::Record;
use crate::settings::Settings;
use crate::state::shelf::Shelf;
use crate::state::snapshot::SnapshotPart;
use crate::time::Moment;
use std::sync::Arc;

/// The state of a farm that another process leads, as far as its records were applied.
#[derive(Debug)]
pub struct Replica {
    core: Core,
}

impl Replica {
    /// Restores the state from a snapshot (may be empty) and the records after it, and keeps on an
    /// empty shelf what the files of finished frames are.
    pub fn replay_onto(
        shelf: Arc<dyn Shelf>,
        settings: Settings,
        snapshot: impl IntoIterator<Item = SnapshotPart>,
        records: impl IntoIterator<Item = Record>,
        now: Moment,
    ) -> Result<Self, ReplayError> {
        let farm = restored(shelf, snapshot, records)?;
        Ok(Self { core: Core { books: Books::following(settings, farm, now) } })
    }

    /// Applies the next record of the journal. An error says how it contradicts the state, which
    /// must then be discarded.
    pub fn apply(&mut self, record: &Record) -> Result<(), String> {
        self.core.books.follow(record)
    }

    /// Returns the state, for queries. What needs the present nodes and their leases is not known:
    /// nothing is leased, and no job says why it waits or how long it takes.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Leads from now on. All records of the journal must have been applied.
    pub fn lead(self, settings: Settings, now: Moment) -> Core {
        let farm = self.core.books.into_farm();
        let mut core = Core { books: Books::new(settings, farm, now) };
        core.take_up();
        core
    }
}
