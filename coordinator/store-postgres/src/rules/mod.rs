//! The rules of leading: what a leader does next, what became of a commit without an answer, when a
//! term is over, and whether a database has lost its end. No connection and no clock: the store
//! asks the database for them, and the simulator a virtual one.

mod lead;
mod recent;
mod term;

pub use lead::{Answer, Ask, Lead, Row, Stop};
pub use recent::{Kept, Place, Recent, Sent};
pub use term::{Standing, is_behind, next_epoch, renew_every};
