//! Events out: webhooks and mails about the ends of jobs, about jobs that cannot go on and about
//! quarantines. Runs in the coordinator that leads, on a thread of its own; reads what the
//! coordinator publishes, and decides nothing about the farm.
//!
//! ```text
//! news of jobs, quarantines ─► Tracker ─► events ─► filter ─► one bounded queue for each target
//!                                                                  └─► courier ─► webhook, mail
//! ```
//!
//! A target that is slow or dead holds up no other target, and never the farm.

mod address;
mod backoff;
mod config;
#[cfg(test)]
mod config_tests;
mod courier;
mod event;
mod file;
mod kept;
mod mail;
mod queue;
mod running;
mod secret;
mod sign;
mod target;
mod tracker;
#[cfg(test)]
mod tracker_tests;
mod wanted;
mod webhook;

pub use config::{ConfigError, EventsConfig};
pub use running::{Events, Home, StartError};
