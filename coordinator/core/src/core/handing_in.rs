//! Whether a result would be taken, for whoever must know it before its bytes are anywhere.

use super::Core;
use crate::input::SessionId;
use crate::results::acceptance::is_acceptable;
use tessera_protocol::ids::Lease;

impl Core {
    /// Whether the node of this session may hand in a result of one of these leases now.
    pub fn may_hand_in(&self, session: SessionId, leases: &[Lease]) -> bool {
        let node = self.books.roster().node_of(session);
        node.is_some_and(|node| leases.iter().any(|lease| is_acceptable(&self.books, node, *lease)))
    }
}
