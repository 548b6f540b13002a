// Every function of the kernels by itself: words in, words out, for proofs that a device computes
// what the host does; a whole path is a kernel of the product, and has pictures. Not part of the
// product and not in the fingerprint. functions.cu and functions.cpp make both sides of the
// list below.
#pragma once

#include "bvh/compressed.h"
#include "integrator/trace_path.h"
#include "tests/function_lights.h"
#include "tests/function_paths.h"

// name, what each input word is, output words. f: any float, NaN and infinities too; r: a finite
// float; u: in [0, 1); s: in [0, 1]; b: any 32 bits.
#define TESSERA_UNIT_FUNCTIONS(X)                    \
    X(selects, "fff", 7)                             \
    X(signs, "ff", 4)                                \
    X(arithmetic, "fff", 6)                          \
    X(conversions, "fb", 6)                          \
    X(bits, "bb", 6)                                 \
    X(sincos, "f", 2)                                \
    X(atan2, "ff", 1)                                \
    X(pow5, "f", 1)                                  \
    X(products, "rrrrrr", 4)                         \
    X(combinations, "rrrrrrrrr", 6)                  \
    X(normalize_or, "fffrrr", 3)                     \
    X(components, "fff", 4)                          \
    X(basis, "rrrrrr", 15)                           \
    X(hashes, "bb", 2)                               \
    X(pixel_key, "bbbb", 1)                          \
    X(owen, "bb", 2)                                 \
    X(draw, "bbb", 4)                                \
    X(disk, "uu", 2)                                 \
    X(polygon, "uubu", 2)                            \
    X(cosine, "uu", 3)                               \
    X(triangle, "uu", 2)                             \
    X(tent, "u", 1)                                  \
    X(filters, "uu", 6)                              \
    X(albedo, "ss", 6)                               \
    X(microfacets, "ssrrr", 2)                       \
    X(visible_normal, "srrruu", 3)                   \
    X(multiple_energy, "ss", 1)                      \
    X(bsdf, "ssssssrrr", 18)                         \
    X(bsdf_evaluate, "ssssssrrrrrr", 4)              \
    X(bsdf_sample, "ssssssrrruuu", 8)                \
    X(powers, "ff", 3)                               \
    X(sheen, "ssss", 2)                              \
    X(film, "ssssssss", 3)                           \
    X(layered, "ssssssssssssssssrrr", 45)            \
    X(layered_evaluate, "ssssssssssssssssrrrrrr", 4) \
    X(layered_sample, "ssssssssssssssssrrruuu", 8)   \
    X(media, "bbbbbb", 4)                            \
    X(film_fixed, "r", 2)                            \
    X(offset_origin, "rrrrrr", 3)                    \
    X(prepare_ray, "rrrrrr", 15)                     \
    X(box, "rrrrrrrrrrrr", 2)                        \
    X(node, "rrrrrrbb", 10)                          \
    X(leaf, "rrruub", 5)                             \
    X(camera_ray, "rruu", 7)                         \
    X(camera_any, "rruurrrrbrr", 8)                  \
    X(wrap, "fbbb", 4)                               \
    X(texture, "ffb", 4)                             \
    X(environment, "rrr", 4)                         \
    X(environment_sample, "bb", 7)                   \
    X(mis_weight, "rr", 1)                           \
    X(vantage, "rrrrrr", 7)                          \
    X(angles, "ssrr", 6)                             \
    X(light_importance, "ssssssssssssrrrrrrb", 1)    \
    X(light_choice, "brrrrrr", 4)                    \
    X(range_window, "rr", 1)                         \
    X(punctual, "brrrrrrrrrrr", 9)                   \
    X(light, "bbbrrrrrr", 10)                        \
    X(emission, "buur", 4)                           \
    X(alpha, "bbuu", 4)                              \
    X(surface, "buurrr", 14)                         \
    X(triangle_test, "rrrrrrrrrrrr", 4)              \
    X(own_box, "rrrrrrrrrrrru", 2)                   \
    X(closest, "rrrrrrb", 4)                         \
    X(any, "rrruubb", 1)                             \
    X(generate, "bbbbb", 13)                         \
    X(miss, "rrrsssb", 3)                            \
    X(shade, "buurrrbbbsss", 40)                     \
    X(layered_surface, "buurrrs", 33)                \
    X(shade_layered, "buurrrbbbsssb", 40)

