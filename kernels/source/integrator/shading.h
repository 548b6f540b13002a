// What the plain and the layered way of shading share: a hit's surface, emission, one light sample,
// the shadow ray, Russian roulette and the next ray. Knows no BSDF.
#pragma once

#include "light/light.h"
#include "integrator/path.h"
#include "material/material.h"

// Where paths may be ended by chance (Arvo and Kirk 1990, "Particle Transport and Image
// Synthesis"): from the second scattering on, with this many times the share of light that they
// still carry, as long as the pdf of the direction is at most ROULETTE_NARROW per steradian.
// What comes from a narrow lobe is left to the ray by light samples.
const float ROULETTE_SCALE = 4.0f;
const float ROULETTE_LEAST = 0.05f;    // the least chance that they go on with
const float ROULETTE_NARROW = 1.0f;

// Light with its largest component at most the job's bound, where it has been scattered more than
// once. There is a bound.
template <class F>
TESSERA_FN Vector3<F> clamped_light(const UnitParams& unit, const Vector3<F>& light,
                                    MaskOf<F> is_indirect) {
    const F most = max_component(light);
    return light * select(is_indirect && most > unit.clamp, unit.clamp / most, 1.0f);
}

// Adds what a path has met that shines, times the weight of having met it this way.
template <class F>
TESSERA_FN void add_emission(const UnitParams& unit, PathStateOf<F>& state, const Vector3<F>& light,
                             Same<F> weight) {
    if (unit.clamp > 0.0f)
        state.radiance =
            state.radiance + clamped_light<F>(unit, light * weight, !(scatterings_of(state) <= 1u));
    else
        state.radiance = fma3(light, weight, state.radiance);
}

// A hit's surface, as far as it is known before its material is looked up.
struct SurfaceHit {
    const Triangle* triangle;
    const Material* material;
    Corners corners;
    Vec3 geometric;  // unit normal of the front side, in the world
    Vec3 wo_world;   // back along the ray
    float distance;
};

// Finds the surface of a hit of `triangle`, and widens the path's cone by the way to it. The
// triangle has to outlive the result: an instance's is made where it is asked for.
TESSERA_FN SurfaceHit surface_hit(const SceneView& scene, const UnitParams& unit, const Hit& hit,
                                  const Triangle& triangle, PathState& state) {
    SurfaceHit surface;
    surface.triangle = &triangle;
    surface.material = &scene.materials[triangle.material];
    state.width = cone_width_at(cone_of(scene, unit, state), hit.t);
    surface.corners = corners_of(scene, hit.triangle, hit.u, hit.v, state.width);
    surface.geometric = normalize_or(triangle_cross(triangle), -state.ray.direction);
    surface.wo_world = -state.ray.direction;
    surface.distance = hit.t;
    return surface;
}

// Square of the way from where the last scattering chose a light to the surface, straight through
// all panes.
TESSERA_FN float squared_way(const SceneView& scene, const PathState& state, float distance) {
    if (scene.pane_count == 0) return distance * distance;
    const Vec3 way =
        fma3(state.ray.direction, distance, state.ray.origin) - state.vantage.point;
    return dot(way, way);
}

// Adds what the surface itself emits towards the path. `facing`: cosine of the angle between the
// front side's normal and the path.
TESSERA_SMALL_FN void shade_emission(const SceneView& scene, const UnitParams& unit,
                                     PathState& state, const SurfaceHit& surface, float facing) {
    const Triangle& triangle = *surface.triangle;
    const Material& material = *surface.material;
    if (is_black(vec3_from(material.emission)) || !emits_towards(triangle, facing)) return;
    float weight = 1.0f;
    if (state.pdf > 0.0f && triangle.light != NONE) {
        const float picked = light_probability(scene, vantage_of(state.vantage), triangle.light);
        const float pdf =
            triangle_pdf(scene.lights[triangle.light], picked,
                         squared_way(scene, state, surface.distance), abs_(facing));
        weight = mis_weight(state.pdf, pdf);
    }
    add_emission(unit, state,
                 state.throughput * emitted_radiance(scene, material, surface.corners), weight);
}

TESSERA_FN bool is_unlit(const SurfaceHit& surface) {
    return (surface.material->flags & MATERIAL_UNLIT) != 0;
}

// Whether the path ends at a surface of which only the emission counts.
TESSERA_FN bool ends_at(const UnitParams& unit, const PathState& state, const SurfaceHit& surface) {
    return (is_unlit(surface) || scatterings_of(state) >= unit.depth) && state.pdf > 0.0f;
}

// How a path that is kept whole takes what its first surface says; arrays of paths have their own
// way.
TESSERA_FN void keep_first(FirstHit& first, const FirstHit& seen) { first = seen; }

TESSERA_FN void keep_missed(FirstHit& first, float share) { first.missed = share; }

// Takes note of a path that left the scene without having been scattered, where coverage is asked
// for. A pane that was passed by chance stands for what it lets through.
template <class First>
TESSERA_FN void keep_miss(const UnitParams& unit, const PathState& state, First& first) {
    if ((unit.aovs & AOV_COVERAGE) == 0 || state.pdf > 0.0f) return;
    keep_missed(first, mean_component(state.throughput));
}

