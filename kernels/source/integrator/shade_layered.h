// Shade, for what is more than a plain material in air: surfaces with extensions, and everything
// that a path meets inside of a medium. The stages are those of stages.h; light may leave a surface
// on both of its sides.
#pragma once

#include "integrator/stages.h"
#include "material/layered_surface.h"

const u32 DIMENSION_DISPERSION = 1u << 20;  // and one for each scattering; beyond all of sampler.h
const float PDF_PASSED_THROUGH =
    1e30f;  // per steradian; no light sample competes with such a ray

// Whether a hit is shaded here.
TESSERA_FN bool takes_layers(const SceneView& scene, u32 triangle, u32 media) {
    return scene.layers != 0 && (media != 0 || material_at(scene, triangle).layers != 0);
}

// A scattering's surface and what is on its two sides.
struct LayeredHit {
    SurfacePoint point;
    Basis basis;
    u32 media_here;    // where the path comes from
    u32 media_behind;  // on the other side
};

// The only channel that a path carries light in; NONE where there are several.
TESSERA_FN u32 only_channel(Vec3 throughput) {
    const bool red = throughput.x > 0.0f, green = throughput.y > 0.0f, blue = throughput.z > 0.0f;
    if (red && !green && !blue) return 0;
    if (!red && green && !blue) return 1;
    return !red && !green && blue ? 2 : NONE;
}

// Of a path that splits into colours one goes on, three times as bright. Returns its number.
TESSERA_FN u32 choose_channel(PathState& state) {
    const u32 only = only_channel(state.throughput);
    if (only != NONE) return only;
    const u32 bits = draw_bits(state.sampler, DIMENSION_DISPERSION + state.depth).x;
    const u32 channel = (u32)(multiply_wide(bits, 3) >> 32);
    state.throughput = vec3(channel == 0 ? 3.0f * state.throughput.x : 0.0f,
                            channel == 1 ? 3.0f * state.throughput.y : 0.0f,
                            channel == 2 ? 3.0f * state.throughput.z : 0.0f);
    return channel;
}

// A medium's index of refraction for one channel, and for green where there are several.
TESSERA_FN float medium_ior(const Medium& medium, u32 channel) {
    if (channel == NONE || !(medium.half_spread > 0.0f)) return medium.ior;
    return max_(fma_((float)(i32)channel - 1.0f, medium.half_spread, medium.ior), 1.0f);
}

TESSERA_FN float ior_around(const SceneView& scene, u32 media, const PathState& state) {
    return medium_ior(scene.media[medium_around(media)], only_channel(state.throughput));
}

// The surface's index of refraction for this path.
TESSERA_FN float layered_ior(const SceneView& scene, const Material& material, const Layers& layers,
                             PathState& state) {
    const Medium& inside = scene.media[layers.medium];
    const bool splits = inside.half_spread > 0.0f && layers.transmission > 0.0f;
    return splits ? medium_ior(inside, choose_channel(state)) : material.ior;
}

// Goes on as if nothing were here. It counts as a scattering, so that paths stay bounded. Light
// samples end at the surface, hidden or not, so what the ray meets next is its own. `away`: the
// unit normal of the side that the ray goes to.
TESSERA_FN void pass_hidden(PathState& state, Vec3 position, Vec3 away, u32 behind) {
    state.depth += 1;
    state.ray.origin = offset_ray_origin(position, away);
    state.ray.t_max = FAR_LIMIT;
    state.pdf = PDF_PASSED_THROUGH;
    state.cosine = 0.0f;
    state.media = behind;
}

// Goes straight through a pane, as if the ray went on: what chose its direction stays what it was,
// so that a light behind is weighted as one in the open. False where the path ends.
TESSERA_FN bool pass_pane(PathState& state, const LayeredHit& hit, Vec3 weight) {
    state.throughput = state.throughput * weight;
    state.depth += 1;
    state.passes = min_u32(state.passes + 1, PASSES_MAX);
    state.ray.origin = offset_ray_origin(hit.point.position, -hit.point.geometric);
    state.ray.t_max = FAR_LIMIT;
    return !is_black(state.throughput);
}