// Arithmetic, vectors, bits.

TESSERA_FN void unit_selects(const SceneView&, const Words& w) {
    const float a = real(w, 0), b = real(w, 1), c = real(w, 2);
    give(w, 0, min_(a, b));
    give(w, 1, max_(a, b));
    give(w, 2, clamp_(a, b, c));
    give(w, 3, saturate_(a));
    give(w, 4, lesser_(a, b));
    give(w, 5, greater_(a, b));
    w.out[6] = (u32)is_finite(a) | (u32)(a < b) << 1 | (u32)(a <= b) << 2 | (u32)(a == b) << 3;
}

TESSERA_FN void unit_signs(const SceneView&, const Words& w) {
    give(w, 0, abs_(real(w, 0)));
    give(w, 1, copysign_(real(w, 0), real(w, 1)));
    give(w, 2, -real(w, 0));
    give(w, 3, direction_component(real(w, 0)));
}

TESSERA_FN void unit_arithmetic(const SceneView&, const Words& w) {
    const float a = real(w, 0), b = real(w, 1), c = real(w, 2);
    give(w, 0, a * b + c);
    give(w, 1, fma_(a, b, c));
    give(w, 2, a / b);
    give(w, 3, sqrt_(a));
    give(w, 4, lerp_(a, b, c));
    give(w, 5, a - b);
}

TESSERA_FN void unit_conversions(const SceneView&, const Words& w) {
    w.out[0] = (u32)int_from_float(real(w, 0));
    w.out[1] = (u32)floor_to_int(real(w, 0));
    give(w, 2, unit_from_bits(w.in[1]));
    give(w, 3, (float)w.in[1]);
    give(w, 4, (float)(i32)w.in[1]);
    give(w, 5, filter_quantile(GAUSSIAN_QUANTILE, unit_from_bits(w.in[1])));
}

TESSERA_FN void unit_bits(const SceneView&, const Words& w) {
    w.out[0] = reverse_bits(w.in[0]);
    w.out[1] = count_trailing_zeros(w.in[0] | 0x80000000u);
    w.out[2] = count_ones(w.in[0]);
    const u64 product = multiply_wide(w.in[0], w.in[1]);
    w.out[3] = (u32)product;
    w.out[4] = (u32)(product >> 32);
    w.out[5] = min_u32(w.in[0], w.in[1]);
}

TESSERA_FN void unit_sincos(const SceneView&, const Words& w) {
    const SinCos value = sincos_turns(real(w, 0));
    give(w, 0, value.sine);
    give(w, 1, value.cosine);
}

TESSERA_FN void unit_atan2(const SceneView&, const Words& w) {
    give(w, 0, atan2_(real(w, 0), real(w, 1)));
}
TESSERA_FN void unit_pow5(const SceneView&, const Words& w) { give(w, 0, pow5(real(w, 0))); }

TESSERA_FN void unit_products(const SceneView&, const Words& w) {
    give(w, 0, dot(real3(w, 0), real3(w, 3)));
    give3(w, 1, cross(real3(w, 0), real3(w, 3)));
}

TESSERA_FN void unit_combinations(const SceneView&, const Words& w) {
    give3(w, 0, lerp3(real3(w, 0), real3(w, 3), real(w, 6)));
    give3(w, 3, fma3(real3(w, 0), real3(w, 3), real3(w, 6)));
}

TESSERA_FN void unit_normalize_or(const SceneView&, const Words& w) {
    give3(w, 0, normalize_or(real3(w, 0), real3(w, 3)));
}

TESSERA_FN void unit_components(const SceneView&, const Words& w) {
    give(w, 0, max_component(real3(w, 0)));
    give(w, 1, mean_component(real3(w, 0)));
    w.out[2] = is_black(real3(w, 0));
    w.out[3] = is_finite3(real3(w, 0));
}

TESSERA_FN void unit_basis(const SceneView&, const Words& w) {
    const Basis basis = basis_about(unit3(w, 0));
    give3(w, 0, basis.tangent);
    give3(w, 3, basis.bitangent);
    give3(w, 6, basis.normal);
    give3(w, 9, world_from_local(basis, real3(w, 3)));
    give3(w, 12, local_from_world(basis, real3(w, 3)));
}

