// Texture look-up: wrap, nearest or bilinear, decode. Owns no idea of what a texture means.
#pragma once

#include "layout.h"
#include "srgb_table.h"
#include "vector.h"

struct Vec4 {
    float x, y, z, w;
};

TESSERA_FN Vec4 vec4(float x, float y, float z, float w) {
    Vec4 result;
    result.x = x;
    result.y = y;
    result.z = z;
    result.w = w;
    return result;
}

TESSERA_FN Vec4 lerp4(Vec4 a, Vec4 b, float t) {
    return vec4(lerp_(a.x, b.x, t), lerp_(a.y, b.y, t), lerp_(a.z, b.z, t), lerp_(a.w, b.w, t));
}

TESSERA_FN Vec3 rgb(Vec4 a) { return vec3(a.x, a.y, a.z); }

// Coordinate folded into [0, 1] by a wrap mode.
TESSERA_FN float wrap_unit(float coordinate, u32 mode) {
    if (mode == WRAP_CLAMP_TO_EDGE) return saturate_(coordinate);
    if (mode == WRAP_REPEAT) return coordinate - (float)floor_to_int(coordinate);
    const float half = coordinate * 0.5f;
    const float folded = 2.0f * (half - (float)floor_to_int(half));
    return folded > 1.0f ? 2.0f - folded : folded;
}

// A neighbour just outside 0..size-1 brought back: the other end where the texture repeats, else the edge.
TESSERA_FN u32 wrap_texel(i32 index, u32 size, u32 mode) {
    const i32 last = (i32)size - 1;
    const i32 below = mode == WRAP_REPEAT ? last : 0;
    const i32 above = mode == WRAP_REPEAT ? 0 : last;
    return (u32)(index < 0 ? below : index > last ? above : index);
}

TESSERA_FN Vec4 decode_texel(const u8* texels, const Texture& texture, u32 x, u32 y) {
    const u64 index = (u64)y * texture.width + x;
    if (texture.format == TEXEL_RGBA16_LINEAR) {
        const u8* at = texels + texture.offset + index * 8;
        const u32 red_green = load_u32(at);
        const u32 blue_alpha = load_u32(at + 4);
        const float scale = 1.0f / 65535.0f;
        return vec4((float)(i32)(red_green & 0xffffu) * scale, (float)(i32)(red_green >> 16) * scale,
                    (float)(i32)(blue_alpha & 0xffffu) * scale, (float)(i32)(blue_alpha >> 16) * scale);
    }
    const u32 texel = load_u32(texels + texture.offset + index * 4);
    const i32 red = (i32)(texel & 0xffu), green = (i32)(texel >> 8 & 0xffu), blue = (i32)(texel >> 16 & 0xffu);
    const float scale = 1.0f / 255.0f;
    const float alpha = (float)(i32)(texel >> 24) * scale;
    if (texture.format == TEXEL_RGBA8_SRGB)
        return vec4(LINEAR_FROM_SRGB[red], LINEAR_FROM_SRGB[green], LINEAR_FROM_SRGB[blue], alpha);
    return vec4((float)red * scale, (float)green * scale, (float)blue * scale, alpha);
}

// The texture's value at (u, v); texel centres lie at half-integers.
TESSERA_FN Vec4 sample_texture(const SceneView& scene, u32 which, Vec2 uv) {
    const Texture texture = scene.textures[which];
    const float x = wrap_unit(uv.x, texture.wrap_u) * (float)texture.width;
    const float y = wrap_unit(uv.y, texture.wrap_v) * (float)texture.height;
    if (texture.bilinear == 0) {
        const u32 column = wrap_texel(floor_to_int(x), texture.width, WRAP_CLAMP_TO_EDGE);
        const u32 row = wrap_texel(floor_to_int(y), texture.height, WRAP_CLAMP_TO_EDGE);
        return decode_texel(scene.texels, texture, column, row);
    }
    const i32 left = floor_to_int(x - 0.5f);
    const i32 top = floor_to_int(y - 0.5f);
    const u32 x0 = wrap_texel(left, texture.width, texture.wrap_u);
    const u32 x1 = wrap_texel(left + 1, texture.width, texture.wrap_u);
    const u32 y0 = wrap_texel(top, texture.height, texture.wrap_v);
    const u32 y1 = wrap_texel(top + 1, texture.height, texture.wrap_v);
    const float across = x - 0.5f - (float)left;
    const float down = y - 0.5f - (float)top;
    const Vec4 upper = lerp4(decode_texel(scene.texels, texture, x0, y0), decode_texel(scene.texels, texture, x1, y0), across);
    const Vec4 lower = lerp4(decode_texel(scene.texels, texture, x0, y1), decode_texel(scene.texels, texture, x1, y1), across);
    return lerp4(upper, lower, down);
}

// Texture coordinates of a corner of a mesh for one use of a texture, before its transform.
TESSERA_FN Vec2 vertex_uv(const ShadingVertex& vertex, u32 set) {
    return set == 0 ? vec2(vertex.u0, vertex.v0) : vec2(vertex.uv1[0], vertex.uv1[1]);
}
