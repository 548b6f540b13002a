//! What monitoring reads of the driver: the nodes, and what was counted. The answer does not wait
//! for the disk: a farm whose disk is full is watched too, and nothing is promised by a count.

use super::counted::Counted;
use crate::store::Sequence;
use tessera_protocol::status::NodeSummary;

/// The farm now, without its jobs.
#[derive(Clone, Debug)]
pub struct Present {
    /// Nodes of the present and the past.
    pub nodes: Vec<NodeSummary>,
    /// Leases that nodes hold.
    pub units_leased: u64,
    /// Nodes that are in doubt.
    pub nodes_doubted: u64,
    /// Nodes that gave wrong results and are not trusted again.
    pub nodes_guilty: u64,
    /// What happened since the process began.
    pub counted: Counted,
    /// Sequence of the journal's newest record.
    pub records: Sequence,
    /// Steps that wait for the disk.
    pub steps_waiting: u64,
}