// Random numbers and shapes.

TESSERA_FN void unit_hashes(const SceneView&, const Words& w) {
    w.out[0] = hash_u32(w.in[0]);
    w.out[1] = hash_pair(w.in[0], w.in[1]);
}

TESSERA_FN void unit_pixel_key(const SceneView&, const Words& w) {
    w.out[0] = pixel_key(w.in[0] & 0xffffu, w.in[1] & 0xffffu, w.in[2], w.in[3]);
}

TESSERA_FN void unit_owen(const SceneView&, const Words& w) {
    w.out[0] = laine_karras(w.in[0], w.in[1]);
    w.out[1] = sobol_second_reversed(w.in[0]);
}

TESSERA_FN void unit_draw(const SceneView&, const Words& w) {
    const Sampler sampler = make_sampler(w.in[0], w.in[1]);
    const u32 dimension = scatter_dimension(w.in[2] & 1023u, w.in[2] >> 30);
    const Bits2 bits = draw_bits(sampler, dimension);
    w.out[0] = bits.x;
    w.out[1] = bits.y;
    const Vec2 random = draw(sampler, dimension);
    give(w, 2, random.x);
    give(w, 3, random.y);
}

TESSERA_FN void unit_disk(const SceneView&, const Words& w) {
    give2(w, 0, sample_disk(real2(w, 0)));
}

// A lens of as many blades as lenses have, turned.
TESSERA_FN void unit_polygon(const SceneView&, const Words& w) {
    Polygon polygon;
    polygon.corners = 3u + w.in[2] % 14u;
    const SinCos half = sincos_turns(0.5f / (float)polygon.corners);
    polygon.turn = real(w, 3);
    polygon.apothem = half.cosine;
    polygon.half_side = half.sine;
    give2(w, 0, sample_polygon(polygon, real2(w, 0)));
}

TESSERA_FN void unit_cosine(const SceneView&, const Words& w) {
    give3(w, 0, sample_cosine(real2(w, 0)));
}
TESSERA_FN void unit_triangle(const SceneView&, const Words& w) {
    give2(w, 0, sample_triangle(real2(w, 0)));
}
TESSERA_FN void unit_tent(const SceneView&, const Words& w) { give(w, 0, sample_tent(real(w, 0))); }

TESSERA_FN void unit_filters(const SceneView&, const Words& w) {
    for (u32 filter = 0; filter < 3; ++filter)
        give2(w, 2 * filter, filter_sample(filter, real2(w, 0)));
}

// Reflection.

TESSERA_FN void unit_albedo(const SceneView&, const Words& w) {
    const AlbedoRow row = albedo_row(max_(real(w, 0), ALPHA_MIN));
    const SplitAlbedo here = ggx_albedo(row, real(w, 1));
    const SplitAlbedo mean = ggx_albedo_mean(row);
    w.out[0] = row.first;
    give(w, 1, row.fraction);
    give2(w, 2, vec2(here.scale, here.bias));
    give2(w, 4, vec2(mean.scale, mean.bias));
}

TESSERA_FN void unit_microfacets(const SceneView&, const Words& w) {
    const float alpha2 = square_(max_(real(w, 0), ALPHA_MIN));
    give(w, 0, smith_root(alpha2, real(w, 1)));
    give(w, 1, ggx_distribution(alpha2, unit3(w, 2)));
}

TESSERA_FN void unit_visible_normal(const SceneView&, const Words& w) {
    give3(w, 0, sample_visible_normal(max_(real(w, 0), ALPHA_MIN), upper3(w, 1), real2(w, 4)));
}

TESSERA_FN void unit_multiple_energy(const SceneView&, const Words& w) {
    give(w, 0, multiple_energy(real(w, 0), real(w, 1)));
}

// Words 0 to 8: base colour, metallic, roughness, F0, out.
TESSERA_FN Bsdf bsdf_from(const Words& w) {
    return make_bsdf(real3(w, 0), real(w, 3), real(w, 4), real(w, 5), upper3(w, 6));
}

