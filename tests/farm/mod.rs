//! Farm: the real binary as real processes on loopback: whole jobs, the same bits from any farm,
//! kills, syncs, hostile peers.
#![expect(clippy::print_stdout, reason = "tests say what they skip and saw")]

pub(crate) mod bad_node;
mod bits;
mod client_history;
mod clocks;
mod crops;
mod disk;
mod doctor;
mod fault_proxy;
mod fetching;
mod film;
mod filter;
mod finishing;
mod generations;
mod hostile;
pub(crate) mod importer;
mod job_set;
mod kills;
mod leaving;
mod liar;
mod limits;
mod live;
mod logs;
mod members;
mod messages;
mod namespaces;
mod network;
mod opening;
mod pause;
mod places;
mod pools;
mod postgres;
mod power;
mod preload;
mod privacy;
mod roster;
mod rounds;
mod s3;
mod scenes;
mod selection;
mod service;
mod shares;
mod spot;
mod store;
mod sync_order;
mod takeover;
