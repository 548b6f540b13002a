//! The scene layout: plain arrays that importers write and kernels read. Owns no behaviour beyond
//! sizes.
//!
//! Every struct here has a twin in `kernels/source/layout.h`; a test of `tessera-kernels` compares
//! the size and the offset of every field of both. Units: metres, radians, scene-linear Rec. 709
//! radiance. World space is right-handed, +Y up, as in glTF 2.0.

mod array;
mod arrays;
mod bvh;
mod camera;
mod flat_scene;
mod instance;
mod layers;
mod light;
mod light_tree;
mod material;
mod medium;
mod mesh;
mod texture;
mod unit;

pub use array::{Array, Region};
pub use arrays::{room_for, zeroed_array};
pub use bvh::{
    BLOCK_ALPHA_FLAG, BVH_DEPTH_MAX, Bvh, BvhNode8, CHILD_EMPTY, CHILD_INSTANCE_FLAG,
    CHILD_LEAF_FLAG, LEAF_TRIANGLES_MAX, TriangleBlock,
};
pub use camera::{BLADES_MAX, BLADES_MIN, Camera, CameraKind};
pub use flat_scene::{FlatScene, SHOWN_TRIANGLES_MAX, SceneView};
pub use instance::{Instance, Meshes};
pub use layers::{
    LAYERS_MAX, LAYERS_TEXTURES, Layers, LayersTexture, PANE_ROUGHNESS, layers_flags,
};
pub use light::{
    AliasEntry, Environment, EnvironmentCell, Light, LightKind, build_alias_table,
    build_environment_cells,
};
pub use light_tree::{
    LIGHT_TRAIL_BITS, LIGHT_TREE_DEPTH_MAX, LightBounds, LightChoice, LightChoices, LightNode,
    build_light_choices, light_child_bits,
};
pub use material::{AlphaMode, Material, TextureRef, material_flags};
pub use medium::{MEDIA_MAX, Medium};
pub use mesh::{ShadingVertex, Triangle, triangle_flags};
pub use texture::{TexelFormat, Texture, Wrap};
pub use unit::{
    Aov, CHANNELS_MAX, FILM_FRACTION_BITS, FILM_VALUE_MAX, PASSES_MAX, PixelFilter, UnitParams,
};

/// No texture, no light, no triangle: the index that means "none".
pub const NONE: u32 = u32::MAX;
