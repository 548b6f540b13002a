//! Following a store that another coordinator leads: what is new in it, and who leads. Writes
//! nothing.

use super::{Followed, Leading, Loaded, Sequence, StoreError};

/// Reads a store that another coordinator leads. Every call blocks, and may be repeated after an
/// error.
pub trait Follow: Send {
    /// Reads everything but the audit log, at one place of the journal.
    fn load(&mut self) -> Result<(Loaded, Followed), StoreError>;
    /// Reads who leads and what is new after a place. Cheap where nothing is new.
    fn look(&mut self, at: &Followed) -> Result<Look, StoreError>;
}

/// What a look has found.
#[derive(Debug)]
pub struct Look {
    /// Who leads.
    pub leader: Leading,
    /// What became of the journal.
    pub journal: Followable,
    /// Tokens, members and files, if they are not what they were.
    pub values: Option<Loaded>,
}

/// What became of a journal after a place.
#[derive(Debug)]
pub enum Followable {
    /// It goes on with these records, in order, to this place.
    After(Vec<(Sequence, Vec<u8>)>, Followed),
    /// It does not go on from there, or that cannot be shown: load it again.
    Elsewhere,
}
