"""The metallic-roughness material of docs/kernels.md as a Mitsuba BSDF, from its formulas; its
albedo tables are integrated here.
"""

import numpy as np
import mitsuba as mi
import drjit as dr

DIELECTRIC_F0 = 0.04
ALPHA_MIN = 1e-3
STEPS = 64


def albedo_tables(steps=STEPS, samples=160):
    """GGX's directional albedo as F0 * a + b over (perceptual roughness, cosine), and both
    cosine-weighted means.
    """
    k = (np.arange(samples) + 0.5) / samples
    u, v = (x.ravel() for x in np.meshgrid(k, k))
    table = np.zeros((steps, steps, 2))
    for i, roughness in enumerate(np.linspace(0, 1, steps)):
        alpha = max(roughness * roughness, ALPHA_MIN)
        for j, cosine in enumerate(np.linspace(0, 1, steps)):
            c = max(cosine, 1e-4)
            out = np.array([np.sqrt(1 - c * c), 0, c])
            # Visible normals by Heitz 2018: a disk, warped.
            vh = np.array([alpha * out[0], 0, out[2]])
            vh /= np.linalg.norm(vh)
            t1 = np.array([0, 1.0, 0])
            t2 = np.cross(vh, t1)
            r, phi = np.sqrt(u), 2 * np.pi * v
            p1, p2 = r * np.cos(phi), r * np.sin(phi)
            s = 0.5 * (1 + vh[2])
            p2 = (1 - s) * np.sqrt(np.maximum(0, 1 - p1 * p1)) + s * p2
            h = (
                p1[:, None] * t1
                + p2[:, None] * t2
                + np.sqrt(np.maximum(0, 1 - p1 * p1 - p2 * p2))[:, None] * vh
            )
            h = np.stack([alpha * h[:, 0], alpha * h[:, 1], np.maximum(h[:, 2], 1e-9)], -1)
            h /= np.linalg.norm(h, axis=-1, keepdims=True)
            facing = h @ out
            z = 2 * facing * h[:, 2] - out[2]
            root = lambda x: np.sqrt(alpha**2 + (1 - alpha**2) * x * x)
            # G2 / G1(out), height-correlated.
            up = np.maximum(z, 1e-9)
            share = np.where(z > 0, up * (c + root(c)) / (up * root(c) + c * root(up)), 0)
            grazing = (1 - np.clip(facing, 0, 1)) ** 5
            table[i, j] = np.mean(share * (1 - grazing)), np.mean(share * grazing)
    cosine = np.linspace(0, 1, steps)
    weights = 2 * cosine
    mean = (
        np.trapezoid(table * weights[None, :, None], cosine, axis=1)
        if hasattr(np, "trapezoid")
        else np.trapz(table * weights[None, :, None], cosine, axis=1)
    )
    return table, mean


TABLE, MEAN = albedo_tables()


def lookup(table, *coordinates):
    """Linear interpolation in a table over [0, 1]^n whose first and last entries stand at 0 and 1.
    """
    n = table.shape[0]
    inner = [(dr.clip(c, 0, 1) * (n - 1) + 0.5) / n for c in coordinates]
    return inner


