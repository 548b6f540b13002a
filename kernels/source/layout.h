// The scene layout as kernels read it: the twin of kernels/layout/src, field by field. Owns no
// behaviour. Units, ranges and meanings stand on the Rust side; sizes and offsets are compared by a
// test.
#pragma once

#include "compiler.h"

struct alignas(16) Triangle {
    float v0[3];
    u32 material;
    float v1[3];
    u32 flags;
    float v2[3];
    u32 light;
};

enum TriangleFlags : u32 {
    TRIANGLE_ALPHA = 1,
    TRIANGLE_DOUBLE_SIDED = 2,
    TRIANGLE_EMISSIVE = 4,
    TRIANGLE_MIRRORED = 8
};

struct alignas(16) ShadingVertex {
    float normal[3];
    float u0;
    float tangent[3];
    float tangent_sign;
    float color[4];
    float v0;
    float uv1[2];
    float reserved;
};

enum AlphaMode : u32 { ALPHA_OPAQUE = 0, ALPHA_MASK = 1, ALPHA_BLEND = 2 };
enum MaterialFlags : u32 { MATERIAL_DOUBLE_SIDED = 1, MATERIAL_UNLIT = 2, MATERIAL_PANE = 4 };

struct alignas(16) TextureRef {
    float uv_from_mesh[6];
    u32 texture;
    u32 uv_set;
    u32 reserved[4];
};

struct alignas(16) Material {
    float base_color[4];
    float emission[3];
    float metallic;
    float roughness;
    float normal_scale;
    float alpha_cutoff;
    float ior;
    u32 alpha_mode;
    u32 flags;
    u32 layers;  // 0: none
    u32 reserved;
    TextureRef base_color_texture;
    TextureRef metallic_roughness_texture;
    TextureRef normal_texture;
    TextureRef emission_texture;
};

enum LayersFlags : u32 { LAYERS_SPECULAR_GLOSSINESS = 1 };

enum LayersTexture : u32 {
    LAYERS_SPECULAR = 0,
    LAYERS_SPECULAR_COLOR = 1,
    LAYERS_CLEARCOAT = 2,
    LAYERS_CLEARCOAT_ROUGHNESS = 3,
    LAYERS_CLEARCOAT_NORMAL = 4,
    LAYERS_SHEEN_COLOR = 5,
    LAYERS_SHEEN_ROUGHNESS = 6,
    LAYERS_TRANSMISSION = 7,
    LAYERS_DIFFUSE_TRANSMISSION = 8,
    LAYERS_DIFFUSE_TRANSMISSION_COLOR = 9,
    LAYERS_ANISOTROPY = 10,
    LAYERS_IRIDESCENCE = 11,
    LAYERS_IRIDESCENCE_THICKNESS = 12,
    LAYERS_SPECULAR_GLOSSINESS_MAP = 13,
    LAYERS_TEXTURES = 14
};

// What glTF's material extensions add to a Material.
struct alignas(16) Layers {
    u32 flags;
    float specular;
    float clearcoat;
    float clearcoat_roughness;
    float specular_color[3];
    float clearcoat_normal_scale;
    float sheen_color[3];
    float sheen_roughness;
    float diffuse_transmission_color[3];
    float diffuse_transmission;
    float transmission;
    float anisotropy;
    float anisotropy_cosine;
    float anisotropy_sine;
    float iridescence;
    float iridescence_ior;
    float iridescence_thickness_min;
    float iridescence_thickness_max;
    u32 medium;  // 0: it encloses none
    u32 reserved[3];
    TextureRef textures[LAYERS_TEXTURES];
};

// What is inside of a closed surface.
struct alignas(16) Medium {
    float absorption[3];
    float ior;
    float half_spread;
    i32 priority;
    u32 reserved[2];
};

enum TexelFormat : u32 { TEXEL_RGBA8_SRGB = 0, TEXEL_RGBA8_LINEAR = 1, TEXEL_RGBA16_LINEAR = 2 };
enum Wrap : u32 { WRAP_REPEAT = 0, WRAP_CLAMP_TO_EDGE = 1, WRAP_MIRRORED_REPEAT = 2 };

struct alignas(16) Texture {
    u64 offset;
    u32 width;
    u32 height;
    u32 format;
    u32 wrap_u;
    u32 wrap_v;
    u32 bilinear;
    u32 level_count;
    u32 reserved[3];
};

