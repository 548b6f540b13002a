//! Surfaces: what they look like, their layers and their energy, and the media that they enclose.

mod coverage;
pub(crate) mod energy;
pub(crate) mod extensions;
pub(crate) mod layered;
pub(crate) mod layered_scenes;
pub(crate) mod nested_media;
mod panes;
pub(crate) mod rough_glass;
pub(crate) mod surfaces;
pub(crate) mod textures;
