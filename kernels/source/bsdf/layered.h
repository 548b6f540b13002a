// The reflection and transmission of a surface with glTF's extensions (docs/kernels.md has the
// formulas). From the top: a coat, the sheen, and a base of a possibly anisotropic microfacet
// interface over matter that reflects diffuse light, lets diffuse light through, and lets light
// through straight or refracted. What lies below the coat and the sheen gets what they leave at
// `wo`.
//
// Directions are unit vectors in the local frame of the shading normal, `wo` above it; `wi` may be
// below.
#pragma once

#include "bsdf/fresnel.h"
#include "bsdf/metallic_roughness.h"
#include "bsdf/refraction_loss.h"
#include "bsdf/sheen.h"

const float BRUSHED_GAIN = 0.12f;
// indices that differ by less refract nothing that floats resolve
const float STRAIGHT_RATIO = 0.01f;

// The extensions' parameters at a point, textures and all.
struct LayeredSurface {
    Vec3 base_color;
    float metallic;
    float roughness;      // perceptual, as all
    Vec3 f0;              // of the dielectric
    float f90;            // of the dielectric
    float clearcoat;
    float clearcoat_roughness;
    Vec3 clearcoat_normal;  // local
    Vec3 sheen_color;
    float sheen_roughness;
    float transmission;
    float diffuse_transmission;
    Vec3 diffuse_transmission_color;
    float anisotropy;     // along x
    float iridescence;
    Film film;
    float eta;            // index behind the surface over the one before it
    bool refracts;        // the surface bounds a volume
    bool is_pane;         // thin and smooth: what goes through goes straight on
};

// Lobes by which directions are chosen.
enum Lobe : u32 {
    LOBE_COAT = 0,
    LOBE_SHEEN = 1,
    LOBE_SPECULAR = 2,
    LOBE_DIFFUSE = 3,
    LOBE_TRANSMISSION = 4,
    LOBE_DIFFUSE_TRANSMISSION = 5,
    LOBES = 6
};

struct LayeredBsdf {
    Vec3 wo;
    float alpha_x, alpha_y;
    float wo_root;
    float wo_lost;
    float wo_below;
    float eta;
    bool straight;             // light goes through without being bent
    bool is_pane;              // and without being scattered: that light is not in the values here
    Vec3 f0;
    float f90;
    float dielectric_f0;       // largest component
    float dielectric_f90;
    float dielectric_multiple;
    Vec3 multiple;             // factors as in Bsdf, with what lies above in them
    Vec3 diffuse;
    Vec3 diffuse_transmission;
    Vec3 transmission;              // colour and share of what goes through the interface, likewise
    Vec3 transmission_multiple;
    float inside_multiple;     // factor of what rough refraction loses inside; 0 from outside
    float under;               // what the coat and the sheen leave
    float coat;
    float coat_alpha;
    float coat_root;
    Vec3 coat_normal;
    Vec3 coat_wo;
    Vec3 sheen_color;
    Sheen sheen;
    float share[LOBES];        // probabilities of the lobes; their sum is 1
};

// sqrt(ax^2 x^2 + ay^2 y^2 + z^2): smith_root of an anisotropic lobe.
TESSERA_FN float layered_root(const LayeredBsdf& bsdf, Vec3 direction) {
    const Vec3 stretched =
        vec3(direction.x * bsdf.alpha_x, direction.y * bsdf.alpha_y, direction.z);
    return sqrt_(dot(stretched, stretched));
}

TESSERA_FN float layered_distribution(const LayeredBsdf& bsdf, Vec3 half) {
    const float x = half.x / bsdf.alpha_x;
    const float y = half.y / bsdf.alpha_y;
    const float spread = fma_(x, x, fma_(y, y, half.z * half.z));
    return INVERSE_PI / (bsdf.alpha_x * bsdf.alpha_y * spread * spread);
}

// The roughness of which an anisotropic lobe looks in directions with a share of their x^2 in x^2 +
// y^2.
TESSERA_FN float alpha_towards(const LayeredBsdf& bsdf, float share) {
    return sqrt_(lerp_(square_(bsdf.alpha_y), square_(bsdf.alpha_x), share));
}

