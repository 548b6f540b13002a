// Doors for tests: single functions of the kernels behind C entries, and the layout as this
// compiler sees it. Not part of the product and not in the fingerprint.
#include "tests/functions.h"

#define OF(type, field) (u32) __builtin_offsetof(type, field)
#define SIZES(type) (u32)sizeof(type), (u32)alignof(type)

// Size, alignment and the offset of every field, struct by struct, in the order of tests/layout.rs.
static const u32 LAYOUT[] = {
    SIZES(Triangle),
    OF(Triangle, v0),
    OF(Triangle, material),
    OF(Triangle, v1),
    OF(Triangle, flags),
    OF(Triangle, v2),
    OF(Triangle, light),
    SIZES(ShadingVertex),
    OF(ShadingVertex, normal),
    OF(ShadingVertex, u0),
    OF(ShadingVertex, tangent),
    OF(ShadingVertex, tangent_sign),
    OF(ShadingVertex, color),
    OF(ShadingVertex, v0),
    OF(ShadingVertex, uv1),
    OF(ShadingVertex, reserved),
    SIZES(TextureRef),
    OF(TextureRef, uv_from_mesh),
    OF(TextureRef, texture),
    OF(TextureRef, uv_set),
    OF(TextureRef, reserved),
    SIZES(Material),
    OF(Material, base_color),
    OF(Material, emission),
    OF(Material, metallic),
    OF(Material, roughness),
    OF(Material, normal_scale),
    OF(Material, alpha_cutoff),
    OF(Material, ior),
    OF(Material, alpha_mode),
    OF(Material, flags),
    OF(Material, layers),
    OF(Material, reserved),
    OF(Material, base_color_texture),
    OF(Material, metallic_roughness_texture),
    OF(Material, normal_texture),
    OF(Material, emission_texture),
    SIZES(Layers),
    OF(Layers, flags),
    OF(Layers, specular),
    OF(Layers, clearcoat),
    OF(Layers, clearcoat_roughness),
    OF(Layers, specular_color),
    OF(Layers, clearcoat_normal_scale),
    OF(Layers, sheen_color),
    OF(Layers, sheen_roughness),
    OF(Layers, diffuse_transmission_color),
    OF(Layers, diffuse_transmission),
    OF(Layers, transmission),
    OF(Layers, anisotropy),
    OF(Layers, anisotropy_cosine),
    OF(Layers, anisotropy_sine),
    OF(Layers, iridescence),
    OF(Layers, iridescence_ior),
    OF(Layers, iridescence_thickness_min),
    OF(Layers, iridescence_thickness_max),
    OF(Layers, medium),
    OF(Layers, reserved),
    OF(Layers, textures),
    SIZES(Medium),
    OF(Medium, absorption),
    OF(Medium, ior),
    OF(Medium, half_spread),
    OF(Medium, priority),
    OF(Medium, reserved),
    SIZES(Texture),
    OF(Texture, offset),
    OF(Texture, width),
    OF(Texture, height),
    OF(Texture, format),
    OF(Texture, wrap_u),
    OF(Texture, wrap_v),
    OF(Texture, bilinear),
    OF(Texture, level_count),
    OF(Texture, reserved),
    SIZES(Light),
    OF(Light, position),
    OF(Light, kind),
    OF(Light, direction),
    OF(Light, range),
    OF(Light, emission),
    OF(Light, triangle),
    OF(Light, spot_scale),
    OF(Light, spot_offset),
    OF(Light, pick_probability),
    OF(Light, area),
    OF(Light, trail),
    OF(Light, reserved),
    SIZES(LightNode),
    OF(LightNode, center),
    OF(LightNode, radius),
    OF(LightNode, axis),
    OF(LightNode, power),
    OF(LightNode, emission_cosine),
    OF(LightNode, spread_cosine),
    OF(LightNode, spread_sine),
    OF(LightNode, child),
    SIZES(AliasEntry),
    OF(AliasEntry, threshold),
    OF(AliasEntry, alias),
    OF(AliasEntry, probability),
    OF(AliasEntry, reserved),
    SIZES(EnvironmentCell),
    OF(EnvironmentCell, first),
    OF(EnvironmentCell, probability),
    OF(EnvironmentCell, start),
    SIZES(Environment),
    OF(Environment, width),
    OF(Environment, height),
    OF(Environment, light),
    OF(Environment, present),
    OF(Environment, constant),
    OF(Environment, intensity),
    OF(Environment, map_from_world),
    OF(Environment, scene_radius),
    OF(Environment, scene_center),
    OF(Environment, reserved),
    SIZES(Camera),
    OF(Camera, world_from_camera),
    OF(Camera, kind),
    OF(Camera, half_width),
    OF(Camera, half_height),
    OF(Camera, lens_radius),
    OF(Camera, focus_distance),
    OF(Camera, near_clip),
    OF(Camera, far_clip),
    OF(Camera, blades),
    OF(Camera, blade_turn),
    OF(Camera, blade_apothem),
    OF(Camera, blade_half_side),
    OF(Camera, shift_x),
    OF(Camera, shift_y),
    OF(Camera, reserved),
    SIZES(BvhNode8),
    OF(BvhNode8, bounds),
    OF(BvhNode8, child),
    OF(BvhNode8, reserved),
    SIZES(TriangleBlock),
    OF(TriangleBlock, corner),
    OF(TriangleBlock, triangle),
    SIZES(Instance),
    OF(Instance, world_from_mesh),
    OF(Instance, normal_from_mesh),
    OF(Instance, tangent_from_mesh),
    OF(Instance, first_id),
    OF(Instance, first_triangle),
    OF(Instance, triangle_count),
    OF(Instance, root),
    OF(Instance, standing_padding),
    OF(Instance, reserved),
    SIZES(SceneView),
    OF(SceneView, triangles),
    OF(SceneView, triangle_vertices),
    OF(SceneView, vertices),
    OF(SceneView, materials),
    OF(SceneView, textures),
    OF(SceneView, texels),
    OF(SceneView, lights),
    OF(SceneView, light_alias),
    OF(SceneView, light_nodes),
    OF(SceneView, environment_texels),
    OF(SceneView, environment_cells),
    OF(SceneView, bvh_nodes),
    OF(SceneView, triangle_blocks),
    OF(SceneView, triangle_count),
    OF(SceneView, material_count),
    OF(SceneView, texture_count),
    OF(SceneView, light_count),
    OF(SceneView, bvh_node_count),
    OF(SceneView, bvh_padding),
    OF(SceneView, placed_light_count),
    OF(SceneView, light_node_count),
    OF(SceneView, layers),
    OF(SceneView, environment),
    OF(SceneView, camera),
    OF(SceneView, instances),
    OF(SceneView, mesh_triangles),
    OF(SceneView, mesh_triangle_vertices),
    OF(SceneView, mesh_vertices),
    OF(SceneView, mesh_nodes),
    OF(SceneView, mesh_blocks),
    OF(SceneView, media),
    OF(SceneView, instance_count),
    OF(SceneView, medium_count),
    OF(SceneView, pane_count),
    OF(SceneView, reserved),
    SIZES(UnitParams),
    OF(UnitParams, frame_width),
    OF(UnitParams, frame_height),
    OF(UnitParams, x),
    OF(UnitParams, y),
    OF(UnitParams, width),
    OF(UnitParams, height),
    OF(UnitParams, first_sample),
    OF(UnitParams, sample_count),
    OF(UnitParams, seed),
    OF(UnitParams, depth),
    OF(UnitParams, aovs),
    OF(UnitParams, filter),
    OF(UnitParams, frame),
    OF(UnitParams, clamp),
    OF(UnitParams, reserved),
    SIZES(CompressedNode),
    OF(CompressedNode, base),
    OF(CompressedNode, exponents),
    OF(CompressedNode, first_node),
    OF(CompressedNode, first_triangle),
    OF(CompressedNode, leaf),
    OF(CompressedNode, lower),
    OF(CompressedNode, upper),
    SIZES(LeafTriangle),
    OF(LeafTriangle, v0),
    OF(LeafTriangle, triangle),
    OF(LeafTriangle, v1),
    OF(LeafTriangle, reserved0),
    OF(LeafTriangle, v2),
    OF(LeafTriangle, reserved1),
    SIZES(RayCounts),
    OF(RayCounts, closest),
    OF(RayCounts, any),
    OF(RayCounts, clamped),
    OF(RayCounts, non_finite),
};

