// Closest hits of paths and optical depths of shadow rays, by Rule C: a hit is a function of the
// ray and the set of triangles, never of the hierarchy. Owns what is asked and what a hit is; a
// host walks by wide.h, a device by compressed.h.
//
// What a hit is. Triangle i is hit at t(i) if the triangle test (triangle.h) finds 0 < t <= t_max,
// and the ray passes the triangle's own box, padded on every side by the scene's constant
// `padding`, which it enters at e(i); then t(i) = max(t, e(i)). The closest hit is the least (t,
// id). Nothing else is asked, so brute force over all triangles defines the answer.
//
// Why any hierarchy finds it. The distance to a plane is (b - o) * r. Rounding is monotone: b <= b'
// gives b - o <= b' - o after rounding, and a product with r of known sign keeps (or turns) the
// order after rounding. The planes that a ray meets first and last are chosen by the sign of r
// alone. So if a node's box contains a triangle's padded box, as floats compare, then with the same
// formula, for every axis and so for their maximum and minimum,
//
//     entry(node) <= e(i)   and   x(i) <= exit(node)          exactly, not up to an error.
//
// If i is a hit that may still win, e(i) <= x(i), e(i) <= t(i) by the clamp, and t(i) <= best.
// Hence entry(node) <= exit(node) and entry(node) <= best: no node above i is culled as long as
// culling is by `>`, never by `>=`. The clamp is what makes the second inequality hold: an
// unclamped t may lie before its own box by rounding, and then the order in which boxes are visited
// would decide. Equal distances go to the lesser id; a search that stops at the first of them would
// depend on the order too.
//
// What the padding is for. It plays no part in the argument above. It keeps the box test from
// rejecting what the triangle test accepts: rounding moves a slab distance by a few units in the
// last place of the coordinates, so that `padding` is a few such units of the largest coordinate of
// any corner or origin (scenes/src/bvh). Every host and every hierarchy uses the same one.
//
// Consequences. Builders, widths, refits, quantised boxes and other machines' traversals may differ
// freely, as long as boxes contain the padded boxes of their triangles and the tests of single
// triangles are these. Spatial splits are out: the box of a clipped triangle does not contain the
// triangle's whole padded box, so the two inequalities fail.
//
// Alpha is decided per (ray, triangle), never per visit, so that it changes the set of triangles
// and not the order. What dims a shadow ray is added up in integers, and each triangle stands in a
// hierarchy once.
#pragma once

#include "geometry/triangle.h"
#include "material/pane.h"

// What a walk asks for: the closest hit of a path's ray. sampler_of and cone_of_ray give of its
// coverage what alpha is decided by.
template <class C>
struct ClosestQueryOf {
    C coverage;  // the same ray has to bring the same
    Hit best;    // its t: the ray's end until something is hit
};
typedef ClosestQueryOf<Coverage> ClosestQuery;

// Or the optical depth of all that a shadow ray meets before t_max, OPTICAL_DEPTH_OPAQUE as soon as
// it has met as much.
struct ShadowQuery {
    float t_max;
    float width;  // of its cone all along
    u32 optical_depth;
};

// The same for each channel, in a scene with panes.
struct PaneQuery {
    float t_max;
    float width;
    Vec3 direction;  // of the ray
    OpticalDepths optical_depths;
};

// How far a walk still has to look.
template <class C>
TESSERA_FN float reach_of(const ClosestQueryOf<C>& query) {
    return query.best.t;
}
TESSERA_FN float reach_of(const ShadowQuery& query) { return query.t_max; }
TESSERA_FN float reach_of(const PaneQuery& query) { return query.t_max; }

// Whether nothing more can change the answer.
template <class C>
TESSERA_FN bool is_answered(const ClosestQueryOf<C>&) {
    return false;
}
TESSERA_FN bool is_answered(const ShadowQuery& query) {
    return query.optical_depth == OPTICAL_DEPTH_OPAQUE;
}
TESSERA_FN bool is_answered(const PaneQuery& query) { return is_opaque(query.optical_depths); }

// Takes note of a hit within reach.
template <class C>
TESSERA_FN void take_hit(const SceneView& scene, const Hit& hit, bool has_alpha,
                         ClosestQueryOf<C>& query) {
    if (hit.t == query.best.t && hit.triangle > query.best.triangle) return;
    if (has_alpha) {
        const float opacity = opacity_along(scene, hit, query.coverage);
        if (!alpha_accepts(sampler_of(query.coverage), hit.triangle, opacity)) return;
    }
    query.best = hit;
}

TESSERA_FN void take_hit(const SceneView& scene, const Hit& hit, bool has_alpha,
                         ShadowQuery& query) {
    const u32 more =
        has_alpha ? optical_depth_of(hit_opacity(scene, hit, query.width)) : OPTICAL_DEPTH_OPAQUE;
    query.optical_depth = min_u32(query.optical_depth + more, OPTICAL_DEPTH_OPAQUE);
}

TESSERA_FN void take_hit(const SceneView& scene, const Hit& hit, bool may_pass, PaneQuery& query) {
    const Vec3 opacity =
        may_pass ? hit_opacities(scene, hit, query.direction, query.width) : splat(1.0f);
    add_depths(query.optical_depths, opacity);
}

// Asks for the closest hit of a ray.
template <class C>
TESSERA_FN void ask_closest(const Ray& ray, const C& coverage, ClosestQueryOf<C>& query) {
    query.coverage = coverage;
    query.best.t = lesser_(ray.t_max, DISTANCE_MAX);
    query.best.triangle = NONE;
}

// Asks for the optical depth in the way of a ray whose cone is `width` metres wide.
TESSERA_FN void ask_shadow(const Ray& ray, float width, ShadowQuery& query) {
    query.width = width;
    query.t_max = lesser_(ray.t_max, DISTANCE_MAX);
    query.optical_depth = 0;
}

// The same for each channel.
TESSERA_FN void ask_shadow(const Ray& ray, float width, PaneQuery& query) {
    query.width = width;
    query.direction = ray.direction;
    query.t_max = lesser_(ray.t_max, DISTANCE_MAX);
    query.optical_depths = OpticalDepths();
}

// The closest hit of the ray, by (t, id). `hit` means something only where it returns true.
template <class Hierarchy, class C>
TESSERA_FN bool intersect_closest(const SceneView& scene, const Hierarchy& hierarchy,
                                  const Ray& ray, const C& coverage, Hit* hit) {
    ClosestQueryOf<C> query;
    ask_closest(ray, coverage, query);
    traverse(scene, hierarchy, ray, query);
    *hit = query.best;
    return query.best.triangle != NONE;
}

// The optical depth of all that stands in the way of a ray whose cone is `width` metres wide:
// OPTICAL_DEPTH_OPAQUE where nothing goes through.
template <class Hierarchy>
TESSERA_FN u32 optical_depth_along(const SceneView& scene, const Hierarchy& hierarchy,
                                   const Ray& ray, float width) {
    ShadowQuery query;
    ask_shadow(ray, width, query);
    traverse(scene, hierarchy, ray, query);
    return query.optical_depth;
}

// The same for each channel.
template <class Hierarchy>
TESSERA_FN OpticalDepths optical_depths_along(const SceneView& scene, const Hierarchy& hierarchy,
                                              const Ray& ray, float width) {
    PaneQuery query;
    ask_shadow(ray, width, query);
    traverse(scene, hierarchy, ray, query);
    return query.optical_depths;
}