// Mean over all directions of layered_albedo: for an anisotropic lobe over four of an eighth of a
// turn.
TESSERA_FN SplitAlbedo layered_albedo_mean(const LayeredBsdf& bsdf) {
    if (bsdf.alpha_x == bsdf.alpha_y) return ggx_albedo_mean(albedo_row(bsdf.alpha_x));
    const float squared_cosines[4] = {0.961940f, 0.691342f, 0.308658f, 0.038060f};
    SplitAlbedo sum;
    sum.scale = sum.bias = 0.0f;
    for (u32 at = 0; at < 4; ++at) {
        const SplitAlbedo mean =
            ggx_albedo_mean(albedo_row(alpha_towards(bsdf, squared_cosines[at])));
        sum.scale = fma_(0.25f, mean.scale, sum.scale);
        sum.bias = fma_(0.25f, mean.bias, sum.bias);
    }
    return sum;
}

TESSERA_FN SplitAlbedo layered_albedo(const LayeredBsdf& bsdf, Vec3 direction) {
    float alpha = bsdf.alpha_x;
    if (bsdf.alpha_x != bsdf.alpha_y) {
        const float x2 = direction.x * direction.x;
        const float y2 = direction.y * direction.y;
        const float both = x2 + y2;
        alpha = alpha_towards(bsdf, both > 1e-12f ? x2 / both : 0.5f);
    }
    return ggx_albedo(albedo_row(alpha), abs_(direction.z));
}

// Where rough refraction lies in the tables of its loss. A brushed lobe has one roughness for all
// directions: facets across the grain lose light from along it too.
TESSERA_FN LossRow layered_loss_row(const LayeredBsdf& bsdf) {
    return loss_row(alpha_towards(bsdf, 0.5f), bsdf.eta);
}

TESSERA_FN float multiple_energy_between(float f0, float f90, float mean_total) {
    const float mean_fresnel = fma_(f90 - f0, 1.0f / 21.0f, f0);
    return mean_fresnel * mean_fresnel * mean_total / fma_(-mean_fresnel, 1.0f - mean_total, 1.0f);
}

// Share that the dielectric interface reflects in all.
TESSERA_FN float layered_dielectric_albedo(const LayeredBsdf& bsdf, SplitAlbedo albedo) {
    const float single = fma_(bsdf.dielectric_f0, albedo.scale, bsdf.dielectric_f90 * albedo.bias);
    return fma_(bsdf.dielectric_multiple, 1.0f - split_total(albedo), single);
}

// What the coat reflects of light from a cosine, in all.
TESSERA_FN float coat_albedo(float alpha, float cosine) {
    const SplitAlbedo albedo = ggx_albedo(albedo_row(alpha), cosine);
    return fma_(0.04f, albedo.scale, albedo.bias);
}

// The coat and the sheen; returns what the coat leaves.
TESSERA_FN void make_top(const LayeredSurface& surface, LayeredBsdf& bsdf) {
    bsdf.coat = surface.clearcoat;
    bsdf.coat_alpha = max_(square_(surface.clearcoat_roughness), ALPHA_MIN);
    bsdf.coat_normal = surface.clearcoat_normal;
    bsdf.coat_wo = local_from_world(basis_about(bsdf.coat_normal), bsdf.wo);
    bsdf.coat_root = smith_root(square_(bsdf.coat_alpha), bsdf.coat_wo.z);
    if (!(bsdf.coat_wo.z > 0.0f)) bsdf.coat = 0.0f;
    const float coated =
        bsdf.coat > 0.0f ? bsdf.coat * coat_albedo(bsdf.coat_alpha, bsdf.coat_wo.z) : 0.0f;
    bsdf.sheen_color = splat(0.0f);
    bsdf.under = 1.0f - coated;
    bsdf.share[LOBE_COAT] = coated;
    bsdf.share[LOBE_SHEEN] = 0.0f;
    bsdf.sheen = make_sheen(surface.sheen_roughness);
    if (is_black(surface.sheen_color)) return;
    const float albedo = sheen_albedo(surface.sheen_roughness, bsdf.wo.z);
    bsdf.sheen_color = surface.sheen_color * (bsdf.under / max_(albedo, 1.0f));
    const float reflected = min_(albedo, 1.0f);
    bsdf.share[LOBE_SHEEN] = mean_component(bsdf.sheen_color) * reflected;
    bsdf.under *= 1.0f - max_component(surface.sheen_color) * reflected;
}

