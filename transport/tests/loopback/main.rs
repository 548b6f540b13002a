//! The transport over loopback, both ends in one process: good peers, bad peers, and peers that go away.

mod blobs;
mod connections;
mod enrolment;
mod farm;
mod streams;
