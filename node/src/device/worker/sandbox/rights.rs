//! Capabilities of a worker: what the kernel lets a privileged user do. A worker gives them up.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Gives up all capabilities of the calling thread and those that it starts, but for `kept` where
/// it has them.
pub(super) fn drop_all_but(kept: CapabilitySet) -> Result<(), String> {
    let text = |error| format!("cannot give up capabilities: {error}");
    let have = capabilities(None).map_err(text)?;
    let permitted = have.permitted & kept;
    // A service manager may have taken all of them, and the right to ask as well.
    if (have.permitted | have.effective | have.inheritable) == permitted {
        return Ok(());
    }
    let left =
        CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
    set_capabilities(None, left).map_err(text)
}
