//! What a file says of its compressed buffer views, as parsed. Owns no decompression.

use crate::document::compression::filter::Filter;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The extension's JSON object in a buffer view.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ViewJson {
    pub(super) buffer: usize,
    #[serde(default)]
    pub(super) byte_offset: u64,
    pub(super) byte_length: u64,
    pub(super) byte_stride: u64,
    pub(super) count: u64,
    pub(super) mode: Mode,
    #[serde(default)]
    pub(super) filter: Filter,
}

/// Compression of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Mode {
    Attributes,
    Triangles,
    Indices,
}

impl Mode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Attributes => "ATTRIBUTES",
            Self::Triangles => "TRIANGLES",
            Self::Indices => "INDICES",
        }
    }
}

/// The compressed views of a file, and the buffers that are not needed because of them.
#[derive(Debug, Default)]
pub(crate) struct CompressedViews {
    pub(super) views: BTreeMap<usize, (ViewJson, &'static str)>,
    pub(super) placeholders: BTreeSet<usize>,
}

impl CompressedViews {
    /// Returns whether a buffer only stands for the bytes of compressed views. Such a buffer is
    /// neither needed nor read.
    pub(crate) fn is_placeholder(&self, buffer: usize) -> bool {
        self.placeholders.contains(&buffer)
    }
}