extern "C" {

const u32* tessera_test_layout(u32* count) {
    *count = sizeof(LAYOUT) / sizeof(LAYOUT[0]);
    return LAYOUT;
}

void tessera_test_sincos(float turns, float* result) {
    const SinCos value = sincos_turns(turns);
    result[0] = value.sine;
    result[1] = value.cosine;
}

float tessera_test_atan2(float y, float x) { return atan2_(y, x); }
i32 tessera_test_floor(float value) { return floor_to_int(value); }
i64 tessera_test_film_fixed(float value) { return film_fixed(value); }

void tessera_test_film_add(i64* film, u32 channels, const float* values, RayCounts* counts) {
    FilmSample sample;
    for (u32 channel = 0; channel < channels; ++channel) sample.values[channel] = values[channel];
    film_add(film, channels, 1, 0, sample, counts);
}

u32 tessera_test_pixel_key(u32 x, u32 y, u32 seed, u32 frame) {
    return pixel_key(x, y, seed, frame);
}

void tessera_test_draw(u32 key, u32 index, u32 dimension, u32* result) {
    const Bits2 bits = draw_bits(make_sampler(key, index), dimension);
    result[0] = bits.x;
    result[1] = bits.y;
}

// The light that a number picks for a surface, by a point and a normal, and the probability of
// that.
u32 tessera_test_pick_light(const SceneView* scene, const float* vantage, u32 bits,
                            float* probability) {
    const Vantage from = vantage_of(pack_vantage(vec3_from(vantage), vec3_from(vantage + 3)));
    const LightPick pick = pick_light(*scene, from, bits);
    *probability = pick.probability;
    return pick.light;
}

float tessera_test_light_probability(const SceneView* scene, const float* vantage, u32 light) {
    return light_probability(
        *scene, vantage_of(pack_vantage(vec3_from(vantage), vec3_from(vantage + 3))), light);
}

// The vantage's normal after packing.
void tessera_test_vantage(const float* normal, float* result) {
    const Vec3 again = vantage_of(pack_vantage(splat(0.0f), vec3_from(normal))).normal;
    result[0] = again.x;
    result[1] = again.y;
    result[2] = again.z;
}

// 0 disk, 1 cosine hemisphere, 2 triangle, 3 tent (of x), 4 and up: pixel filter.
void tessera_test_shape(u32 shape, float x, float y, float* result) {
    const Vec2 random = vec2(x, y);
    Vec3 point = splat(0.0f);
    Vec2 flat = vec2(0.0f, 0.0f);
    if (shape == 0) flat = sample_disk(random);
    if (shape == 1) point = sample_cosine(random);
    if (shape == 2) flat = sample_triangle(random);
    if (shape == 3) flat = vec2(sample_tent(x), sample_tent(y));
    if (shape >= 4) flat = filter_sample(shape - 4, random);
    result[0] = shape == 1 ? point.x : flat.x;
    result[1] = shape == 1 ? point.y : flat.y;
    result[2] = point.z;
}

// `surface`: base colour, metallic, roughness, F0 of the dielectric.
static Bsdf bsdf_of(const float* surface, const float* wo) {
    return make_bsdf(vec3_from(surface), surface[3], surface[4], surface[5], vec3_from(wo));
}

// Value (three) and pdf.
void tessera_test_bsdf(const float* surface, const float* wo, const float* wi, float* result) {
    const BsdfValue value = bsdf_evaluate(bsdf_of(surface, wo), vec3_from(wi));
    result[0] = value.value.x;
    result[1] = value.value.y;
    result[2] = value.value.z;
    result[3] = value.pdf;
}

// Direction (three), weight (three), pdf (0: none).
void tessera_test_bsdf_sample(const float* surface, const float* wo, const float* random,
                              float* result) {
    const BsdfSample sample =
        bsdf_sample(bsdf_of(surface, wo), random[0], vec2(random[1], random[2]));
    result[0] = sample.wi.x;
    result[1] = sample.wi.y;
    result[2] = sample.wi.z;
    result[3] = sample.weight.x;
    result[4] = sample.weight.y;
    result[5] = sample.weight.z;
    result[6] = sample.valid ? sample.pdf : 0.0f;
}

void tessera_test_visible_normal(float alpha, const float* wo, const float* random,
                                 float* result) {
    const Vec3 normal = sample_visible_normal(alpha, vec3_from(wo), vec2(random[0], random[1]));
    result[0] = normal.x;
    result[1] = normal.y;
    result[2] = normal.z;
}

// Direction (three), radiance (three), pdf.
void tessera_test_environment_sample(const SceneView* scene, u32 x, u32 y, float* result) {
    const EnvironmentSample sample = environment_sample_map(*scene, bits2(x, y));
    result[0] = sample.direction.x;
    result[1] = sample.direction.y;
    result[2] = sample.direction.z;
    result[3] = sample.radiance.x;
    result[4] = sample.radiance.y;
    result[5] = sample.radiance.z;
    result[6] = sample.pdf;
}

// Radiance (three), pdf.
void tessera_test_environment(const SceneView* scene, const float* direction, float* result) {
    const EnvironmentValue value = environment_map_value(*scene, vec3_from(direction), true);
    result[0] = value.radiance.x;
    result[1] = value.radiance.y;
    result[2] = value.radiance.z;
    result[3] = value.pdf;
}

// `place`: u, v, footprint.
void tessera_test_texture(const SceneView* scene, u32 which, const float* place, float* result) {
    const Vec4 value = sample_texture(*scene, which, vec2(place[0], place[1]), place[2]);
    result[0] = value.x;
    result[1] = value.y;
    result[2] = value.z;
    result[3] = value.w;
}

// Origin (three), direction (three), t_max.
void tessera_test_camera(const Camera* camera, float x, float y, float lens_x, float lens_y,
                         float* result) {
    const Ray ray = camera_ray(*camera, x, y, vec2(lens_x, lens_y));
    result[0] = ray.origin.x;
    result[1] = ray.origin.y;
    result[2] = ray.origin.z;
    result[3] = ray.direction.x;
    result[4] = ray.direction.y;
    result[5] = ray.direction.z;
    result[6] = ray.t_max;
}

// A point of the lens.
void tessera_test_lens(const Camera* camera, float x, float y, float* result) {
    const Vec2 point = sample_lens(*camera, vec2(x, y));
    result[0] = point.x;
    result[1] = point.y;
}

bool tessera_test_alpha(const SceneView* scene, const u32* sampler, u32 triangle, float u,
                        float v) {
    const Hit hit = {1.0f, triangle, u, v};
    return alpha_accepts(make_sampler(sampler[0], sampler[1]), triangle,
                         hit_opacity(*scene, hit, 0.0f));
}
}