// F0 and F90 of the interface. A film tints both the dielectric and the metal. Returns what the
// lobe of multiple scattering gives back: a mix of the two, as in make_bsdf.
TESSERA_FN Vec3 make_interface(const LayeredSurface& surface, float mean_total, LayeredBsdf& bsdf) {
    Vec3 dielectric = surface.f0;
    Vec3 metal = surface.base_color;
    if (surface.iridescence > 0.0f) {
        dielectric = film_f0(surface.film, dielectric, surface.iridescence, bsdf.wo.z);
        metal = film_f0(surface.film, metal, surface.iridescence, bsdf.wo.z);
    }
    bsdf.f0 = lerp3(dielectric, metal, surface.metallic);
    bsdf.f90 = lerp_(surface.f90, 1.0f, surface.metallic);
    bsdf.dielectric_f0 = max_component(dielectric);
    bsdf.dielectric_f90 = surface.f90;
    bsdf.dielectric_multiple = multiple_energy_between(bsdf.dielectric_f0, surface.f90, mean_total);
    const Vec3 below = vec3(multiple_energy_between(dielectric.x, surface.f90, mean_total),
                            multiple_energy_between(dielectric.y, surface.f90, mean_total),
                            multiple_energy_between(dielectric.z, surface.f90, mean_total));
    const Vec3 above =
        vec3(multiple_energy(metal.x, mean_total), multiple_energy(metal.y, mean_total),
             multiple_energy(metal.z, mean_total));
    return lerp3(below, above, surface.metallic);
}

// The lobe that gives back what rough refraction loses inside (Kulla and Conty 2017), for a surface
// that lets a share `passing` through. Nothing is lost from outside, so what is lost inside cannot
// go through reciprocally: all of it is reflected. Returns how much that is.
TESSERA_FN float make_inside(LayeredBsdf& bsdf, float passing) {
    bsdf.inside_multiple = 0.0f;
    if (!(bsdf.eta < 1.0f && bsdf.alpha_x > ALPHA_MIN && passing > 0.0f)) return 0.0f;
    const LossRow row = layered_loss_row(bsdf);
    const float brushed = fma_(-BRUSHED_GAIN, 1.0f - bsdf.alpha_y / bsdf.alpha_x, 1.0f);
    const float lost = passing * brushed * refraction_loss(row, bsdf.wo.z);
    bsdf.inside_multiple = lost * INVERSE_PI / max_(refraction_loss_mean(row), 1e-6f);
    return lost;
}

// Share of the light at `wo` that passes from inside a refracting surface, estimated: if smooth,
// what Fresnel's term leaves; the rougher, the nearer to the mean over all directions.
TESSERA_FN float passed_outwards(const LayeredBsdf& bsdf) {
    const float smooth = 1.0f - schlick(bsdf.dielectric_f0, bsdf.dielectric_f90,
                                        schlick_cosine(bsdf.eta, bsdf.wo.z));
    const float rough = sqrt_(max_(bsdf.alpha_x - ALPHA_MIN, 0.0f));
    return lerp_(smooth, square_(bsdf.eta), rough);
}

// Probabilities in proportion to what each lobe will give, in bsdf.share.
TESSERA_FN void make_shares(LayeredBsdf& bsdf, SplitAlbedo here, float spread,
                            float diffuse_transmission) {
    const float mirror =
        bsdf.eta < 1.0f
            ? mean_component(schlick3(bsdf.f0, bsdf.f90, schlick_cosine(bsdf.eta, bsdf.wo.z)))
            : mean_component(fma3(bsdf.f0, here.scale, splat(bsdf.f90 * here.bias)));
    const float passed = bsdf.eta < 1.0f ? passed_outwards(bsdf)
                                         : 1.0f - fma_(bsdf.dielectric_f0, here.scale,
                                                       bsdf.dielectric_f90 * here.bias);
    bsdf.share[LOBE_SPECULAR] = max_(bsdf.under * mirror, 1e-6f);
    bsdf.share[LOBE_DIFFUSE] = spread;
    // Never none where something goes through, even if the mean says total reflection.
    bsdf.share[LOBE_TRANSMISSION] = mean_component(bsdf.transmission) * max_(passed, 0.05f);
    bsdf.share[LOBE_DIFFUSE_TRANSMISSION] = diffuse_transmission;
    float sum = 0.0f;
    for (u32 lobe = 0; lobe < LOBES; ++lobe) sum += bsdf.share[lobe];
    const float scale = 1.0f / sum;
    for (u32 lobe = 0; lobe < LOBES; ++lobe) bsdf.share[lobe] *= scale;
}

