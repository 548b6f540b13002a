// Texture look-up: level, wrap, nearest or bilinear, decode. Owns no idea of what a texture means.
#pragma once

#include "layout.h"
#include "material/srgb_table.h"
#include "math/vector.h"

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

// A neighbour just outside 0..size-1 brought back: the other end where the texture repeats, else
// the edge.
TESSERA_FN u32 wrap_texel(i32 index, u32 size, u32 mode) {
    const i32 last = (i32)size - 1;
    const i32 below = mode == WRAP_REPEAT ? last : 0;
    const i32 above = mode == WRAP_REPEAT ? 0 : last;
    return (u32)(index < 0 ? below : index > last ? above : index);
}

// One of a texture's levels: level 0, or the one before at half its size, rounded down to one texel
// at least.
struct TextureLevel {
    u64 first;  // texel, counted from the texture's first
    u32 width;
    u32 height;
};

// The coarsest level whose texels are no larger than the footprint, an area in uv. Levels are
// chosen, not blended: a footprint is smaller than what one sees (CONE_OF_PIXEL).
TESSERA_FN TextureLevel level_for(const Texture& texture, float footprint) {
    TextureLevel level;
    level.first = 0;
    level.width = texture.width;
    level.height = texture.height;
    if (!(footprint > 0.0f)) return level;
    const float texels = footprint * ((float)texture.width * (float)texture.height);
    const i32 wanted = ((i32)(bits_from_float(texels) >> 23) - 127) >> 1;  // half of the exponent
    TESSERA_ROLLED
    for (i32 at = 0; at < wanted && at + 1 < (i32)texture.level_count; ++at) {
        level.first += (u64)level.width * level.height;
        level.width = level.width > 1 ? level.width >> 1 : 1;
        level.height = level.height > 1 ? level.height >> 1 : 1;
    }
    return level;
}

TESSERA_FN Vec4 decode_texel(const u8* texels, const Texture& texture, const TextureLevel& level,
                             u32 x, u32 y) {
    const u64 index = level.first + (u64)y * level.width + x;
    if (texture.format == TEXEL_RGBA16_LINEAR) {
        const u8* at = texels + texture.offset + index * 8;
        const u32 red_green = load_u32(at);
        const u32 blue_alpha = load_u32(at + 4);
        const float scale = 1.0f / 65535.0f;
        return vec4(
            (float)(i32)(red_green & 0xffffu) * scale, (float)(i32)(red_green >> 16) * scale,
            (float)(i32)(blue_alpha & 0xffffu) * scale, (float)(i32)(blue_alpha >> 16) * scale);
    }
    const u32 texel = load_u32(texels + texture.offset + index * 4);
    const i32 red = (i32)(texel & 0xffu), green = (i32)(texel >> 8 & 0xffu),
              blue = (i32)(texel >> 16 & 0xffu);
    const float scale = 1.0f / 255.0f;
    const float alpha = (float)(i32)(texel >> 24) * scale;
    if (texture.format == TEXEL_RGBA8_SRGB)
        return vec4(LINEAR_FROM_SRGB[red], LINEAR_FROM_SRGB[green], LINEAR_FROM_SRGB[blue], alpha);
    return vec4((float)red * scale, (float)green * scale, (float)blue * scale, alpha);
}

// The texture's value about (u, v); texel centres lie at half-integers. `footprint`: the area in uv
// that is asked about; 0 for the point.
TESSERA_FN Vec4 sample_texture(const SceneView& scene, u32 which, Vec2 uv, float footprint) {
    const Texture texture = scene.textures[which];
    const TextureLevel level = level_for(texture, footprint);
    const float x = wrap_unit(uv.x, texture.wrap_u) * (float)level.width;
    const float y = wrap_unit(uv.y, texture.wrap_v) * (float)level.height;
    if (texture.bilinear == 0) {
        const u32 column = wrap_texel(floor_to_int(x), level.width, WRAP_CLAMP_TO_EDGE);
        const u32 row = wrap_texel(floor_to_int(y), level.height, WRAP_CLAMP_TO_EDGE);
        return decode_texel(scene.texels, texture, level, column, row);
    }
    const i32 left = floor_to_int(x - 0.5f);
    const i32 top = floor_to_int(y - 0.5f);
    const u32 x0 = wrap_texel(left, level.width, texture.wrap_u);
    const u32 x1 = wrap_texel(left + 1, level.width, texture.wrap_u);
    const u32 y0 = wrap_texel(top, level.height, texture.wrap_v);
    const u32 y1 = wrap_texel(top + 1, level.height, texture.wrap_v);
    const float across = x - 0.5f - (float)left;
    const float down = y - 0.5f - (float)top;
    const u8* texels = scene.texels;
    const Vec4 upper = lerp4(decode_texel(texels, texture, level, x0, y0),
                             decode_texel(texels, texture, level, x1, y0), across);
    const Vec4 lower = lerp4(decode_texel(texels, texture, level, x0, y1),
                             decode_texel(texels, texture, level, x1, y1), across);
    return lerp4(upper, lower, down);
}

// Texture coordinates of a corner of a mesh for one use of a texture, before its transform.
TESSERA_FN Vec2 vertex_uv(const ShadingVertex& vertex, u32 set) {
    return set == 0 ? vec2(vertex.u0, vertex.v0) : vec2(vertex.uv1[0], vertex.uv1[1]);
}