// The host's side of functions.h.
struct UnitFunction {
    const char* name;
    const char* inputs;
    u32 outputs;
    void (*run)(const SceneView& scene, const Words& words);
};

#define TESSERA_UNIT_ENTRY(name, inputs, outputs) {#name, inputs, outputs, unit_##name},
static const UnitFunction UNIT_FUNCTIONS[] = {TESSERA_UNIT_FUNCTIONS(TESSERA_UNIT_ENTRY)};

extern "C" const UnitFunction* tessera_unit_functions(u32* count) {
    *count = sizeof(UNIT_FUNCTIONS) / sizeof(UNIT_FUNCTIONS[0]);
    return UNIT_FUNCTIONS;
}

extern "C" void tessera_unit_run(u32 which, const SceneView* scene,
                                 const CompressedHierarchy* hierarchy, const u32* in, u32* out,
                                 u64 count) {
    const UnitFunction& function = UNIT_FUNCTIONS[which];
    const u64 inputs = __builtin_strlen(function.inputs);
    for (u64 index = 0; index < count; ++index) {
        Words words;
        words.in = in + index * inputs;
        words.out = out + index * function.outputs;
        words.hierarchy = hierarchy;
        function.run(*scene, words);
    }
}

// The queries of entry/rays.cpp over the compressed hierarchy.
extern "C" void tessera_test_compressed(const SceneView* scene,
                                        const CompressedHierarchy* hierarchy, const Ray* rays,
                                        u64 count, Hit* hits, u32* optical_depths) {
    const Hit miss = {0.0f, NONE, 0.0f, 0.0f};
    for (u64 k = 0; k < count; k++) {
        if (!intersect_closest(*scene, *hierarchy, rays[k], coverage_of_ray((u32)k, 0), &hits[k]))
            hits[k] = miss;
        optical_depths[k] = optical_depth_along(*scene, *hierarchy, rays[k], 0.0f);
    }
}

