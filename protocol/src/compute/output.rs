//! An output of a kernel, and where the parts of several outputs lie in one buffer. Knows no job.

use super::{Domain, Element, Reducing, Reduction};
use serde::{Deserialize, Serialize};

/// Where an output begins, among several: at a multiple of so many bytes, as device memory does.
const OUTPUT_ALIGN: u64 = 256;

/// An array that a kernel writes through its variable of this name, and the use of its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputArray {
    /// Name of the variable. Empty for what a kernel without named outputs writes.
    pub name: String,
    /// Number of values that the kernel writes at each index, 1 to
    /// [`CHANNELS_MAX`](crate::limits::CHANNELS_MAX).
    pub channels: u8,
    /// Type of these values.
    pub element: Element,
    /// Reduction of the values; None keeps all of them.
    pub reduction: Option<Reduction>,
    /// Number of keys of the reduction, as in [`Reducing::keys`].
    pub keys: u32,
}

impl OutputArray {
    /// Returns the size of one index's values in bytes.
    pub fn index_bytes(&self) -> u64 {
        self.element.bytes() as u64 * u64::from(self.channels)
    }

    /// Returns what is reduced, and how; None keeps all values.
    pub fn reducing(&self) -> Option<Reducing> {
        let (element, channels, keys) = (self.element, self.channels, self.keys);
        self.reduction.map(|reduction| Reducing { reduction, element, channels, keys })
    }

    /// Returns the type of the result's values.
    pub fn result_element(&self) -> Element {
        self.reduction.map_or(self.element, |reduction| reduction.result(self.element))
    }

    /// Returns the shape of the result: the shape of the domain, or of what it is reduced to.
    pub fn result_shape(&self, domain: &Domain) -> Vec<u64> {
        self.reducing().map_or_else(|| domain.shape(self.channels), |what| what.shape())
    }

    /// Returns the size of what a chunk of `count` indices writes, in bytes.
    pub fn value_bytes(&self, count: u64) -> u64 {
        count.saturating_mul(self.index_bytes())
    }

    /// Returns the size of its part of the result of such a chunk, in bytes.
    pub fn result_bytes(&self, count: u64) -> u64 {
        self.reducing().map_or_else(|| self.value_bytes(count), |what| what.partial_bytes())
    }

    /// Returns the end of its files' names for an extension: `npy`, or with a name `flux.npy`.
    pub fn file_extension(&self, extension: &str) -> String {
        match self.name.as_str() {
            "" => extension.to_owned(),
            name => format!("{name}.{extension}"),
        }
    }
}

/// Where the parts of outputs lie in one buffer: one after another in the order of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// First byte and length of each part.
    pub parts: Vec<(u64, u64)>,
    /// Length of all of them in bytes, with the room between them.
    pub bytes: u64,
}

impl Layout {
    /// Places parts of these lengths. After named ones there is room to the next multiple of 256
    /// bytes.
    pub(super) fn of(outputs: &[OutputArray], length: impl Fn(&OutputArray) -> u64) -> Self {
        let (mut parts, mut bytes) = (Vec::with_capacity(outputs.len()), 0u64);
        for output in outputs {
            let part = length(output);
            parts.push((bytes, part));
            bytes = bytes.saturating_add(part);
            if !output.name.is_empty() {
                bytes = bytes.checked_next_multiple_of(OUTPUT_ALIGN).unwrap_or(u64::MAX);
            }
        }
        Self { parts, bytes }
    }
}