// `out.z` must be positive.
TESSERA_FN LayeredBsdf make_layered(const LayeredSurface& surface, Vec3 wo) {
    LayeredBsdf bsdf;
    bsdf.wo = wo;
    const float alpha = max_(square_(surface.roughness), ALPHA_MIN);
    bsdf.alpha_x = lerp_(alpha, 1.0f, square_(surface.anisotropy));
    bsdf.alpha_y = alpha;
    bsdf.wo_root = layered_root(bsdf, wo);
    bsdf.straight = !surface.refracts || abs_(surface.eta - 1.0f) < STRAIGHT_RATIO;
    bsdf.eta = bsdf.straight ? 1.0f : surface.eta;
    bsdf.is_pane = surface.is_pane;
    make_top(surface, bsdf);
    const SplitAlbedo mean = layered_albedo_mean(bsdf);
    const SplitAlbedo here = layered_albedo(bsdf, wo);
    const float mean_total = split_total(mean);
    Vec3 series = make_interface(surface, mean_total, bsdf);
    bsdf.wo_lost = 1.0f - split_total(here);
    bsdf.wo_below = 1.0f - layered_dielectric_albedo(bsdf, here);

    // What is below the interface: a share `passing` goes through, the rest is diffuse and partly
    // let through.
    const float passing = surface.transmission * (1.0f - surface.metallic);
    const float staying = (1.0f - surface.metallic) * (1.0f - surface.transmission) * bsdf.under;
    const float per_lost = INVERSE_PI / max_(1.0f - mean_total, 1e-6f);
    const float per_below = INVERSE_PI / max_(1.0f - layered_dielectric_albedo(bsdf, mean), 1e-6f);
    // A brushed lobe loses less than a round one of the roughness that a direction sees: a fit to
    // its furnace.
    series = series * fma_(-BRUSHED_GAIN, 1.0f - bsdf.alpha_y / bsdf.alpha_x, 1.0f);
    // A refracted lobe takes what its facets lose.
    series = series * (bsdf.straight ? bsdf.under : bsdf.under * (1.0f - passing));
    const Vec3 diffuse = surface.base_color * (staying * (1.0f - surface.diffuse_transmission));
    const Vec3 diffuse_transmission =
        surface.diffuse_transmission_color * (staying * surface.diffuse_transmission);
    bsdf.transmission = surface.base_color * (passing * bsdf.under);
    const bool scatters_through = bsdf.straight && !bsdf.is_pane;
    const Vec3 transmission_lost =
        scatters_through ? bsdf.transmission * (1.0f - bsdf.dielectric_multiple) : splat(0.0f);
    bsdf.multiple = series * per_lost;
    bsdf.transmission_multiple = transmission_lost * per_lost;
    bsdf.diffuse = diffuse * per_below;
    bsdf.diffuse_transmission = diffuse_transmission * per_below;
    const float inside = make_inside(bsdf, passing * bsdf.under);
    make_shares(bsdf, here,
                mean_component(series) * bsdf.wo_lost + mean_component(diffuse) * bsdf.wo_below +
                    inside,
                mean_component(transmission_lost) * bsdf.wo_lost +
                    mean_component(diffuse_transmission) * bsdf.wo_below);
    return bsdf;
}

// One half vector of the interface: the pdf of the light that it mirrors, and how much of that
// leaves unshadowed.
struct Facet {
    float mirrored;
    float kept;  // G2 / G1
};

TESSERA_FN Facet facet_of(const LayeredBsdf& bsdf, Vec3 half, Vec3 mirrored) {
    const float smith = fma_(mirrored.z, bsdf.wo_root, bsdf.wo.z * layered_root(bsdf, mirrored));
    Facet facet;
    facet.mirrored = layered_distribution(bsdf, half) * 0.5f / (bsdf.wo.z + bsdf.wo_root);
    facet.kept = mirrored.z > 0.0f ? mirrored.z * (bsdf.wo.z + bsdf.wo_root) / smith : 0.0f;
    return facet;
}

// Light that a facet in total reflection would shadow is reflected all the same: it has nowhere
// else to go.
TESSERA_FN float kept_inside(const LayeredBsdf& bsdf, float kept, float fresnel) {
    return bsdf.eta < 1.0f ? lerp_(kept, 1.0f, fresnel) : kept;
}