// A light that the surface may see.
struct LayeredLight {
    LightSample light;
    bool wanted;
    bool behind;  // it is on the other side of the surface
    Vec3 wi;      // towards it, in the surface's frame; 0 where it is not wanted
};

TESSERA_FN LayeredLight layered_light(const SceneView& scene, PathState& state,
                                      const LayeredHit& hit, u32 choice) {
    LayeredLight seen;
    seen.wanted = seen.behind = false;
    seen.wi = splat(0.0f);
    if (scene.light_count == 0) return seen;
    seen.light = draw_light(scene, state, hit.point, choice).light;
    if (!seen.light.valid) return seen;
    const float side = dot(seen.light.direction, hit.point.geometric);
    const Vec3 local = local_from_world(hit.basis, seen.light.direction);
    if (!(side > 0.0f ? local.z > 0.0f : side < 0.0f && local.z < 0.0f)) return seen;
    seen.wanted = true;
    seen.behind = side < 0.0f;
    seen.wi = local;
    return seen;
}

TESSERA_FN ShadowRay layered_shadow(const SceneView& scene, const UnitParams& unit,
                                    const PathState& state, const LayeredHit& hit,
                                    const LayeredLight& seen, BsdfValue value) {
    ShadowRay shadow;
    shadow.wanted = false;
    if (!seen.wanted) return shadow;
    const u32 media = seen.behind ? hit.media_behind : hit.media_here;
    const Vec3 arriving =
        seen.light.radiance * medium_transmittance(scene, media, seen.light.distance);
    const Vec3 away = seen.behind ? -hit.point.geometric : hit.point.geometric;
    make_shadow_ray<float>(unit, state, seen.light, arriving, value,
                           offset_ray_origin(hit.point.position, away), true, shadow);
    return shadow;
}

TESSERA_FN bool layered_scatter(PathState& state, const LayeredHit& hit, const BsdfSample& sample) {
    if (!sample.valid) return false;
    const Vec3 direction = world_from_local(hit.basis, sample.wi);
    const float side = dot(direction, hit.point.geometric);
    const bool reflected = sample.wi.z > 0.0f;
    if (!(reflected ? side > 0.0f : side < 0.0f)) return false;
    const Vec3 away = reflected ? hit.point.geometric : -hit.point.geometric;
    if (!scatter_to<float>(state, sample, direction, hit.point.position, away, true)) return false;
    state.cosine = max_(sample.wi.z, 0.0f);
    state.media = reflected ? hit.media_here : hit.media_behind;
    return true;
}

// layered_evaluate of two directions. It is long, and a device has no use for a second copy.
struct TwoValues {
    BsdfValue first;
    BsdfValue second;
};

TESSERA_FN TwoValues evaluate_two(const LayeredBsdf& bsdf, Vec3 first, Vec3 second) {
    TwoValues values;
    values.first.value = splat(0.0f);
    values.first.pdf = 0.0f;
    TESSERA_ROLLED
    for (u32 at = 0; at < 2; ++at) {
        if (at == 1) values.first = values.second;
        values.second = layered_evaluate(bsdf, at == 0 ? first : second);
    }
    return values;
}

// The surface as light sees it, at a point whose two sides are known. `front` says from which of
// them it is met.
TESSERA_FN LayeredBsdf layered_bsdf_at(const SceneView& scene, const Material& material,
                                       const Corners& corners, Vec3 wo_world, bool front,
                                       PathState& state, LayeredHit& hit) {
    const Layers& layers = scene.layers[material.layers];
    const LayersTexels texels = layers_texels(scene, layers, corners);
    const AnisotropyFrame frame = anisotropy_frame_of(layers, texels, corners, hit.point.shading);
    hit.basis = frame.basis;
    const float ior = layered_ior(scene, material, layers, state);
    const bool leaves = layers.medium != 0 && !front;
    float ratio = leaves ? ior_around(scene, hit.media_behind, state) / ior
                         : ior / ior_around(scene, hit.media_here, state);
    if (may_be_pane(material)) ratio = ior;  // as straight_share
    Vec3 coat_normal = vec3(0.0f, 0.0f, 1.0f);
    if (layers.clearcoat > 0.0f)
        coat_normal =
            local_from_world(hit.basis, coat_normal_at(scene, layers, corners, hit.point.geometric,
                                                       front ? 1.0f : -1.0f, wo_world));
    LayeredSurface surface =
        layered_surface(hit.point, layers, texels, ratio, frame.strength, coat_normal);
    surface.is_pane = is_pane_here(material, surface);
    return make_layered(surface, local_from_world(hit.basis, wo_world));
}

