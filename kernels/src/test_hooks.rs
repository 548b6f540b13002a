//! Doors for this crate's tests.
