// Cameras: from a point of the picture and a point of the lens to a ray.
#pragma once

#include "layout.h"
#include "math/ray.h"
#include "sampling/shapes.h"

const float FAR_LIMIT = 1e30f;  // farthest distance that a ray is asked about

template <class F = float>
TESSERA_FN Vector3<F> camera_axis(const Camera& camera, u32 column) {
    return vec3<F>(camera.world_from_camera[column], camera.world_from_camera[4 + column],
                camera.world_from_camera[8 + column]);
}

// World-space direction (not a point) from camera space.
template <class F>
TESSERA_FN Vector3<F> world_from_camera(const Camera& camera, Vector3<F> local) {
    return fma3(camera_axis<F>(camera, 0), local.x,
                fma3(camera_axis<F>(camera, 1), local.y, camera_axis<F>(camera, 2) * local.z));
}

// Uniform on the lens, as part of the unit disk.
template <class F>
TESSERA_FN Vector2<F> sample_lens(const Camera& camera, Vector2<F> random) {
    if (camera.blades == 0) return sample_disk(random);
    Polygon polygon;
    polygon.corners = camera.blades;
    polygon.turn = camera.blade_turn;
    polygon.apothem = camera.blade_apothem;
    polygon.half_side = camera.blade_half_side;
    return sample_polygon(polygon, random);
}

// The ray through (x, y) of the picture, each in [-1, 1] with +x right and +y up, and through
// `lens` of the unit disk. It starts on the near plane and ends on the far one; its direction is a
// unit vector.
template <class F>
TESSERA_FN RayOf<F> camera_ray(const Camera& camera, F x, F y, Vector2<F> lens) {
    const bool perspective = camera.kind == CAMERA_PERSPECTIVE;
    // x and y are never -0, so that a shift of 0 keeps their bits.
    const F across = (x + camera.shift_x) * camera.half_width;
    const F up = (y + camera.shift_y) * camera.half_height;
    Vector3<F> start = vec3(across, up, 0.0f);
    Vector3<F> slope = vec3<F>(0.0f, 0.0f, -1.0f);  // per metre along the view axis
    if (perspective) {
        start = vec3(lens.x * camera.lens_radius, lens.y * camera.lens_radius, 0.0f);
        slope = vec3(across, up, -1.0f);
        if (camera.lens_radius > 0.0f) {
            const float inverse_focus = 1.0f / camera.focus_distance;
            slope.x = fma_(start.x, -inverse_focus, slope.x);
            slope.y = fma_(start.y, -inverse_focus, slope.y);
        }
    }
    const F length = sqrt_(dot(slope, slope));
    const Vector3<F> near_point = fma3(slope, camera.near_clip, start);
    RayOf<F> ray;
    ray.origin = world_from_camera(camera, near_point) + camera_axis<F>(camera, 3);
    ray.direction = world_from_camera(camera, slope * (1.0f / length));
    ray.t_max = min_(camera.far_clip - camera.near_clip, FAR_LIMIT) * length;
    return ray;
}

// Width of a camera ray's cone, in pixels. Samples of a pixel lie apart, so that a cone as wide as
// the pixel would blur twice.
const float CONE_OF_PIXEL = 0.5f;

TESSERA_FN Cone camera_cone(const Camera& camera, u32 frame_height) {
    const float width = CONE_OF_PIXEL * 2.0f * camera.half_height / (float)frame_height;
    return camera.kind == CAMERA_PERSPECTIVE ? cone(0.0f, width) : cone(width, 0.0f);
}

// Distance of a world-space point along the camera's view axis.
TESSERA_FN float camera_depth(const Camera& camera, Vec3 point) {
    return -dot(point - camera_axis(camera, 3), camera_axis(camera, 2));
}
