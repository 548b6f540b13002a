// Filmic as Blender shows it on an sRGB display with its medium contrast (T. Sobotka): scene-linear
// to linear Rec. 709. The coordinator's resolve/tone/filmic.rs says where the numbers are from.
#pragma once

#include "compute/lattice.h"

const float FILMIC_FIRST = -12.473931188f;
const float FILMIC_LAST = 12.526068812f;
const float FILMIC_PIVOT = 0.606060606f;

// How far colours of this largest channel are taken towards grey; it is one of the lattice's.
TESSERA_FN float filmic_greyed(float largest) {
    const float parts[12] = {0.000316446700f, 0.00137999100f, 0.00340577800f, 0.00715503700f,
                             0.0140240800f,   0.0265517400f,  0.0493459300f,  0.0907678400f,
                             0.165990800f,    0.302535200f,   0.550341900f,   1.0f};
    const i32 point = floor_to_int(fma_(largest, 32.0f, 0.5f)) - 21;
    return point < 0 ? 0.0f : parts[point < 11 ? point : 11];
}

struct FilmicGreying {
    TESSERA_FN float mixed(float log, float most, float part) {
        const float value = lattice_linear(log, FILMIC_FIRST, FILMIC_LAST);
        const float greyer = fma_(part, most - value, value);
        return max_(lattice_log(greyer, FILMIC_FIRST, FILMIC_LAST), 0.0001758f);
    }
    TESSERA_FN Color at(const Color& log) {
        const float part = filmic_greyed(largest(log));
        const float most = lattice_linear(largest(log), FILMIC_FIRST, FILMIC_LAST);
        return color(mixed(log.r, most, part), mixed(log.g, most, part), mixed(log.b, most, part));
    }
};

// The curve from the shown part of the logarithm to sRGB: up from black, and down from white.
TESSERA_FN float filmic_curve(float shown) {
    if (shown < FILMIC_PIVOT) {
        const float x = shown / FILMIC_PIVOT;
        float sum = fma_(x, 2.091169f, -8.248408f);
        sum = fma_(sum, x, 12.640588f);
        sum = fma_(sum, x, -10.267635f);
        sum = fma_(sum, x, 5.091302f);
        sum = fma_(sum, x, -1.254064f);
        sum = fma_(sum, x, 0.350130f);
        sum = fma_(sum, x, 0.063047f);
        sum = fma_(sum, x, 0.034082f);
        return sum * x;
    }
    const float x = (1.0f - shown) / (1.0f - FILMIC_PIVOT);
    float sum = fma_(x, 0.326196f, -0.972020f);
    sum = fma_(sum, x, 0.804058f);
    sum = fma_(sum, x, -0.265872f);
    sum = fma_(sum, x, 0.313934f);
    sum = fma_(sum, x, 0.230384f);
    sum = fma_(sum, x, 0.063105f);
    return 1.0f - sum * x;
}

// The light that a display of IEC 61966-2-1 shows for a value.
TESSERA_FN float filmic_light(float log) {
    const float value = filmic_curve(saturate_(log / 0.66f));
    if (value <= 0.04045f) return value / 12.92f;
    return pow_((value + 0.055f) / 1.055f, 2.4f);
}

TESSERA_FN float filmic_log(float value) {
    return lattice_log(value, FILMIC_FIRST, FILMIC_LAST);
}

TESSERA_FN Color tone_filmic(const Color& c) {
    const Color log = lattice_at<FilmicGreying>(
        32.0f, color(filmic_log(c.r), filmic_log(c.g), filmic_log(c.b)));
    return color(filmic_light(log.r), filmic_light(log.g), filmic_light(log.b));
}