enum LightKind : u32 {
    LIGHT_POINT = 0,
    LIGHT_SPOT = 1,
    LIGHT_DIRECTIONAL = 2,
    LIGHT_TRIANGLE = 3,
    LIGHT_ENVIRONMENT = 4
};

struct alignas(16) Light {
    float position[3];
    u32 kind;
    float direction[3];
    float range;
    float emission[3];
    u32 triangle;
    float spot_scale;
    float spot_offset;
    float pick_probability;
    float area;
    u32 trail;
    u32 reserved[3];
};

enum LightChild : u32 {
    LIGHT_CHILD_LEAF = 1u << 31,
    LIGHT_CHILD_BOTH_SIDES = 1u << 30,
    LIGHT_CHILD_INDEX = (1u << 30) - 1u
};

struct alignas(32) LightNode {
    float center[3][8];
    float radius[8];
    float axis[3][8];
    float power[8];
    float emission_cosine[8];
    float spread_cosine[8];
    float spread_sine[8];
    u32 child[8];
};

struct alignas(16) AliasEntry {
    u32 threshold;
    u32 alias;
    float probability;
    u32 reserved;
};

struct EnvironmentCell {
    u32 first;  // number
    float probability;
    u32 start;  // where the search begins for the numbers of this place
};

struct alignas(16) Environment {
    u32 width;
    u32 height;
    u32 light;
    u32 present;
    float constant[3];
    float intensity;
    float map_from_world[9];
    float scene_radius;
    float scene_center[3];
    u32 reserved[7];
};

enum CameraKind : u32 { CAMERA_PERSPECTIVE = 0, CAMERA_ORTHOGRAPHIC = 1 };

struct alignas(16) Camera {
    float world_from_camera[12];
    u32 kind;
    float half_width;
    float half_height;
    float lens_radius;
    float focus_distance;
    float near_clip;
    float far_clip;
    u32 blades;
    float blade_turn;
    float blade_apothem;
    float blade_half_side;
    float shift_x;
    float shift_y;
    u32 reserved[3];
};

const u32 NONE = 0xffffffffu;
const u32 CHILD_EMPTY = 0xffffffffu;
const u32 CHILD_LEAF_FLAG = 0x80000000u;
const u32 CHILD_INSTANCE_FLAG = 0x40000000u;  // of a leaf
const u32 BLOCK_ALPHA_FLAG = 0x80000000u;
const u32 BVH_DEPTH_MAX = 48;

struct alignas(64) BvhNode8 {
    float bounds[2][3][8];
    u32 child[8];
    u32 reserved[8];
};

struct alignas(32) TriangleBlock {
    float corner[3][3][4];
    u32 triangle[4];
};

// A mesh in one place.
struct alignas(16) Instance {
    float world_from_mesh[12];  // three rows of four
    float normal_from_mesh[9];
    float tangent_from_mesh[9];
    u32 first_id;        // of its first triangle in the scene
    u32 first_triangle;  // of the mesh's, in mesh_triangles
    u32 triangle_count;
    u32 root;  // of the mesh's hierarchy, in mesh_nodes
    // Above 0, the map changes nothing, and the hierarchy's boxes are padded by so much already.
    float standing_padding;
    u32 reserved;
};

// A node of the device's hierarchy: the wide node's boxes on a grid of 8 bits a side, its children
// one after another. See compressed.h; made by kernels/src/cuda/compress.rs. Where all exponents
// are INSTANCE_EXPONENTS it is an instance: the one of index `first_triangle`, whose mesh's root is
// `first_node`.
struct alignas(16) CompressedNode {
    float base[3];         // the grid's origin, 2^15 steps below its first plane
    // bytes 0 to 2: biased exponents of the grid's steps, >= 1; byte 3: bit k is set if child k is
    // a node
    u32 exponents;
    u32 first_node;        // the children that are nodes, in the order of their slots
    u32 first_triangle;    // the triangles of the others
    // a byte a slot: triangles (0 to 4) << 5 | the first of them, from first_triangle
    u32 leaf[2];
    u32 lower[3][2];       // axis; a byte a slot
    u32 upper[3][2];
};

const u32 INSTANCE_EXPONENTS = 0;

// A triangle of the device's hierarchy: the corners of Triangle, bit for bit.
struct alignas(16) LeafTriangle {
    float v0[3];
    u32 triangle;  // id, a mesh's counted from 0, with BLOCK_ALPHA_FLAG
    float v1[3];
    u32 reserved0;
    float v2[3];
    u32 reserved1;
};