TESSERA_FN Vec3 mirrored_at(Vec3 wo, Vec3 half) { return fma3(half, 2.0f * dot(wo, half), -wo); }

TESSERA_FN void add_coat(const LayeredBsdf& bsdf, Vec3 wi, BsdfValue& result) {
    if (!(bsdf.coat > 0.0f)) return;
    const Vec3 coat_wi = local_from_world(basis_about(bsdf.coat_normal), wi);
    if (!(coat_wi.z > 0.0f)) return;
    const Vec3 half = normalize_or(bsdf.coat_wo + coat_wi, vec3(0.0f, 0.0f, 1.0f));
    const float alpha2 = square_(bsdf.coat_alpha);
    const float distribution = ggx_distribution(alpha2, half) * 0.5f;
    const float smith =
        fma_(coat_wi.z, bsdf.coat_root, bsdf.coat_wo.z * smith_root(alpha2, coat_wi.z));
    const float fresnel = schlick(0.04f, 1.0f, saturate_(dot(bsdf.coat_wo, half)));
    result.value = result.value + splat(bsdf.coat * fresnel * distribution * coat_wi.z / smith);
    result.pdf = fma_(bsdf.share[LOBE_COAT], distribution / (bsdf.coat_wo.z + bsdf.coat_root),
                          result.pdf);
}

TESSERA_FN void add_sheen(const LayeredBsdf& bsdf, Vec3 wi, BsdfValue& result) {
    if (!(bsdf.share[LOBE_SHEEN] > 0.0f)) return;
    const Vec3 half = normalize_or(bsdf.wo + wi, vec3(0.0f, 0.0f, 1.0f));
    result.value = fma3(bsdf.sheen_color, sheen_value(bsdf.sheen, bsdf.wo.z, wi.z, half.z) * wi.z,
                        result.value);
    result.pdf = fma_(bsdf.share[LOBE_SHEEN], INVERSE_TWO_PI, result.pdf);
}

TESSERA_FN void add_reflection(const LayeredBsdf& bsdf, Vec3 wi, BsdfValue& result) {
    const Vec3 half = normalize_or(bsdf.wo + wi, vec3(0.0f, 0.0f, 1.0f));
    const Facet facet = facet_of(bsdf, half, wi);
    const Vec3 fresnel =
        schlick3(bsdf.f0, bsdf.f90, schlick_cosine(bsdf.eta, saturate_(dot(bsdf.wo, half))));
    const float single =
        facet.mirrored * kept_inside(bsdf, facet.kept, max_component(fresnel)) * bsdf.under;
    const SplitAlbedo there = layered_albedo(bsdf, wi);
    const float lost = bsdf.wo_lost * (1.0f - split_total(there)) * wi.z;
    const float below = bsdf.wo_below * (1.0f - layered_dielectric_albedo(bsdf, there)) * wi.z;
    result.value =
        result.value + fma3(fresnel, single, fma3(bsdf.multiple, lost, bsdf.diffuse * below));
    if (bsdf.inside_multiple > 0.0f)
        result.value = result.value + splat(bsdf.inside_multiple * wi.z *
                                            refraction_loss(layered_loss_row(bsdf), wi.z));
    result.pdf = fma_(bsdf.share[LOBE_SPECULAR], facet.mirrored, result.pdf);
    result.pdf = fma_(bsdf.share[LOBE_DIFFUSE], wi.z * INVERSE_PI, result.pdf);
}

// Through the interface without being bent: the mirrored lobe, on the other side.
TESSERA_FN void add_straight(const LayeredBsdf& bsdf, Vec3 wi, BsdfValue& result) {
    const Vec3 mirrored = vec3(wi.x, wi.y, -wi.z);
    const Vec3 half = normalize_or(bsdf.wo + mirrored, vec3(0.0f, 0.0f, 1.0f));
    const Facet facet = facet_of(bsdf, half, mirrored);
    const float fresnel =
        schlick(bsdf.dielectric_f0, bsdf.dielectric_f90, saturate_(dot(bsdf.wo, half)));
    const float lost = bsdf.wo_lost * (1.0f - split_total(layered_albedo(bsdf, wi))) * mirrored.z;
    const Vec3 single = bsdf.transmission * ((1.0f - fresnel) * facet.mirrored * facet.kept);
    result.value = result.value + fma3(bsdf.transmission_multiple, lost, single);
    result.pdf = fma_(bsdf.share[LOBE_TRANSMISSION], facet.mirrored, result.pdf);
}

