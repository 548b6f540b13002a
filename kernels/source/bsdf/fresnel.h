// Fresnel reflectance: Schlick's approximation from either side of an interface, and of a thin film
// on it.
#pragma once

#include "math/logarithm.h"
#include "math/vector.h"

// Reflectance at normal incidence of two media whose indices have this ratio.
TESSERA_FN float f0_of_ratio(float ratio) { return square_((ratio - 1.0f) / (ratio + 1.0f)); }

// Cosine at which Schlick's approximation holds: on the side of the smaller index. `eta` is the
// index behind the interface over the one before it. Negative: total reflection.
TESSERA_FN float schlick_cosine(float eta, float cosine) {
    if (eta >= 1.0f) return cosine;
    const float squared = 1.0f - fma_(-cosine, cosine, 1.0f) / (eta * eta);
    return squared > 0.0f ? sqrt_(squared) : -1.0f;
}

TESSERA_FN float schlick(float f0, float f90, float cosine) {
    return cosine < 0.0f ? 1.0f : fma_(f90 - f0, pow5(1.0f - cosine), f0);
}

TESSERA_FN Vec3 schlick3(Vec3 f0, float f90, float cosine) {
    return cosine < 0.0f ? splat(1.0f) : fma3(splat(f90) - f0, pow5(1.0f - cosine), f0);
}

// A thin film: its index, and its thickness in nanometres.
struct Film {
    float ior;
    float thickness;
};

// Response of the eye to a cosine fringe of a path difference (nm) and a phase (turns, one a
// channel of the base's): Gaussian fits of the matching functions, in linear Rec. 709 (Belcour and
// Barla 2017, "A Practical Extension to Microfacet Theory for the Modeling of Varying Iridescence";
// the numbers are those of KHR_materials_iridescence).
TESSERA_FN float film_band(float frequency, float variance, float weight, float difference,
                           float shift) {
    const float metres = difference * 1e-9f;
    const float turns = fma_(frequency, metres, shift);
    const float phase = TWO_PI * metres;
    return weight * sincos_turns(turns).cosine * exp2_(-LOG2_E * variance * phase * phase);
}

TESSERA_FN Vec3 film_response(float difference, Vec3 shift) {
    const float x = film_band(1.6810e6f, 4.3278e9f, 0.846590f, difference, shift.x) +
                    film_band(2.2399e6f, 4.5282e9f, 0.153868f, difference, shift.x);
    const float y = film_band(1.7953e6f, 9.3046e9f, 1.000222f, difference, shift.y);
    const float z = film_band(2.2084e6f, 6.6121e9f, 1.001122f, difference, shift.z);
    return vec3(fma_(3.2404542f, x, fma_(-1.5371385f, y, -0.4985314f * z)),
                fma_(-0.9692660f, x, fma_(1.8760108f, y, 0.0415560f * z)),
                fma_(0.0556434f, x, fma_(-0.2040259f, y, 1.0572252f * z)));
}

// Reflectance at the lower interface of a film, and its phase in turns.
struct FilmBase {
    float reflectance;
    float phase;
};

TESSERA_FN FilmBase film_base(float f0, float film_ior, float cosine) {
    const float root = sqrt_(clamp_(f0, 0.0f, 0.9999f));
    const float ior = (1.0f + root) / (1.0f - root);
    FilmBase base;
    base.reflectance = schlick(f0_of_ratio(ior / film_ior), 1.0f, cosine);
    base.phase = ior < film_ior ? 0.5f : 0.0f;
    return base;
}

// Reflectance of a surface with F0 under a film in air: the upper interface, and a series of two
// orders of interference.
TESSERA_FN Vec3 film_fresnel(Film film, Vec3 f0, float cosine) {
    const float thin = saturate_(film.thickness * (1.0f / 0.03f));
    const float ior = max_(lerp_(1.0f, film.ior, thin * thin * fma_(-2.0f, thin, 3.0f)), 1.0f);
    const float below = fma_(-fma_(-cosine, cosine, 1.0f), 1.0f / (ior * ior), 1.0f);
    const float inner = sqrt_(max_(below, 0.0f));
    const float upper = schlick(f0_of_ratio(ior), 1.0f, cosine);
    const float through = 1.0f - upper;
    const FilmBase red = film_base(f0.x, ior, inner);
    const FilmBase green = film_base(f0.y, ior, inner);
    const FilmBase blue = film_base(f0.z, ior, inner);
    const Vec3 lower = vec3(red.reflectance, green.reflectance, blue.reflectance);
    // Half a turn at the film from inside.
    const Vec3 phase = splat(0.5f) + vec3(red.phase, green.phase, blue.phase);
    const Vec3 both = lower * upper;
    const Vec3 joint = vec3(clamp_(both.x, 1e-5f, 0.9999f), clamp_(both.y, 1e-5f, 0.9999f),
                            clamp_(both.z, 1e-5f, 0.9999f));
    const Vec3 root = vec3(sqrt_(joint.x), sqrt_(joint.y), sqrt_(joint.z));
    const Vec3 rest =
        lower * (through * through) *
        vec3(1.0f / (1.0f - joint.x), 1.0f / (1.0f - joint.y), 1.0f / (1.0f - joint.z));
    const float difference = 2.0f * ior * film.thickness * inner;
    const Vec3 first = (rest - splat(through)) * root;
    Vec3 sum = splat(upper) + rest;
    sum = fma3(first * 2.0f, film_response(difference, phase), sum);
    sum = fma3(first * root * 2.0f, film_response(2.0f * difference, phase * 2.0f), sum);
    return vec3(saturate_(sum.x), saturate_(sum.y), saturate_(sum.z));
}

// The F0 that gives a reflectance at a cosine by Schlick's approximation.
TESSERA_FN float f0_from_schlick(float reflectance, float cosine) {
    const float grazing = min_(pow5(1.0f - saturate_(cosine)), 0.9999f);
    return saturate_((reflectance - grazing) / (1.0f - grazing));
}

// F0 under a film of some strength.
TESSERA_FN Vec3 film_f0(Film film, Vec3 f0, float strength, float cosine) {
    const Vec3 seen = film_fresnel(film, f0, cosine);
    const Vec3 iridescent = vec3(f0_from_schlick(seen.x, cosine), f0_from_schlick(seen.y, cosine),
                                 f0_from_schlick(seen.z, cosine));
    return lerp3(f0, iridescent, strength);
}
