//! Geometry: the hierarchy on a device, and instances.

pub(crate) mod compressed;
pub(crate) mod instances;