// The device's hierarchy: the scene's own nodes, one more an instance, and those of each mesh.
struct CompressedHierarchy {
    const CompressedNode* nodes;
    const LeafTriangle* triangles;
};

struct alignas(16) SceneView {
    const Triangle* triangles;
    const u32* triangle_vertices;  // three a triangle
    const ShadingVertex* vertices;
    const Material* materials;
    const Texture* textures;
    const u8* texels;
    const Light* lights;
    const AliasEntry* light_alias;
    const LightNode* light_nodes;
    const float* environment_texels;  // three a texel
    const EnvironmentCell* environment_cells;  // of texels, then of rows
    const BvhNode8* bvh_nodes;
    const TriangleBlock* triangle_blocks;
    u32 triangle_count;
    u32 material_count;
    u32 texture_count;
    u32 light_count;
    u32 bvh_node_count;
    float bvh_padding;
    u32 placed_light_count;
    u32 light_node_count;
    const Layers* layers;  // null where no material has any
    Environment environment;
    Camera camera;
    // Instances, and the meshes that they show, each once. A mesh's blocks count its triangles from
    // 0.
    const Instance* instances;
    const Triangle* mesh_triangles;
    const u32* mesh_triangle_vertices;
    const ShadingVertex* mesh_vertices;
    const BvhNode8* mesh_nodes;
    const TriangleBlock* mesh_blocks;
    const Medium* media;
    u32 instance_count;
    u32 medium_count;
    u32 pane_count;  // materials that may be panes (material/pane.h)
    u32 reserved[3];
};

// What a device is given: a scene whose view has no wide hierarchies, and the compressed one.
struct alignas(16) DeviceScene {
    SceneView view;
    CompressedHierarchy hierarchy;
};

const u32 FILM_FRACTION_BITS = 24;
const float FILM_VALUE_MAX = 262144.0f;
const u32 CHANNELS_MAX = 32;
const u32 PASSES_MAX = 16;  // most panes of a path that do not count as scatterings

enum Aov : u32 {
    AOV_ALBEDO = 1,
    AOV_NORMAL = 2,
    AOV_DEPTH = 4,
    AOV_POSITION = 8,
    AOV_HALF = 16,
    AOV_COVERAGE = 32
};
enum PixelFilter : u32 { FILTER_BOX = 0, FILTER_GAUSSIAN = 1, FILTER_BLACKMAN_HARRIS = 2 };

struct alignas(16) UnitParams {
    u32 frame_width;
    u32 frame_height;
    i32 x;  // negative beyond the frame's edge
    i32 y;
    u32 width;
    u32 height;
    u32 first_sample;
    u32 sample_count;
    u32 seed;
    u32 depth;
    u32 aovs;
    u32 filter;
    u32 frame;
    float clamp;
    u32 reserved[2];
};

static_assert(sizeof(Triangle) == 48 && sizeof(ShadingVertex) == 64,
              "mirrored in layout/src/mesh.rs");
static_assert(sizeof(TextureRef) == 48 && sizeof(Material) == 256,
              "mirrored in layout/src/material.rs");
static_assert(sizeof(Layers) == 784 && sizeof(Medium) == 32, "mirrored in layout/src");
static_assert(sizeof(Texture) == 48, "mirrored in layout/src/texture.rs");
static_assert(sizeof(Light) == 80 && sizeof(AliasEntry) == 16 && sizeof(EnvironmentCell) == 12 &&
                  sizeof(Environment) == 112,
              "mirrored in layout/src/light.rs");
static_assert(sizeof(LightNode) == 384, "mirrored in layout/src/light_tree.rs");
static_assert(sizeof(Camera) == 112 && sizeof(BvhNode8) == 256 && sizeof(TriangleBlock) == 160 &&
                  sizeof(Instance) == 144,
              "mirrored in layout/src");
static_assert(sizeof(CompressedNode) == 80 && sizeof(LeafTriangle) == 48,
              "mirrored in src/cuda/compress.rs");
static_assert(sizeof(DeviceScene) == sizeof(SceneView) + 16, "mirrored in src/cuda/params.rs");
static_assert(sizeof(SceneView) == 336 + sizeof(Camera) && sizeof(UnitParams) == 64,
              "mirrored in layout/src");
