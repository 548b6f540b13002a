//! Identities at a coordinator in this process, from outside: what certificates, roles, tokens and
//! the deny-list let peers do.

#![expect(clippy::unwrap_used, reason = "in a test, a failure of the setup is a failure")]

mod blobs;
mod certificates;
mod farm;
mod hold;
mod holders;
mod peers;
mod refusals;
mod rivals;
mod roles;
mod roster;
mod rotation;
mod shares;
mod together;
