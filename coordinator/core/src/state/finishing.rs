//! Who finishes a frame. Data only; `frames::finish` decides.

use serde::{Deserialize, Serialize};

/// Who finishes a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Finishing {
    /// Nobody yet, or the coordinator, because no node could when the frame was complete.
    #[default]
    Unbegun,
    /// Nodes, by its finishing units.
    ByNodes,
    /// The coordinator, because nodes have tried in vain. For good.
    ByCoordinator,
}
