//! HTTP over real sockets, in front of a real coordinator without nodes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod after;
mod described;
mod events;
mod explain;
mod farm;
mod files;
mod hostile;
mod inspect;
mod live;
mod logs;
mod metrics;
mod pages;
mod roles;
mod sessions;
mod spans;
mod templates;
mod unslowed;
mod vouched;