// One plane of a compressed node.
extern "C" float tessera_test_plane(const CompressedNode* node, u32 side, u32 axis, u32 slot) {
    return grid_plane(*node, side, axis, slot);
}

// The numbers of a LayeredSurface in the order of test_hooks.rs; the coat's normal is the
// surface's.
static LayeredBsdf layered_of(const float* numbers, const float* wo) {
    LayeredSurface surface;
    surface.base_color = vec3_from(numbers);
    surface.metallic = numbers[3];
    surface.roughness = numbers[4];
    surface.f0 = vec3_from(numbers + 5);
    surface.f90 = numbers[8];
    surface.clearcoat = numbers[9];
    surface.clearcoat_roughness = numbers[10];
    surface.clearcoat_normal = vec3(0.0f, 0.0f, 1.0f);
    surface.sheen_color = vec3_from(numbers + 11);
    surface.sheen_roughness = numbers[14];
    surface.transmission = numbers[15];
    surface.diffuse_transmission = numbers[16];
    surface.diffuse_transmission_color = vec3_from(numbers + 17);
    surface.anisotropy = numbers[20];
    surface.iridescence = numbers[21];
    surface.film.ior = numbers[22];
    surface.film.thickness = numbers[23];
    surface.eta = numbers[24];
    surface.refracts = numbers[25] != 0.0f;
    surface.is_pane = false;
    return make_layered(surface, vec3_from(wo));
}

// Value (three) and pdf.
extern "C" void tessera_test_layered(const float* surface, const float* wo, const float* wi,
                                     float* result) {
    const BsdfValue value = layered_evaluate(layered_of(surface, wo), vec3_from(wi));
    result[0] = value.value.x;
    result[1] = value.value.y;
    result[2] = value.value.z;
    result[3] = value.pdf;
}

// Direction (three), weight (three), pdf (0: none).
extern "C" void tessera_test_layered_sample(const float* surface, const float* wo,
                                            const float* random, float* result) {
    const BsdfSample sample =
        layered_sample(layered_of(surface, wo), random[0], vec2(random[1], random[2]));
    result[0] = sample.wi.x;
    result[1] = sample.wi.y;
    result[2] = sample.wi.z;
    result[3] = sample.weight.x;
    result[4] = sample.weight.y;
    result[5] = sample.weight.z;
    result[6] = sample.valid ? sample.pdf : 0.0f;
}
