//! The transport over loopback, both ends in one process: good peers, bad peers, and peers that go
//! away.

#![expect(clippy::unwrap_used, reason = "in a test, a failure of the setup is a failure")]

mod blobs;
mod connections;
mod direct;
mod enrolment;
mod farm;
mod ranges;
mod streams;