TESSERA_FN void unit_bsdf(const SceneView&, const Words& w) {
    const Bsdf bsdf = bsdf_from(w);
    give3(w, 0, bsdf.f0);
    give3(w, 3, bsdf.multiple);
    give3(w, 6, bsdf.diffuse);
    give3(w, 9, bsdf.wo);
    give3(w, 12, vec3(bsdf.alpha2, bsdf.wo_root, bsdf.wo_lost));
    give3(w, 15, vec3(bsdf.wo_below, bsdf.specular_share, bsdf.dielectric_multiple));
}

TESSERA_FN void unit_bsdf_evaluate(const SceneView&, const Words& w) {
    const BsdfValue value = bsdf_evaluate(bsdf_from(w), unit3(w, 9));
    give3(w, 0, value.value);
    give(w, 3, value.pdf);
}

TESSERA_FN void unit_bsdf_sample(const SceneView&, const Words& w) {
    const BsdfSample sample = bsdf_sample(bsdf_from(w), real(w, 9), real2(w, 10));
    give3(w, 0, sample.wi);
    give3(w, 3, sample.weight);
    give(w, 6, sample.pdf);
    w.out[7] = sample.valid;
}

// Reflection and transmission with extensions.

TESSERA_FN void unit_powers(const SceneView&, const Words& w) {
    give(w, 0, log2_(real(w, 0)));
    give(w, 1, exp2_(real(w, 0)));
    give(w, 2, pow_(real(w, 0), real(w, 1)));
}

TESSERA_FN void unit_sheen(const SceneView&, const Words& w) {
    give(w, 0, sheen_value(make_sheen(real(w, 0)), real(w, 1), real(w, 2), real(w, 3)));
    give(w, 1, sheen_albedo(real(w, 0), real(w, 1)));
}

// Words: F0, strength, cosine, index, thickness (a small one by its eighth).
TESSERA_FN void unit_film(const SceneView&, const Words& w) {
    Film film;
    film.ior = fma_(2.0f, real(w, 5), 1.0f);
    film.thickness = real(w, 6) * (real(w, 7) < 0.125f ? 0.04f : 1200.0f);
    give3(w, 0, film_f0(film, real3(w, 0), real(w, 3), real(w, 4)));
}

// Words 0 to 15: base colour, metallic, roughness, F0, F90, coat, its roughness, sheen, its
// roughness, transmission, diffuse transmission, anisotropy, iridescence, and which index behind
// the surface.
TESSERA_FN LayeredSurface surface_from(const Words& w) {
    LayeredSurface surface;
    surface.base_color = real3(w, 0);
    surface.metallic = real(w, 3);
    surface.roughness = real(w, 4);
    surface.f0 = vec3(real(w, 5), square_(real(w, 5)), 0.04f);
    surface.f90 = real(w, 6);
    surface.clearcoat = real(w, 7);
    surface.clearcoat_roughness = real(w, 8);
    surface.clearcoat_normal = normalize(vec3(0.5f * real(w, 7) - 0.25f, 0.125f, 1.0f));
    surface.sheen_color = vec3(real(w, 9), 0.5f * real(w, 9), square_(real(w, 9)));
    surface.sheen_roughness = real(w, 10);
    surface.transmission = real(w, 11);
    surface.diffuse_transmission = real(w, 12);
    surface.diffuse_transmission_color = vec3(1.0f, real(w, 0), real(w, 1));
    surface.anisotropy = real(w, 13);
    surface.iridescence = real(w, 14);
    surface.film.ior = 1.0f + real(w, 6);
    surface.film.thickness = 600.0f * real(w, 14);
    surface.refracts = real(w, 15) > 0.25f;
    surface.is_pane = !surface.refracts && surface.roughness <= PANE_ROUGHNESS;
    surface.eta = fma_(2.0f, real(w, 15), 0.3f);
    return surface;
}

