//! Accessors of primitives that were compressed with Draco. Decodes nothing.

use std::collections::BTreeMap;

/// Place of values: the stream's buffer view, and the attribute in it. None is the indices.
pub(super) type Origin = (usize, Option<u32>);

/// Accessors that were decoded, with their places and their bytes.
#[derive(Debug, Default)]
pub(crate) struct DecodedAccessors(pub(super) BTreeMap<usize, (Origin, Vec<u8>)>);

impl DecodedAccessors {
    /// Returns the bytes of an accessor, without gaps.
    pub(crate) fn get(&self, accessor: usize) -> Option<&[u8]> {
        self.0.get(&accessor).map(|(_, bytes)| bytes.as_slice())
    }
}
