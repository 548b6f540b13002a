//! The rules by which hierarchies can be built.

/// Rule by which a tree is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum BuilderKind {
    /// Binned surface area heuristic, which is used for rendering.
    #[default]
    SurfaceArea,
    /// Halves by count along the longest axis: quick to build, slower to trace.
    Median,
    /// Arbitrary splits from a seed, for tests: as bad as a valid tree can be.
    Random(u64),
}