TESSERA_FN void give_layered(const Words& w, u32 at, const LayeredBsdf& bsdf) {
    give3(w, at, vec3(bsdf.alpha_x, bsdf.alpha_y, bsdf.wo_root));
    give3(w, at + 3, vec3(bsdf.wo_lost, bsdf.wo_below, bsdf.eta));
    give3(w, at + 6, bsdf.f0);
    give3(w, at + 9, vec3(bsdf.f90, bsdf.dielectric_f0, bsdf.dielectric_f90));
    give3(w, at + 12, bsdf.multiple);
    give3(w, at + 15, bsdf.diffuse);
    give3(w, at + 18, bsdf.diffuse_transmission);
    give3(w, at + 21, bsdf.transmission);
    give3(w, at + 24, bsdf.transmission_multiple);
    give3(w, at + 27, vec3(bsdf.under, bsdf.coat, bsdf.coat_root));
    give3(w, at + 30, bsdf.coat_wo);
    give3(w, at + 33, bsdf.sheen_color);
    for (u32 lobe = 0; lobe < LOBES; ++lobe) give(w, at + 36 + lobe, bsdf.share[lobe]);
    give3(w, at + 42, bsdf.wo);
}

TESSERA_FN LayeredBsdf layered_from(const Words& w) {
    return make_layered(surface_from(w), upper3(w, 16));
}
TESSERA_FN void unit_layered(const SceneView&, const Words& w) {
    give_layered(w, 0, layered_from(w));
}

TESSERA_FN void unit_layered_evaluate(const SceneView&, const Words& w) {
    const BsdfValue value = layered_evaluate(layered_from(w), unit3(w, 19));
    give3(w, 0, value.value);
    give(w, 3, value.pdf);
}

TESSERA_FN void unit_layered_sample(const SceneView&, const Words& w) {
    const BsdfSample sample = layered_sample(layered_from(w), real(w, 19), real2(w, 20));
    give3(w, 0, sample.wi);
    give3(w, 3, sample.weight);
    give(w, 6, sample.pdf);
    w.out[7] = sample.valid;
}

// Four numbers of media for a nest, which is made of them by entering; then a surface's medium and
// its side.
TESSERA_FN void unit_media(const SceneView& scene, const Words& w) {
    give_none(w, 0, 4);
    if (scene.medium_count == 0) return;
    const u32 medium = w.in[4] % scene.medium_count;
    u32 media = 0;
    for (u32 at = 0; at < 4; ++at)
        media = cross_surface(scene, media, w.in[at] % scene.medium_count, true).behind;
    const Crossing crossing = cross_surface(scene, media, medium, (w.in[5] & 1u) != 0);
    w.out[0] = media;
    w.out[1] = crossing.behind;
    w.out[2] = crossing.hidden;
    w.out[3] = medium_around(crossing.behind);
}

// Film, rays, boxes, triangles.

TESSERA_FN void unit_film_fixed(const SceneView&, const Words& w) {
    const i64 sum = film_fixed(clamp_(real(w, 0), -FILM_VALUE_MAX, FILM_VALUE_MAX));
    w.out[0] = (u32)sum;
    w.out[1] = (u32)((u64)sum >> 32);
}

TESSERA_FN void unit_offset_origin(const SceneView&, const Words& w) {
    give3(w, 0, offset_ray_origin(real3(w, 0), unit3(w, 3)));
}

TESSERA_FN void unit_prepare_ray(const SceneView&, const Words& w) {
    const TraversalRay ray = prepare_ray(ray_from(w));
    for (u32 k = 0; k < 3; ++k) {
        give(w, k, ray.origin[k]);
        give(w, 3 + k, ray.reciprocal[k]);
        w.out[6 + k] = ray.near_side[k];
        w.out[9 + k] = ray.axis[k];
    }
    give3(w, 12, vec3(ray.shear[0], ray.shear[1], ray.scale));
}

TESSERA_FN void unit_box(const SceneView&, const Words& w) {
    const Vec3 a = real3(w, 6), b = real3(w, 9);
    const float bounds[2][3] = {{lesser_(a.x, b.x), lesser_(a.y, b.y), lesser_(a.z, b.z)},
                                {greater_(a.x, b.x), greater_(a.y, b.y), greater_(a.z, b.z)}};
    const BoxInterval interval = box_interval(prepare_ray(ray_from(w)), bounds);
    give(w, 0, interval.entry);
    give(w, 1, interval.exit);
}

