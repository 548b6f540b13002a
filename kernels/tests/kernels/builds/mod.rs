//! Builds: the same bits, the same layout and the same functions from every one of them.

pub(crate) mod device;
pub(crate) mod lanes;
pub(crate) mod layout;
pub(crate) mod same_bits;
pub(crate) mod unit_functions;