TESSERA_FN FirstHit first_of(const SceneView& scene, const SurfacePoint& point) {
    FirstHit seen;
    seen.albedo = point.base_color;
    seen.normal = point.shading;
    seen.position = point.position;
    seen.depth = camera_depth(scene.camera, point.position);
    seen.missed = 0.0f;
    return seen;
}

// Finds the point that is to scatter. False where the path ends there. At depth 0 `first` is given
// what AOVs want to know, by keep_first.
template <class First>
TESSERA_FN bool shade_point(const SceneView& scene, const UnitParams& unit,
                            const SurfaceHit& surface, PathState& state, First& first,
                            SurfacePoint& point) {
    point = surface_point(scene, *surface.triangle, *surface.material, surface.corners,
                          surface.geometric, surface.wo_world);
    if (state.depth == 0 && unit.aovs != 0) keep_first(first, first_of(scene, point));
    if (is_unlit(surface))
        state.radiance = fma3(state.throughput, point.base_color, state.radiance);
    return !is_unlit(surface) && scatterings_of(state) < unit.depth;
}

// A light sample, and where its shadow ray starts on the side of the geometric normal.
template <class F>
struct LightDrawOf {
    Vector3<F> origin;
    LightSampleOf<F> light;
};
typedef LightDrawOf<float> LightDraw;

// Samples one light for a point. The scene has lights.
template <class F>
TESSERA_FN LightDrawOf<F> draw_light(const SceneView& scene, PathStateOf<F>& state,
                                     const SurfacePointOf<F>& point, Same<WordOf<F>> choice) {
    LightRandomOf<WordOf<F>> random;
    random.choice = choice;
    random.place = draw_bits(state.sampler, scatter_dimension(state.depth, SCATTER_LIGHT));
    LightDrawOf<F> drawn;
    drawn.origin = offset_ray_origin(point.position, point.geometric);
    state.vantage = pack_vantage(drawn.origin, point.shading);
    drawn.light = sample_light(scene, state.vantage, point.shading, random);
    return drawn;
}

// The shadow ray of a light sample, which is wanted where it brings light. `arriving`: the light's
// radiance as it gets to the surface; `scattered`: value and pdf of the BSDF towards the light. It
// fills its caller's variable: returned by value, tessera_shade spills registers on sm_120.
template <class F>
TESSERA_FN void make_shadow_ray(const UnitParams& unit, const PathStateOf<F>& state,
                                const LightSampleOf<F>& light, const Vector3<F>& arriving,
                                const BsdfValueOf<F>& scattered, const Vector3<F>& origin,
                                MaskOf<F> seen, ShadowRayOf<F>& shadow) {
    const F weight = select(light.delta, 1.0f, mis_weight(light.pdf, scattered.pdf));
    shadow.radiance = state.throughput * scattered.value * arriving * (weight / light.pdf);
    if (unit.clamp > 0.0f)
        shadow.radiance = clamped_light<F>(unit, shadow.radiance, !(scatterings_of(state) == 0u));
    shadow.wanted = seen && !is_black(shadow.radiance);
    shadow.ray.origin = origin;
    shadow.ray.direction = light.direction;
    shadow.ray.t_max = light.distance * 0x1.fff8p-1f;  // short of the light itself
}

// Roulette, after a scattering: false where the path ends, with what is left of it to those that go
// on. `pdf`: of the direction that it goes on in.
template <class F>
TESSERA_FN MaskOf<F> survives(PathStateOf<F>& state, Same<F> pdf) {
    const F chance =
        clamp_<F>(ROULETTE_SCALE * max_component(state.throughput), ROULETTE_LEAST, 1.0f);
    const auto certain = state.depth <= 1u || pdf > ROULETTE_NARROW || chance == 1.0f;
    if (!any(!certain)) return certain;
    const auto bits =
        draw_bits(state.sampler, scatter_dimension(state.depth - 1u, SCATTER_ROULETTE));
    state.throughput = select(certain, state.throughput, state.throughput * (1.0f / chance));
    return certain || unit_from_bits(bits.x) < chance;
}

// The next ray, in the direction of a sample of the BSDF. False where the path ends. `away`: the
// unit normal of the side that the ray leaves on; `leaves`: whether the direction is on that side.
template <class F>
TESSERA_FN MaskOf<F> scatter_to(PathStateOf<F>& state, const BsdfSampleOf<F>& sample,
                                const Vector3<F>& direction, const Vector3<F>& position,
                                const Vector3<F>& away, MaskOf<F> leaves) {
    state.throughput = state.throughput * sample.weight;
    state.depth += 1u;
    const auto goes_on = leaves && survives(state, sample.pdf);
    state.ray.origin = offset_ray_origin(position, away);
    state.ray.direction = direction;
    state.ray.t_max = FAR_LIMIT;
    state.pdf = sample.pdf;
    return goes_on && !is_black(state.throughput);
}
