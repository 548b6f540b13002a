// AgX as Blender 4 and 5 show it on an sRGB display (T. Sobotka, E. Zhou, M. Faderbauer, S.
// Kapanen): scene-linear to linear Rec. 709, by the constants that are published with Blender's
// table. The coordinator's resolve/tone/agx.rs names them and has the matrices apart.
#pragma once

#include "compute/lattice.h"

const float AGX_MIDDLE_GREY = 0.18f;
const float AGX_POWER = 2.4f;
// The curve: middle grey in the logarithm and as shown, the slope there, and the scales on the two
// sides.
const float AGX_PIVOT_X = 0.606060606f;
const float AGX_PIVOT_Y = 0.48943709f;
const float AGX_SLOPE = 2.4f;
const float AGX_TOE = 0.565675607f;
const float AGX_SHOULDER = 0.715198286f;

TESSERA_FN float agx_bent(float run, float scale) {
    const float term = run / scale;
    return run / pow_(1.0f + pow_(term, 1.5f), 1.0f / 1.5f);
}

// J. Smith's curve, from a linear value to the light of a display.
TESSERA_FN float agx_curve(float value) {
    const float stops = log2_(max_(value, 0x1p-126f) / AGX_MIDDLE_GREY);
    const float run = AGX_SLOPE * ((stops + 10.0f) / 16.5f - AGX_PIVOT_X);
    const float shown = run < 0.0f ? AGX_PIVOT_Y - agx_bent(-run, AGX_TOE)
                                   : AGX_PIVOT_Y + agx_bent(run, AGX_SHOULDER);
    return pow_(max_(shown, 0.0f), AGX_POWER);
}

struct AgxLuminance {
    float r;
    float g;
    float b;
    // Whether the opponent counts less the brighter a colour is.
    bool is_limited;
};

TESSERA_FN float agx_brightness(const Color& c, const AgxLuminance& by) {
    const float most = largest(c);
    const Color opposed = color(most - c.r, most - c.g, most - c.b);
    const float luminance = weigh(by.r, by.g, by.b, c);
    const float opponent = largest(opposed) - weigh(by.r, by.g, by.b, opposed);
    const float part = by.is_limited ? min_(pow_(max_(luminance, 0.0f), 0.08f), 1.0f) : 0.0f;
    return fma_(1.0f - part, opponent, luminance);
}

// Moves negative values up to 0, all three by the same amount, and keeps the brightness.
TESSERA_FN Color agx_raised(const Color& c, const AgxLuminance& by) {
    const float offset = max_(-least(c), 0.0f);
    if (offset == 0.0f) return c;
    const Color raised = color(c.r + offset, c.g + offset, c.b + offset);
    const float before = agx_brightness(c, by);
    const float after = agx_brightness(raised, by);
    const float ratio = after > before ? before / after : 1.0f;
    return color(raised.r * ratio, raised.g * ratio, raised.b * ratio);
}

TESSERA_FN float agx_wrapped(float turn) { return turn - (float)floor_to_int(turn); }

// Hue, a full turn being 1; 0 for greys.
TESSERA_FN float agx_hue(const Color& c) {
    const float most = largest(c);
    const float chroma = most - least(c);
    if (chroma == 0.0f) return 0.0f;
    if (c.r == most) return agx_wrapped((c.g - c.b) / chroma / 6.0f);
    if (c.g == most) return agx_wrapped((2.0f + (c.b - c.r) / chroma) / 6.0f);
    return agx_wrapped((4.0f + (c.r - c.g) / chroma) / 6.0f);
}

TESSERA_FN float agx_channel(float first, float hue, float most, float least) {
    const float place = 6.0f * agx_wrapped((first + 6.0f * hue) / 6.0f);
    return most - (most - least) * saturate_(min_(place, 4.0f - place));
}

// Gives a colour back 0.6 of the hue that it had before the curve, the shorter way round.
TESSERA_FN Color agx_hue_mixed(const Color& curved, float before) {
    const float turn = agx_hue(curved) - before;
    const float shorter = turn > 0.5f ? turn - 1.0f : turn < -0.5f ? turn + 1.0f : turn;
    const float hue = agx_wrapped(fma_(0.4f, shorter, before));
    const float most = largest(curved);
    const float lowest = least(curved);
    return color(agx_channel(5.0f, hue, most, lowest), agx_channel(3.0f, hue, most, lowest),
                 agx_channel(1.0f, hue, most, lowest));
}

TESSERA_FN float agx_stored(float value) {
    return min_(pow_(max_(value, 0.0f), 1.0f / AGX_POWER), 1.0f);
}

// A point of Blender's table: E-Gamut in a logarithm of 25 stops about middle grey.
struct AgxFormation {
    TESSERA_FN Color at(const Color& log) {
        const AgxLuminance wide = {0.265818037f, 0.598469860f, 0.135712103f, false};
        const AgxLuminance shown = {0.210351141f, 0.649797770f, 0.139851089f, true};
        const Color e = color(AGX_MIDDLE_GREY * lattice_linear(log.r, -10.0f, 15.0f),
                              AGX_MIDDLE_GREY * lattice_linear(log.g, -10.0f, 15.0f),
                              AGX_MIDDLE_GREY * lattice_linear(log.b, -10.0f, 15.0f));
        const Color rec2020 = agx_raised(
            color(weigh(1.13758887f, 0.0083505022f, -0.145932245f, e),
                  weigh(-0.0190871649f, 1.21531605f, -0.196244657f, e),
                  weigh(-0.0973256263f, -0.100888237f, 1.19836264f, e)),
            wide);
        const Color inset = color(weigh(0.856627153f, 0.0951212405f, 0.0482516061f, rec2020),
                                  weigh(0.137318973f, 0.761241991f, 0.101439036f, rec2020),
                                  weigh(0.111898213f, 0.0767994186f, 0.811302368f, rec2020));
        const Color mixed =
            agx_hue_mixed(color(agx_curve(inset.r), agx_curve(inset.g), agx_curve(inset.b)),
                          agx_hue(inset));
        const Color formed = agx_raised(
            color(weigh(1.96489403f, -0.856007909f, -0.108886120f, mixed),
                  weigh(-0.299309079f, 1.32639189f, -0.0270828126f, mixed),
                  weigh(-0.164356444f, -0.238207402f, 1.40256385f, mixed)),
            shown);
        return color(agx_stored(formed.r), agx_stored(formed.g), agx_stored(formed.b));
    }
};

TESSERA_FN float agx_log(float value) {
    return lattice_log(value, -12.47393f, 12.5260688117f);
}

TESSERA_FN Color tone_agx(const Color& c) {
    const Color e = color(weigh(0.559463047f, 0.304775811f, 0.135812941f, c),
                          weigh(0.0762332609f, 0.787952395f, 0.135774849f, c),
                          weigh(0.0655375095f, 0.164542730f, 0.769741528f, c));
    const Color stored =
        lattice_at<AgxFormation>(56.0f, color(agx_log(e.r), agx_log(e.g), agx_log(e.b)));
    return color(pow_(stored.r, AGX_POWER), pow_(stored.g, AGX_POWER), pow_(stored.b, AGX_POWER));
}