// Through it by Snell's law (Walter et al. 2007). A facet lets through all that it does not
// reflect, so that nothing is lost from outside; for what is lost inside see make_inside.
TESSERA_FN void add_refraction(const LayeredBsdf& bsdf, Vec3 wi, BsdfValue& result) {
    Vec3 half = normalize_or(-fma3(wi, bsdf.eta, bsdf.wo), vec3(0.0f, 0.0f, 1.0f));
    if (half.z < 0.0f) half = -half;
    const float here = dot(bsdf.wo, half);
    const float there = dot(wi, half);
    if (!(here > 0.0f && there < 0.0f)) return;
    const Facet facet = facet_of(bsdf, half, mirrored_at(bsdf.wo, half));
    const float bend = fma_(bsdf.eta, there, here);
    const float pdf =
        4.0f * here * facet.mirrored * square_(bsdf.eta) * -there / max_(square_(bend), 1e-20f);
    const float fresnel =
        schlick(bsdf.dielectric_f0, bsdf.dielectric_f90, schlick_cosine(bsdf.eta, saturate_(here)));
    const float passed = fma_(-fresnel, kept_inside(bsdf, facet.kept, fresnel), 1.0f);
    result.value = fma3(bsdf.transmission, pdf * passed, result.value);
    result.pdf = fma_(bsdf.share[LOBE_TRANSMISSION], pdf, result.pdf);
}

// Reflection or transmission and sampling pdf towards `wi`.
TESSERA_FN BsdfValue layered_evaluate(const LayeredBsdf& bsdf, Vec3 wi) {
    BsdfValue result;
    result.value = splat(0.0f);
    result.pdf = 0.0f;
    if (wi.z > 0.0f) {
        add_coat(bsdf, wi, result);
        add_sheen(bsdf, wi, result);
        add_reflection(bsdf, wi, result);
    } else if (wi.z < 0.0f) {
        if (bsdf.share[LOBE_TRANSMISSION] > 0.0f && bsdf.straight && !bsdf.is_pane)
            add_straight(bsdf, wi, result);
        if (bsdf.share[LOBE_TRANSMISSION] > 0.0f && !bsdf.straight)
            add_refraction(bsdf, wi, result);
        if (bsdf.share[LOBE_DIFFUSE_TRANSMISSION] > 0.0f) {
            const float below = 1.0f - layered_dielectric_albedo(bsdf, layered_albedo(bsdf, wi));
            result.value =
                fma3(bsdf.diffuse_transmission, bsdf.wo_below * below * -wi.z, result.value);
            result.pdf =
                fma_(bsdf.share[LOBE_DIFFUSE_TRANSMISSION], -wi.z * INVERSE_PI, result.pdf);
        }
    }
    return result;
}

// Share of light, a channel, that goes straight through a pane towards `wo`.
TESSERA_FN Vec3 pane_share(const LayeredBsdf& bsdf) {
    const float fresnel =
        schlick(bsdf.dielectric_f0, bsdf.dielectric_f90, saturate_(bsdf.wo.z));
    const Vec3 share = bsdf.transmission * (1.0f - fresnel);
    return vec3(saturate_(share.x), saturate_(share.y), saturate_(share.z));
}

// The same without the rest of the surface.
TESSERA_FN Vec3 pane_share_of(const LayeredSurface& surface, Vec3 wo) {
    LayeredBsdf bsdf;
    bsdf.wo = wo;
    make_top(surface, bsdf);
    const Vec3 f0 = surface.iridescence > 0.0f
                        ? film_f0(surface.film, surface.f0, surface.iridescence, wo.z)
                        : surface.f0;
    bsdf.dielectric_f0 = max_component(f0);
    bsdf.dielectric_f90 = surface.f90;
    bsdf.transmission =
        surface.base_color * (surface.transmission * (1.0f - surface.metallic) * bsdf.under);
    return pane_share(bsdf);
}