TESSERA_FN void unit_node(const SceneView& scene, const Words& w) {
    if (scene.bvh_node_count == 0) return give_none(w, 0, 10);
    const CompressedNode node = w.hierarchy->nodes[w.in[6] % scene.bvh_node_count];
    const TraversalRay ray = prepare_ray(ray_from(w));
    // Half of the rays end exactly where they enter one of the boxes, or one float before.
    const u32 slot_of_end = w.in[7] & 7u;
    float entry = 0.0f;
    for (u32 axis = 0; axis < 3; ++axis) {
        const float plane = grid_plane(node, ray.near_side[axis], axis, slot_of_end);
        entry = greater_(entry, (plane - ray.origin[axis]) * ray.reciprocal[axis]);
    }
    const bool ends = (w.in[7] & 8u) != 0 && entry > 0.0f;
    const float end =
        ends ? float_from_bits(bits_from_float(entry) - (w.in[7] >> 4 & 1u)) : FAR_LIMIT;
    w.out[0] = compressed_children(ray, node, end);
    w.out[1] = permuted(w.out[0], w.in[6] & 7u);
    for (u32 slot = 0; slot < 8; ++slot)
        give(w, 2 + slot, grid_plane(node, slot & 1u, slot % 3u, slot));
}

// The first leaf under a node of the hierarchy, by a ray towards a point of its first triangle.
TESSERA_FN void unit_leaf(const SceneView& scene, const Words& w) {
    give_none(w, 0, 5);
    if (scene.bvh_node_count == 0) return;
    const CompressedNode node = w.hierarchy->nodes[w.in[5] % scene.bvh_node_count];
    if (node.leaf[0] == 0 && node.leaf[1] == 0) return;
    const LeafTriangle triangle = w.hierarchy->triangles[node.first_triangle];
    const Vec2 at = sample_triangle(real2(w, 3));
    Ray aimed;
    aimed.origin = real3(w, 0);
    const Vec3 first = vec3_from(triangle.v0);
    aimed.direction = fma3(vec3_from(triangle.v1) - first, at.x,
                           fma3(vec3_from(triangle.v2) - first, at.y, first)) -
                      aimed.origin;
    ClosestQuery query;
    query.coverage = unit_coverage(w, 5);
    query.best = {FAR_LIMIT, NONE, 0.0f, 0.0f};
    visit_triangle(scene, prepare_ray(aimed), triangle, query);
    give3(w, 0, vec3(query.best.t, query.best.u, query.best.v));
    w.out[3] = query.best.triangle;
    ShadowQuery shadow = {FAR_LIMIT, unit_width(w.in[5]), 0};
    visit_triangle(scene, prepare_ray(aimed), triangle, shadow);
    w.out[4] = shadow.optical_depth;
}

// Camera, textures, environment, lights.

TESSERA_FN void unit_camera_ray(const SceneView& scene, const Words& w) {
    give_ray(w, 0, camera_ray(scene.camera, real(w, 0), real(w, 1), real2(w, 2)));
}

TESSERA_FN void unit_camera_any(const SceneView& scene, const Words& w) {
    Camera camera = scene.camera;
    camera.half_width = real(w, 4);
    camera.half_height = real(w, 5);
    camera.lens_radius = abs_(real(w, 6));
    camera.focus_distance = max_(abs_(real(w, 7)), 1e-3f);
    camera.kind = w.in[8] & 1u;
    camera.shift_x = real(w, 9);
    camera.shift_y = real(w, 10);
    give_ray(w, 0, camera_ray(camera, real(w, 0), real(w, 1), real2(w, 2)));
    give(w, 7, camera_depth(camera, real3(w, 5)));
}

TESSERA_FN void unit_wrap(const SceneView&, const Words& w) {
    for (u32 mode = 0; mode < 3; ++mode) give(w, mode, wrap_unit(real(w, 0), mode));
    const u32 size = (w.in[2] & 0x3fffu) + 1u;
    w.out[3] = wrap_texel((i32)(w.in[1] % (size + 2u)) - 1, size, w.in[3] % 3u);
}

TESSERA_FN void unit_texture(const SceneView& scene, const Words& w) {
    if (scene.texture_count == 0) return give_none(w, 0, 4);
    const Vec4 value =
        sample_texture(scene, w.in[2] % scene.texture_count, real2(w, 0), unit_width(w.in[2]));
    give3(w, 0, rgb(value));
    give(w, 3, value.w);
}

