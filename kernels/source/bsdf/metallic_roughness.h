// The reflection of a metallic-roughness surface (docs/kernels.md has the formulas). Directions are
// unit vectors in the local frame of the shading normal, `out` towards where the path came from,
// `in` towards the light.
//
// Three lobes, each reciprocal, together keeping all energy of a white surface: single-scattering
// GGX; what GGX loses by not following light between its facets, given back as in Kulla and Conty
// 2017; and a matte base below the dielectric interface, coupled as in Kelemen and Szirmay-Kalos
// 2001.
#pragma once

#include "bsdf/ggx.h"

template <class F>
struct BsdfOf {
    Vector3<F> f0;               // reflectance at normal incidence
    Vector3<F> multiple;         // factor of the multiple-scattering lobe: F / (pi (1 - mean E))
    Vector3<F> base;             // factor of the matte lobe: colour / (pi (1 - mean Ed))
    F dielectric_f0;
    F dielectric_multiple;  // energy of the dielectric's own multiple scattering
    F alpha;
    F alpha2;
    AlbedoRowOf<F> row;
    Vector3<F> out;
    F out_root;        // smith_root of out
    F out_lost;        // 1 - E(out)
    F out_below;       // 1 - Ed(out): what the dielectric interface lets through
    F specular_share;  // probability of sampling the GGX lobe
};
typedef BsdfOf<float> Bsdf;

template <class F>
struct BsdfValueOf {
    Vector3<F> value;     // reflection times cosine
    F density;  // of bsdf_sample, per steradian
};
typedef BsdfValueOf<float> BsdfValue;

template <class F>
struct BsdfSampleOf {
    Vector3<F> in;
    Vector3<F> weight;  // value / density
    F density;
    MaskOf<F> valid;
};
typedef BsdfSampleOf<float> BsdfSample;

// Albedo of the multiple-scattering lobe over 1 - E: the series of bounces between facets
// (Fdez-Aguera 2019).
template <class F>
TESSERA_FN F multiple_energy(F f0, F mean_total) {
    const F mean_fresnel = fma_(1.0f - f0, 1.0f / 21.0f, f0);
    return mean_fresnel * mean_fresnel * mean_total / fma_(-mean_fresnel, 1.0f - mean_total, 1.0f);
}

// Share that the dielectric interface reflects in all.
template <class F>
TESSERA_FN F dielectric_albedo(const BsdfOf<F>& bsdf, SplitAlbedoOf<F> albedo) {
    const F single = fma_(bsdf.dielectric_f0, albedo.scale, albedo.bias);
    return fma_(bsdf.dielectric_multiple, 1.0f - split_total(albedo), single);
}

// `roughness` is perceptual; `dielectric_f0` from the index of refraction. `out.z` must be
// positive.
template <class F>
TESSERA_FN BsdfOf<F> make_bsdf(Vector3<F> base_color, F metallic, F roughness, F dielectric_f0,
                               Vector3<F> out) {
    BsdfOf<F> bsdf;
    bsdf.alpha = max_(roughness * roughness, ALPHA_MIN);
    bsdf.alpha2 = bsdf.alpha * bsdf.alpha;
    bsdf.row = albedo_row(bsdf.alpha);
    bsdf.f0 = lerp3(splat(dielectric_f0), base_color, metallic);
    bsdf.dielectric_f0 = dielectric_f0;
    bsdf.out = out;
    bsdf.out_root = smith_root(bsdf.alpha2, out.z);

    const SplitAlbedoOf<F> mean = ggx_albedo_mean(bsdf.row);
    const SplitAlbedoOf<F> here = ggx_albedo(bsdf.row, out.z);
    const F mean_total = split_total(mean);
    bsdf.out_lost = 1.0f - split_total(here);
    bsdf.dielectric_multiple = multiple_energy(dielectric_f0, mean_total);
    bsdf.out_below = 1.0f - dielectric_albedo(bsdf, here);

    // A mix of the metal's and the dielectric's own series, so that a half-metal keeps its energy
    // as both ends do.
    const Vector3<F> metal =
        vec3(multiple_energy(base_color.x, mean_total), multiple_energy(base_color.y, mean_total),
             multiple_energy(base_color.z, mean_total));
    const Vector3<F> series = lerp3(splat(bsdf.dielectric_multiple), metal, metallic);
    const Vector3<F> matte = base_color * (1.0f - metallic);
    bsdf.multiple = series * (INVERSE_PI / max_(1.0f - mean_total, 1e-6f));
    bsdf.base = matte * (INVERSE_PI / max_(1.0f - dielectric_albedo(bsdf, mean), 1e-6f));

    const F specular = mean_component(fma3(bsdf.f0, here.scale, splat(here.bias)));
    const F spread =
        mean_component(series) * bsdf.out_lost + mean_component(matte) * bsdf.out_below;
    bsdf.specular_share = specular / max_(specular + spread, 1e-6f);
    return bsdf;
}

// Reflection and sampling density towards `in`; zero below the horizon.
template <class F>
TESSERA_FN BsdfValueOf<F> bsdf_evaluate(const BsdfOf<F>& bsdf, Vector3<F> in) {
    BsdfValueOf<F> result;
    result.value = splat<F>(0.0f);
    result.density = 0.0f;
    const auto above = in.z > 0.0f;
    if (!any(above)) return result;
    const Vector3<F> half = normalize_or(bsdf.out + in, vec3<F>(0.0f, 0.0f, 1.0f));
    const F facing = saturate_(dot(bsdf.out, half));
    const F grazing = pow5<F>(1.0f - facing);
    const Vector3<F> fresnel = fma3(splat<F>(1.0f) - bsdf.f0, grazing, bsdf.f0);
    const F distribution = ggx_density(bsdf.alpha2, half);
    const F in_root = smith_root(bsdf.alpha2, in.z);
    const F smith = fma_(in.z, bsdf.out_root, bsdf.out.z * in_root);
    const F single = distribution * 0.5f * in.z / smith;

    const SplitAlbedoOf<F> there = ggx_albedo(bsdf.row, in.z);
    const F lost = bsdf.out_lost * (1.0f - split_total(there)) * in.z;
    const F below = bsdf.out_below * (1.0f - dielectric_albedo(bsdf, there)) * in.z;
    const F reflected = distribution * 0.5f / (bsdf.out.z + bsdf.out_root);
    const Vector3<F> value = fma3(fresnel, single, fma3(bsdf.multiple, lost, bsdf.base * below));
    result.value = select(above, value, result.value);
    result.density =
        select(above, lerp_(in.z * INVERSE_PI, reflected, bsdf.specular_share), result.density);
    return result;
}

// Chooses a lobe by `choice` and a direction by `random`. Invalid where the direction is below the
// horizon.
template <class F>
TESSERA_FN BsdfSampleOf<F> bsdf_sample(const BsdfOf<F>& bsdf, F choice, Vector2<F> random) {
    const auto mirrored = choice < bsdf.specular_share;
    BsdfSampleOf<F> sample;
    sample.in = splat<F>(0.0f);
    if (any(mirrored)) {
        const Vector3<F> half = sample_visible_normal(bsdf.alpha, bsdf.out, random);
        sample.in = fma3(half, 2.0f * dot(bsdf.out, half), -bsdf.out);
    }
    if (any(!mirrored)) sample.in = select(mirrored, sample.in, sample_cosine(random));
    const BsdfValueOf<F> value = bsdf_evaluate(bsdf, sample.in);
    sample.density = value.density;
    sample.valid = value.density > 0.0f;
    sample.weight = value.value * (1.0f / max_(value.density, 1e-30f));
    return sample;
}