class GltfMaterial(mi.BSDF):
    def __init__(self, base, roughness, metallic):
        mi.BSDF.__init__(self, mi.Properties())
        self.base, self.roughness, self.metallic = base, roughness, metallic
        wrap = dict(wrap_mode=dr.WrapMode.Clamp, filter_mode=dr.FilterMode.Linear)
        self.albedo = mi.Texture2f(mi.TensorXf(TABLE.astype(np.float32)), **wrap)
        self.albedo_mean = mi.Texture1f(mi.TensorXf(MEAN.astype(np.float32)), **wrap)
        self.m_components = [
            mi.BSDFFlags.DiffuseReflection | mi.BSDFFlags.FrontSide,
            mi.BSDFFlags.GlossyReflection | mi.BSDFFlags.FrontSide,
        ]
        self.m_flags = self.m_components[0] | self.m_components[1]

    def split(self, roughness, cosine, active):
        column, row = lookup(TABLE, cosine, roughness)
        return self.albedo.eval(mi.Point2f(column, row), active)

    def split_mean(self, roughness, active):
        return self.albedo_mean.eval(mi.Float(lookup(MEAN, roughness)[0]), active)

    def evaluate(self, si, wo, active):
        color, metal = self.base.eval(si, active), self.metallic.eval_1(si, active)
        alpha = dr.maximum(dr.square(self.roughness.eval_1(si, active)), ALPHA_MIN)
        roughness = dr.sqrt(alpha)
        f0 = dr.lerp(mi.Color3f(DIELECTRIC_F0), color, metal)
        ci, co = mi.Frame3f.cos_theta(si.wi), mi.Frame3f.cos_theta(wo)
        active = active & (ci > 0) & (co > 0)
        h = dr.normalize(si.wi + wo)
        a2 = alpha * alpha
        D = a2 / (dr.pi * dr.square(h.x * h.x + h.y * h.y + a2 * h.z * h.z))
        root = lambda c: dr.sqrt(a2 + (1 - a2) * c * c)
        F = f0 + (1 - f0) * (1 - dr.clip(dr.dot(si.wi, h), 0, 1)) ** 5
        single = F * (D * 0.5 * co / dr.maximum(ci * root(co) + co * root(ci), 1e-12))

        mean, here, there = (
            self.split_mean(roughness, active),
            self.split(roughness, ci, active),
            self.split(roughness, co, active),
        )
        total = lambda s: s[0] + s[1]

        def series(f):
            m = f + (1 - f) / 21
            return m * m * total(mean) / (1 - m * (1 - total(mean)))

        lost = (1 - total(here)) * (1 - total(there))
        multiple = series(f0) * lost * (dr.inv_pi * co / dr.maximum(1 - total(mean), 1e-6))
        energy = series(mi.Float(DIELECTRIC_F0))
        reflected = lambda s: DIELECTRIC_F0 * s[0] + s[1] + energy * (1 - total(s))
        matte = (
            color
            * (1 - metal)
            * (
                (1 - reflected(here))
                * (1 - reflected(there))
                / dr.maximum(1 - reflected(mean), 1e-6)
                * dr.inv_pi
                * co
            )
        )

        share = dr.clip(
            dr.mean(f0 * here[0] + here[1])
            / dr.maximum(
                dr.mean(f0 * here[0] + here[1]) + dr.mean(color * (1 - metal)) + 0.05, 1e-6
            ),
            0.1,
            0.95,
        )
        visible = D * 0.5 / dr.maximum(ci + root(ci), 1e-12)
        pdf = share * visible + (1 - share) * co * dr.inv_pi
        return (
            dr.select(active, single + multiple + matte, 0),
            dr.select(active, pdf, 0),
            alpha,
            share,
        )

    def sample(self, ctx, si, choice, random, active):
        _, _, alpha, share = self.evaluate(si, mi.Vector3f(0, 0, 1), active)
        specular = choice < share
        m, _ = mi.MicrofacetDistribution(mi.MicrofacetType.GGX, alpha, True).sample(si.wi, random)
        wo = dr.select(specular, mi.reflect(si.wi, m), mi.warp.square_to_cosine_hemisphere(random))
        value, pdf, _, _ = self.evaluate(si, wo, active)
        result = mi.BSDFSample3f()
        result.wo, result.pdf, result.eta = wo, pdf, 1.0
        result.sampled_type = dr.select(
            specular,
            mi.UInt32(+mi.BSDFFlags.GlossyReflection),
            mi.UInt32(+mi.BSDFFlags.DiffuseReflection),
        )
        result.sampled_component = dr.select(specular, mi.UInt32(1), mi.UInt32(0))
        return result, dr.select(active & (pdf > 0), value / pdf, 0)

    def eval(self, ctx, si, wo, active):
        return self.evaluate(si, wo, active)[0]

    def pdf(self, ctx, si, wo, active):
        return self.evaluate(si, wo, active)[1]

    def eval_pdf(self, ctx, si, wo, active):
        value, pdf, _, _ = self.evaluate(si, wo, active)
        return value, pdf

    def to_string(self):
        return "GltfMaterial[]"
