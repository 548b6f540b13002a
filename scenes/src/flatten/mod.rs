//! Flattening: a scene's meshes in their places at one moment, as the arrays that kernels read, and
//! what they come to. Makes no lights and no hierarchy over the world.

pub(crate) mod flat_geometry;
pub(crate) mod instancing;
pub(crate) mod motion;
pub(crate) mod parts;
pub(crate) mod pose;
pub(crate) mod standing;
pub(crate) mod tally;
