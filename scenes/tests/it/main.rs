//! Tests of the crate from outside: what a caller sees of files of every kind.

mod fixtures;