// Whether a path that scatters no more may still go straight through the surface.
TESSERA_FN bool may_pass(const SurfaceHit& surface, const PathState& state) {
    return may_be_pane(*surface.material) && state.passes < PASSES_MAX;
}

// Does what shade of stages.h does, for a hit that takes_layers.
template <class First>
TESSERA_RARE_FN bool shade_layered(const SceneView& scene, const UnitParams& unit, const Hit& met,
                                   PathState& state, ShadowRay& shadow, First& first) {
    shadow.wanted = false;
    const Triangle& triangle = triangle_at(scene, met.triangle);
    const SurfaceHit surface = surface_hit(scene, unit, met, triangle, state);
    const Vec3 geometric = surface.geometric;
    const Material& material = *surface.material;
    const float facing = dot(geometric, surface.wo_world);
    state.throughput = state.throughput * medium_transmittance(scene, state.media, met.t);
    shade_emission(scene, unit, state, surface, facing);
    if (ends_at(unit, state, surface) && !may_pass(surface, state)) return false;

    const bool front = !(facing < 0.0f);
    const Crossing crossing =
        cross_surface(scene, state.media, scene.layers[material.layers].medium, front);
    if (crossing.hidden) {
        pass_hidden(state, triangle_point(triangle, met.u, met.v),
                    front ? -geometric : geometric, crossing.behind);
        return true;
    }
    LayeredHit hit;
    hit.media_here = state.media;
    hit.media_behind = crossing.behind;
    const bool scatters = shade_point(scene, unit, surface, state, first, hit.point);
    if (!scatters && !may_pass(surface, state)) return false;

    const LayeredBsdf bsdf =
        layered_bsdf_at(scene, material, surface.corners, surface.wo_world, front, state, hit);
    // After its last scattering a path only looks for what shines, through panes too.
    if (!scatters) return bsdf.is_pane && pass_pane(state, hit, pane_share(bsdf));
    const PackedVantage vantage = state.vantage;
    const Bits2 choice = draw_bits(state.sampler, scatter_dimension(state.depth, SCATTER_CHOICE));
    const LayeredLight light = layered_light(scene, state, hit, choice.x);
    const Vec2 random = draw(state.sampler, scatter_dimension(state.depth, SCATTER_DIRECTION));
    const LobeDirection chosen = layered_direction(bsdf, unit_from_bits(choice.y), random);
    const TwoValues values = evaluate_two(bsdf, light.wi, chosen.wi);
    shadow = layered_shadow(scene, unit, state, hit, light, values.first);
    if (bsdf.is_pane && chosen.lobe == LOBE_TRANSMISSION) {
        state.vantage = vantage;
        return pass_pane(state, hit, pane_share(bsdf) * (1.0f / bsdf.share[LOBE_TRANSMISSION]));
    }
    return layered_scatter(state, hit, layered_sample_of(chosen, values.second));
}

// Shade, by whichever way the hit takes.
template <class First>
TESSERA_FN bool shade_any(const SceneView& scene, const UnitParams& unit, const Hit& hit,
                          PathState& state, ShadowRay& shadow, First& first) {
    if (takes_layers(scene, hit.triangle, state.media))
        return shade_layered(scene, unit, hit, state, shadow, first);
    return shade(scene, unit, hit, state, shadow, first);
}

// The origin of a shadow ray that leaves its hit on the side that its direction is on.
TESSERA_FN Vec3 shadow_origin(const SceneView& scene, u32 which, float u, float v, Vec3 direction) {
    const Triangle& triangle = triangle_at(scene, which);
    const Vec3 geometric = normalize_or(triangle_cross(triangle), direction);
    const Vec3 side = dot(direction, geometric) < 0.0f ? -geometric : geometric;
    return offset_ray_origin(triangle_point(triangle, u, v), side);
}
