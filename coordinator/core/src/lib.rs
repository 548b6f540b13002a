//! The sans-I/O core: splitter, scheduler, leases, retries, roster, journal.
//!
//! Inputs and the time go in; records and actions come out. No clock, socket, file, random source,
//! thread or hash-map order inside, so that the same inputs always give the same outputs, under the
//! server and under the simulator alike.
//!
//! ```text
//! core.handle(input, now);                 // any number of inputs
//! let step = core.take_step();             // then what came of them: see `Step` for the order in which to perform it
//! let wake_at = core.next_wakeup();        // hand in a Tick by then
//! ```

pub mod action;
pub mod chunks;
pub mod input;
pub mod journal;
pub mod moment;
pub mod settings;
mod share;
pub mod splitter;

mod audit;
mod bitmap;
mod check;
mod class;
mod core;
mod course;
mod devices;
mod fair;
mod farm;
mod finish;
mod forget;
mod frame;
mod job;
mod jobs;
mod journal_v1;
mod journal_v2;
mod journal_v3;
mod journal_v4;
mod journal_v5;
mod journal_v6;
mod lease;
mod listing;
mod makers;
mod measure;
mod memory;
mod opinions;
mod parts;
mod pause;
mod rates;
mod resolve;
mod results;
mod retry;
mod retry_job;
mod roster;
mod scheduler;
mod secret;
mod sessions;
mod shortage;
mod snapshot;
mod stall;
mod tail;
mod timers;
mod trust;
mod verify;
mod waiting;
mod work;

pub use action::{Action, Step, Timing};
pub use chunks::Chunks;
pub use core::{Core, ReplayError};
pub use course::{Course, TileSet};
pub use input::{
    Arrived, Caller, FilmShape, Input, RequestId, ResolveFailure, ResultShape, SessionId,
};
pub use journal::{JournalError, Record};
pub use listing::{Census, KeptPart};
pub use moment::Moment;
pub use secret::Secret;
pub use settings::Settings;
pub use snapshot::SnapshotPart;
pub use splitter::{Grid, Split};