TESSERA_FN void unit_environment(const SceneView& scene, const Words& w) {
    if (!environment_is_map(scene.environment)) return give_none(w, 0, 4);
    const EnvironmentValue value = environment_map_value(scene, unit3(w, 0), true);
    give3(w, 0, value.radiance);
    give(w, 3, value.pdf);
}

TESSERA_FN void unit_environment_sample(const SceneView& scene, const Words& w) {
    if (!environment_is_map(scene.environment)) return give_none(w, 0, 7);
    const EnvironmentSample sample = environment_sample_map(scene, bits2(w.in[0], w.in[1]));
    give3(w, 0, sample.direction);
    give3(w, 3, sample.radiance);
    give(w, 6, sample.pdf);
}

// Surfaces.

TESSERA_FN void unit_emission(const SceneView& scene, const Words& w) {
    if (scene.triangle_count == 0) return give_none(w, 0, 4);
    const SurfaceInput input = surface_input(scene, w);
    const Triangle& triangle = scene.triangles[input.id];
    const Corners corners = corners_of(scene, input.id, input.at.x, input.at.y, input.width);
    give3(w, 0, emitted_radiance(scene, scene.materials[triangle.material], corners));
    w.out[3] = emits_towards(triangle, real(w, 3));
}

TESSERA_FN void unit_alpha(const SceneView& scene, const Words& w) {
    if (scene.triangle_count == 0) return give_none(w, 0, 4);
    const u32 id = w.in[0] % scene.triangle_count;
    const Vec2 at = sample_triangle(real2(w, 2));
    const Hit hit = {1.0f, id, at.x, at.y};
    const float opacity = hit_opacity(scene, hit, unit_width(w.in[1]));
    give(w, 0, opacity);
    w.out[2] = optical_depth_of(opacity);
    give(w, 3, transmittance_of(w.out[2]));
    w.out[1] = alpha_accepts(make_sampler(w.in[1], w.in[1] >> 8), id, opacity);
}

TESSERA_FN void unit_surface(const SceneView& scene, const Words& w) {
    if (scene.triangle_count == 0) return give_none(w, 0, 14);
    const SurfaceInput input = surface_input(scene, w);
    const Triangle& triangle = scene.triangles[input.id];
    const Vec3 wo_world = unit3(w, 3);
    const Corners corners = corners_of(scene, input.id, input.at.x, input.at.y, input.width);
    const SurfacePoint point =
        surface_point(scene, triangle, scene.materials[triangle.material], corners,
                      normalize_or(triangle_cross(triangle), wo_world), wo_world);
    give3(w, 0, point.position);
    give3(w, 3, point.geometric);
    give3(w, 6, point.shading);
    give3(w, 9, point.base_color);
    give2(w, 12, vec2(point.metallic, point.roughness));
}

// One triangle: what the decisions are made of. Words: direction of the ray from the origin,
// corners (a padding).

TESSERA_FN TraversalRay ray_towards(const Words& w) {
    Ray ray;
    ray.origin = splat(0.25f);
    ray.direction = unit3(w, 0);
    ray.t_max = FAR_LIMIT;
    return prepare_ray(ray);
}

TESSERA_FN void unit_triangle_test(const SceneView&, const Words& w) {
    const TraversalRay ray = ray_towards(w);
    const float corners[9] = {real(w, 3), real(w, 4), real(w, 5),  real(w, 6), real(w, 7),
                              real(w, 8), real(w, 9), real(w, 10), real(w, 11)};
    const TriangleTest test =
        test_triangle(shear_of(ray), leaf_corner(ray, corners), leaf_corner(ray, corners + 3),
                      leaf_corner(ray, corners + 6));
    give3(w, 0, vec3(test.w0, test.w1, test.w2));
    give(w, 3, test.distance);
}

TESSERA_FN void unit_own_box(const SceneView&, const Words& w) {
    const BoxInterval own = own_box_interval(ray_towards(w), real3(w, 3), real3(w, 6), real3(w, 9),
                                             real(w, 12) * 1e-3f);
    give2(w, 0, vec2(own.entry, own.exit));
}
