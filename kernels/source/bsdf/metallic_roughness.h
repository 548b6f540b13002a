// The reflection of a metallic-roughness surface (docs/kernels.md has the formulas). Directions are
// unit vectors in the local frame of the shading normal, `wo` towards where the path came from,
// `wi` towards the light.
//
// Three lobes, each reciprocal, together keeping all energy of a white surface: single-scattering
// GGX; what GGX loses by not following light between its facets, given back as in Kulla and Conty
// 2017; and a diffuse base below the dielectric interface, coupled as in Kelemen and Szirmay-Kalos
// 2001.
#pragma once

#include "bsdf/ggx.h"

template <class F>
struct BsdfOf {
    Vector3<F> f0;               // reflectance at normal incidence
    Vector3<F> multiple;         // factor of the multiple-scattering lobe: F / (pi (1 - mean E))
    Vector3<F> diffuse;             // factor of the diffuse lobe: colour / (pi (1 - mean Ed))
    F dielectric_f0;
    F dielectric_multiple;  // energy of the dielectric's own multiple scattering
    F alpha;
    F alpha2;
    AlbedoRowOf<F> row;
    Vector3<F> wo;
    F wo_root;        // smith_root of wo
    F wo_lost;        // 1 - E(wo)
    F wo_below;       // 1 - Ed(wo): what the dielectric interface lets through
    F specular_share;  // probability of sampling the GGX lobe
};
typedef BsdfOf<float> Bsdf;

template <class F>
struct BsdfValueOf {
    Vector3<F> value;     // reflection times cosine
    F pdf;  // of bsdf_sample, per steradian
};
typedef BsdfValueOf<float> BsdfValue;

template <class F>
struct BsdfSampleOf {
    Vector3<F> wi;
    Vector3<F> weight;  // value / pdf
    F pdf;
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
                               Vector3<F> wo) {
    BsdfOf<F> bsdf;
    bsdf.alpha = max_(roughness * roughness, ALPHA_MIN);
    bsdf.alpha2 = bsdf.alpha * bsdf.alpha;
    bsdf.row = albedo_row(bsdf.alpha);
    bsdf.f0 = lerp3(splat(dielectric_f0), base_color, metallic);
    bsdf.dielectric_f0 = dielectric_f0;
    bsdf.wo = wo;
    bsdf.wo_root = smith_root(bsdf.alpha2, wo.z);

    const SplitAlbedoOf<F> mean = ggx_albedo_mean(bsdf.row);
    const SplitAlbedoOf<F> here = ggx_albedo(bsdf.row, wo.z);
    const F mean_total = split_total(mean);
    bsdf.wo_lost = 1.0f - split_total(here);
    bsdf.dielectric_multiple = multiple_energy(dielectric_f0, mean_total);
    bsdf.wo_below = 1.0f - dielectric_albedo(bsdf, here);

    // A mix of the metal's and the dielectric's own series, so that a half-metal keeps its energy
    // as both ends do.
    const Vector3<F> metal =
        vec3(multiple_energy(base_color.x, mean_total), multiple_energy(base_color.y, mean_total),
             multiple_energy(base_color.z, mean_total));
    const Vector3<F> series = lerp3(splat(bsdf.dielectric_multiple), metal, metallic);
    const Vector3<F> diffuse = base_color * (1.0f - metallic);
    bsdf.multiple = series * (INVERSE_PI / max_(1.0f - mean_total, 1e-6f));
    bsdf.diffuse = diffuse * (INVERSE_PI / max_(1.0f - dielectric_albedo(bsdf, mean), 1e-6f));

    const F specular = mean_component(fma3(bsdf.f0, here.scale, splat(here.bias)));
    const F spread =
        mean_component(series) * bsdf.wo_lost + mean_component(diffuse) * bsdf.wo_below;
    bsdf.specular_share = specular / max_(specular + spread, 1e-6f);
    return bsdf;
}

// Reflection and sampling pdf towards `wi`; zero below the horizon.
template <class F>
TESSERA_FN BsdfValueOf<F> bsdf_evaluate(const BsdfOf<F>& bsdf, Vector3<F> wi) {
    BsdfValueOf<F> result;
    result.value = splat<F>(0.0f);
    result.pdf = 0.0f;
    const auto above = wi.z > 0.0f;
    if (!any(above)) return result;
    const Vector3<F> half = normalize_or(bsdf.wo + wi, vec3<F>(0.0f, 0.0f, 1.0f));
    const F facing = saturate_(dot(bsdf.wo, half));
    const F grazing = pow5<F>(1.0f - facing);
    const Vector3<F> fresnel = fma3(splat<F>(1.0f) - bsdf.f0, grazing, bsdf.f0);
    const F distribution = ggx_distribution(bsdf.alpha2, half);
    const F wi_root = smith_root(bsdf.alpha2, wi.z);
    const F smith = fma_(wi.z, bsdf.wo_root, bsdf.wo.z * wi_root);
    const F single = distribution * 0.5f * wi.z / smith;

    const SplitAlbedoOf<F> there = ggx_albedo(bsdf.row, wi.z);
    const F lost = bsdf.wo_lost * (1.0f - split_total(there)) * wi.z;
    const F below = bsdf.wo_below * (1.0f - dielectric_albedo(bsdf, there)) * wi.z;
    const F reflected = distribution * 0.5f / (bsdf.wo.z + bsdf.wo_root);
    const Vector3<F> value = fma3(fresnel, single, fma3(bsdf.multiple, lost, bsdf.diffuse * below));
    result.value = select(above, value, result.value);
    result.pdf =
        select(above, lerp_(wi.z * INVERSE_PI, reflected, bsdf.specular_share), result.pdf);
    return result;
}

// Chooses a lobe by `choice` and a direction by `random`. Invalid where the direction is below the
// horizon.
template <class F>
TESSERA_FN BsdfSampleOf<F> bsdf_sample(const BsdfOf<F>& bsdf, F choice, Vector2<F> random) {
    const auto mirrored = choice < bsdf.specular_share;
    BsdfSampleOf<F> sample;
    sample.wi = splat<F>(0.0f);
    if (any(mirrored)) {
        const Vector3<F> half = sample_visible_normal(bsdf.alpha, bsdf.wo, random);
        sample.wi = fma3(half, 2.0f * dot(bsdf.wo, half), -bsdf.wo);
    }
    if (any(!mirrored)) sample.wi = select(mirrored, sample.wi, sample_cosine(random));
    const BsdfValueOf<F> value = bsdf_evaluate(bsdf, sample.wi);
    sample.pdf = value.pdf;
    sample.valid = value.pdf > 0.0f;
    sample.weight = value.value * (1.0f / max_(value.pdf, 1e-30f));
    return sample;
}
