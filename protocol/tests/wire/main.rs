//! Tests of the wire format from outside: pinned bytes, wrong lengths, and specs with wrong values.

#![expect(clippy::unwrap_used, reason = "in a test, a failure of the setup is a failure")]

mod bounds;
mod compute;
mod described;
mod golden;
mod log_samples;
mod options;
mod response_samples;
mod results;
mod samples;
mod spec;
mod spec_samples;
mod stored_samples;
