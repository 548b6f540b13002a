// The reflection of a metallic-roughness surface (docs/kernels.md has the formulas). Directions are unit vectors in the
// local frame of the shading normal, `out` towards where the path came from, `in` towards the light.
//
// Three lobes, each reciprocal, together keeping all energy of a white surface: single-scattering GGX; what GGX loses by
// not following light between its facets, given back as in Kulla and Conty 2017; and a matte base below the dielectric
// interface, coupled as in Kelemen and Szirmay-Kalos 2001.
#pragma once

#include "ggx.h"

struct Bsdf {
    Vec3 f0;               // reflectance at normal incidence
    Vec3 multiple;         // factor of the multiple-scattering lobe: F / (pi (1 - mean E))
    Vec3 base;             // factor of the matte lobe: colour / (pi (1 - mean Ed))
    float dielectric_f0;
    float dielectric_multiple;  // energy of the dielectric's own multiple scattering
    float alpha;
    float alpha2;
    AlbedoRow row;
    Vec3 out;
    float out_root;        // smith_root of out
    float out_lost;        // 1 - E(out)
    float out_below;       // 1 - Ed(out): what the dielectric interface lets through
    float specular_share;  // probability of sampling the GGX lobe
};

struct BsdfValue {
    Vec3 value;     // reflection times cosine
    float density;  // of bsdf_sample, per steradian
};

struct BsdfSample {
    Vec3 in;
    Vec3 weight;  // value / density
    float density;
    bool valid;
};

// Albedo of the multiple-scattering lobe over 1 - E: the series of bounces between facets (Fdez-Aguera 2019).
TESSERA_FN float multiple_energy(float f0, float mean_total) {
    const float mean_fresnel = fma_(1.0f - f0, 1.0f / 21.0f, f0);
    return mean_fresnel * mean_fresnel * mean_total / fma_(-mean_fresnel, 1.0f - mean_total, 1.0f);
}

// Share that the dielectric interface reflects in all.
TESSERA_FN float dielectric_albedo(const Bsdf& bsdf, SplitAlbedo albedo) {
    const float single = fma_(bsdf.dielectric_f0, albedo.scale, albedo.bias);
    return fma_(bsdf.dielectric_multiple, 1.0f - split_total(albedo), single);
}

// `roughness` is perceptual; `dielectric_f0` from the index of refraction. `out.z` must be positive.
TESSERA_FN Bsdf make_bsdf(Vec3 base_color, float metallic, float roughness, float dielectric_f0, Vec3 out) {
    Bsdf bsdf;
    bsdf.alpha = max_(roughness * roughness, ALPHA_MIN);
    bsdf.alpha2 = bsdf.alpha * bsdf.alpha;
    bsdf.row = albedo_row(bsdf.alpha);
    bsdf.f0 = lerp3(splat(dielectric_f0), base_color, metallic);
    bsdf.dielectric_f0 = dielectric_f0;
    bsdf.out = out;
    bsdf.out_root = smith_root(bsdf.alpha2, out.z);

    const SplitAlbedo mean = ggx_albedo_mean(bsdf.row);
    const SplitAlbedo here = ggx_albedo(bsdf.row, out.z);
    const float mean_total = split_total(mean);
    bsdf.out_lost = 1.0f - split_total(here);
    bsdf.dielectric_multiple = multiple_energy(dielectric_f0, mean_total);
    bsdf.out_below = 1.0f - dielectric_albedo(bsdf, here);

    // A mix of the metal's and the dielectric's own series, so that a half-metal keeps its energy as both ends do.
    const Vec3 metal = vec3(multiple_energy(base_color.x, mean_total), multiple_energy(base_color.y, mean_total),
                            multiple_energy(base_color.z, mean_total));
    const Vec3 series = lerp3(splat(bsdf.dielectric_multiple), metal, metallic);
    const Vec3 matte = base_color * (1.0f - metallic);
    bsdf.multiple = series * (INVERSE_PI / max_(1.0f - mean_total, 1e-6f));
    bsdf.base = matte * (INVERSE_PI / max_(1.0f - dielectric_albedo(bsdf, mean), 1e-6f));

    const float specular = mean_component(fma3(bsdf.f0, here.scale, splat(here.bias)));
    const float spread = mean_component(series) * bsdf.out_lost + mean_component(matte) * bsdf.out_below;
    bsdf.specular_share = specular / max_(specular + spread, 1e-6f);
    return bsdf;
}

// Reflection and sampling density towards `in`; zero below the horizon.
TESSERA_FN BsdfValue bsdf_evaluate(const Bsdf& bsdf, Vec3 in) {
    BsdfValue result;
    result.value = splat(0.0f);
    result.density = 0.0f;
    if (!(in.z > 0.0f)) return result;
    const Vec3 half = normalize_or(bsdf.out + in, vec3(0.0f, 0.0f, 1.0f));
    const float facing = saturate_(dot(bsdf.out, half));
    const float grazing = pow5(1.0f - facing);
    const Vec3 fresnel = fma3(splat(1.0f) - bsdf.f0, grazing, bsdf.f0);
    const float distribution = ggx_density(bsdf.alpha2, half);
    const float in_root = smith_root(bsdf.alpha2, in.z);
    const float smith = fma_(in.z, bsdf.out_root, bsdf.out.z * in_root);
    const float single = distribution * 0.5f * in.z / smith;

    const SplitAlbedo there = ggx_albedo(bsdf.row, in.z);
    const float lost = bsdf.out_lost * (1.0f - split_total(there)) * in.z;
    const float below = bsdf.out_below * (1.0f - dielectric_albedo(bsdf, there)) * in.z;
    result.value = fma3(fresnel, single, fma3(bsdf.multiple, lost, bsdf.base * below));
    const float reflected = distribution * 0.5f / (bsdf.out.z + bsdf.out_root);
    result.density = lerp_(in.z * INVERSE_PI, reflected, bsdf.specular_share);
    return result;
}

// Chooses a lobe by `choice` and a direction by `random`. Invalid where the direction is below the horizon.
TESSERA_FN BsdfSample bsdf_sample(const Bsdf& bsdf, float choice, Vec2 random) {
    Vec3 in;
    if (choice < bsdf.specular_share) {
        const Vec3 half = sample_visible_normal(bsdf.alpha, bsdf.out, random);
        in = fma3(half, 2.0f * dot(bsdf.out, half), -bsdf.out);
    } else {
        in = sample_cosine(random);
    }
    const BsdfValue value = bsdf_evaluate(bsdf, in);
    BsdfSample sample;
    sample.in = in;
    sample.density = value.density;
    sample.valid = value.density > 0.0f;
    sample.weight = value.value * (1.0f / max_(value.density, 1e-30f));
    return sample;
}