// A half vector distributed as the normals visible from `wo`; see sample_visible_normal.
TESSERA_FN Vec3 sample_layered_normal(const LayeredBsdf& bsdf, Vec2 random) {
    const Vec3 wo = bsdf.wo;
    const Vec3 stretched = normalize(vec3(wo.x * bsdf.alpha_x, wo.y * bsdf.alpha_y, wo.z));
    const float z = fma_(1.0f - random.y, 1.0f + stretched.z, -stretched.z);
    const float radius = sqrt_(max_(0.0f, fma_(-z, z, 1.0f)));
    const SinCos angle = sincos_turns(random.x);
    const Vec3 cap = vec3(fma_(radius, angle.cosine, stretched.x),
                          fma_(radius, angle.sine, stretched.y), z + stretched.z);
    return normalize_or(vec3(cap.x * bsdf.alpha_x, cap.y * bsdf.alpha_y, max_(0.0f, cap.z)),
                        vec3(0.0f, 0.0f, 1.0f));
}

// The direction behind a facet; the facet itself where it reflects totally.
TESSERA_FN Vec3 refracted_at(const LayeredBsdf& bsdf, Vec3 half) {
    const float cosine = dot(bsdf.wo, half);
    const float inverse = 1.0f / bsdf.eta;
    const float squared = 1.0f - fma_(-cosine, cosine, 1.0f) * inverse * inverse;
    if (!(squared > 0.0f)) return half;
    return normalize(fma3(half, fma_(cosine, inverse, -sqrt_(squared)), bsdf.wo * -inverse));
}

TESSERA_FN Vec3 sample_lobe(const LayeredBsdf& bsdf, u32 lobe, Vec2 random) {
    if (lobe == LOBE_COAT) {
        const Vec3 half = sample_visible_normal(bsdf.coat_alpha, bsdf.coat_wo, random);
        return world_from_local(basis_about(bsdf.coat_normal), mirrored_at(bsdf.coat_wo, half));
    }
    if (lobe == LOBE_SHEEN) {
        const float z = random.x;
        const float radius = sqrt_(max_(0.0f, fma_(-z, z, 1.0f)));
        const SinCos angle = sincos_turns(random.y);
        return vec3(radius * angle.cosine, radius * angle.sine, z);
    }
    if (lobe == LOBE_DIFFUSE || lobe == LOBE_DIFFUSE_TRANSMISSION) {
        const Vec3 upper = sample_cosine(random);
        return vec3(upper.x, upper.y, lobe == LOBE_DIFFUSE ? upper.z : -upper.z);
    }
    const Vec3 half = sample_layered_normal(bsdf, random);
    if (lobe == LOBE_TRANSMISSION && !bsdf.straight) return refracted_at(bsdf, half);
    const Vec3 mirrored = mirrored_at(bsdf.wo, half);
    return vec3(mirrored.x, mirrored.y, lobe == LOBE_TRANSMISSION ? -mirrored.z : mirrored.z);
}

// Whether a direction is on the side of a lobe.
TESSERA_FN bool lobe_reaches(u32 lobe, Vec3 wi) {
    return lobe >= LOBE_TRANSMISSION ? wi.z < 0.0f : wi.z > 0.0f;
}

// A direction that a lobe gave.
struct LobeDirection {
    u32 lobe;
    Vec3 wi;
};

// Chooses a lobe by `choice` and a direction by `random`.
TESSERA_FN LobeDirection layered_direction(const LayeredBsdf& bsdf, float choice, Vec2 random) {
    u32 lobe = LOBE_SPECULAR;
    float from = 0.0f;
    for (u32 at = 0; at < LOBES; ++at) {
        const float share = bsdf.share[at];
        if (choice >= from && share > 0.0f) lobe = at;
        from += share;
    }
    LobeDirection chosen;
    chosen.lobe = lobe;
    chosen.wi = sample_lobe(bsdf, lobe, random);
    return chosen;
}

// A chosen direction with what layered_evaluate says of it. Invalid where the direction is on the
// wrong side.
TESSERA_FN BsdfSample layered_sample_of(LobeDirection chosen, BsdfValue value) {
    BsdfSample sample;
    sample.wi = chosen.wi;
    sample.pdf = value.pdf;
    sample.valid = lobe_reaches(chosen.lobe, chosen.wi) && value.pdf > 0.0f;
    sample.weight = value.value * (1.0f / max_(value.pdf, 1e-30f));
    return sample;
}

TESSERA_FN BsdfSample layered_sample(const LayeredBsdf& bsdf, float choice, Vec2 random) {
    const LobeDirection chosen = layered_direction(bsdf, choice, random);
    return layered_sample_of(chosen, layered_evaluate(bsdf, chosen.wi));
}
