//! The coordinator's store on PostgreSQL. One coordinator leads at a time, by (epoch, head): each
//! commit is one statement that compares and moves both. Decides nothing of the farm.
//!
//! Every statement is sent alone, without a transaction block, a session lock, a notification or a
//! named prepared statement. So it works through a pooler, and a coordinator that stops in the
//! middle holds nothing.

mod address;
mod clock;
mod connection;
mod follower;
mod group;
mod leader;
mod link_error;
mod passwords;
mod place;
mod reader;
pub mod rules;
mod schema;
mod setup;
mod store;
mod tls;

pub use address::{AddressError, StoreAddress};
pub use passwords::{PasswordError, Passwords};
pub use place::PostgresPlace;
pub use setup::{Copies, Follower, Lead, Setup};
