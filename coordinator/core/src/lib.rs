//! The sans-I/O core: splitter, scheduler, leases, retries, roster, journal.
//!
//! Inputs and the time go in; records and actions come out. No clock, socket, file, random source,
//! thread or hash-map order inside, so that the same inputs always give the same outputs, under the
//! server and under the simulator alike.
//!
//! ```text
//! core.handle(input, now);                 // any number of inputs
//! let step = core.take_step();             // what came of them; see `Step` for the order
//! let wake_at = core.next_wakeup();        // hand in a Tick by then
//! ```

pub mod action;
pub mod input;
pub mod journal;
pub mod settings;
pub mod splitter;
pub mod time;

mod audit;
mod books;
mod checks;
mod core;
mod ends;
mod faults;
mod frames;
mod lease;
mod nodes;
mod owner;
mod report;
mod requests;
mod results;
mod schedule;
mod selection;
mod state;
mod sweep;
mod text;
mod timers;
mod unit_state;
mod waits;
mod weights;

pub use action::{Action, Step, Timing};
pub use core::{Core, ReplayError, Replica};
pub use input::{
    Arrived, Caller, FilmShape, Input, RequestId, ResolveFailure, ResultShape, SessionId,
};
pub use journal::{JournalError, Record};
pub use lease::secret::Secret;
pub use owner::Owner;
pub use report::listing::{Census, KeptPart};
pub use report::pages::JobsPage;
pub use report::quarantine::Quarantine;
pub use report::tally::JobsTally;
pub use selection::Selection;
pub use settings::{PerUser, Settings};
pub use splitter::{Grid, Split};
pub use state::rounds::{FrameRounds, TileSet};
pub use state::shelf::{MemoryShelf, Shelf, Slot};
pub use state::snapshot::SnapshotPart;
pub use state::usage::JobUsage;
pub use sweep::Sweep;
pub use time::Moment;
pub use unit_state::{UnitMove, UnitState};
pub use weights::Weights;
