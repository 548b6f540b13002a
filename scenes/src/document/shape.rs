//! What an accessor's JSON says of its numbers. Reads none of them.

use gltf::json::accessor::ComponentType;

/// Numbers of an accessor, as its JSON describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Elements.
    pub(crate) count: usize,
    pub(crate) component: ComponentType,
    /// Components of an element.
    pub(crate) components: usize,
}

impl Shape {
    /// Returns the bytes of an element.
    pub(crate) fn bytes(self) -> usize {
        self.components * self.component.size()
    }
}
