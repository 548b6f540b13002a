//! How a coordinator stands that another one leads. Decides nothing.

use crate::store::Leading;
use std::time::Instant;

/// How a coordinator stands that another one leads.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Who leads.
    pub leader: Leading,
    /// When the store was read last: what is shown is as it was then.
    pub seen: Instant,
    /// Whether files of finished frames can be read here.
    pub reads_files: bool,
}
