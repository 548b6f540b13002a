//! What of the layout's ways with bytes the device side uses. Knows no device.

pub(crate) use tessera_layout::plain::{Plain, bytes_of, bytes_of_one};
