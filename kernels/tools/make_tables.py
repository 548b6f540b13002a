"""Makes the constant tables of kernels/source: sRGB decoding, directional albedo of GGX and of
sheen, the loss of rough refraction, inverse distributions of the pixel filters. Standard library
only; run from the repository root:

    python3 kernels/tools/make_tables.py

The tables are part of the kernels' fingerprint: making them again on another machine may change
their last digits, so they are kept in the repository and made again only on purpose.
"""

import math
import struct
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "source"
PER_LINE = 6


def f32(value):
    """The nearest float32 as a C literal that reads back exactly."""
    rounded = struct.unpack("f", struct.pack("f", value))[0]
    return float.hex(rounded).replace("0000000p", "p") + "f"


def write(name, comment, tables):
    lines = [f"// {line}" for line in comment]
    lines += [
        "// Made by kernels/tools/make_tables.py.",
        "#pragma once",
        "",
        '#include "compiler.h"',
        "",
    ]
    for declaration, values in tables:
        lines.append(f"TESSERA_TABLE float {declaration} = {{")
        for start in range(0, len(values), PER_LINE):
            lines.append("    " + ", ".join(f32(v) for v in values[start : start + PER_LINE]) + ",")
        lines.append("};")
    (SOURCE / name).write_text("\n".join(lines) + "\n")


def srgb():
    """IEC 61966-2-1: linear value of each of 256 codes."""
    codes = [code / 255 for code in range(256)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in codes]


STEPS = 32  # of cosine and of perceptual roughness


def ggx_albedo(cosine, alpha, points=48):
    """(a, b) so that F0 * a + b is the directional albedo of single-scattering GGX with Schlick's
    Fresnel term: the mean of G2 / G1 over visible normals (Heitz 2018), split by (1 - v.h)^5
    (Karis 2013).
    """
    cosine = max(cosine, 1e-4)
    a2 = alpha * alpha
    root_o = math.sqrt(a2 + (1 - a2) * cosine * cosine)
    sine = math.sqrt(max(0.0, 1 - cosine * cosine))
    length = math.hypot(alpha * sine, cosine)
    up = cosine / length
    along = alpha * sine / length
    scale = bias = 0.0
    for i in range(points):
        # Spherical caps (Dupuy and Benyoub 2023).
        z = (1 - (i + 0.5) / points) * (1 + up) - up
        radius = math.sqrt(max(0.0, 1 - z * z))
        for j in range(points):
            angle = 2 * math.pi * (j + 0.5) / points
            hx, hy, hz = radius * math.cos(angle) + along, radius * math.sin(angle), z + up
            hx, hy = hx * alpha, hy * alpha
            inverse = 1 / math.sqrt(hx * hx + hy * hy + hz * hz)
            hx, hz = hx * inverse, hz * inverse
            dot = sine * hx + cosine * hz
            out = 2 * dot * hz - cosine
            if out <= 0:
                continue
            root_i = math.sqrt(a2 + (1 - a2) * out * out)
            share = out * (cosine + root_o) / (out * root_o + cosine * root_i)
            fresnel = (1 - min(1.0, dot)) ** 5
            scale += share * (1 - fresnel)
            bias += share * fresnel
    return scale / points**2, bias / points**2


def albedo():
    """Rows of rising roughness; in each, (a, b) for rising cosine. Then their cosine-weighted means
    per row.
    """
    table, mean = [], []
    for row in range(STEPS):
        alpha = max((row / (STEPS - 1)) ** 2, 1e-3)
        for column in range(STEPS):
            table += ggx_albedo(column / (STEPS - 1), alpha)
        # Exactly the mean of the piecewise linear function that the kernels interpolate, so that
        # energy is kept.
        entries = [
            (table[2 * (row * STEPS + c)], table[2 * (row * STEPS + c) + 1]) for c in range(STEPS)
        ]
        for part in range(2):
            total = 0.0
            for c in range(STEPS - 1):
                h = 1 / (STEPS - 1)
                x0, y0, y1 = c * h, entries[c][part], entries[c + 1][part]
                total += 2 * h * (x0 * (y0 + y1) / 2 + h * (y0 / 6 + y1 / 3))
            mean.append(total)
    return table, mean


SHEEN_ROUGHNESS_MIN = 0.07  # below it the lobe is narrower than uniform samples resolve


def sheen_value(out, cosine, half, roughness):
    """Reflection of the Charlie sheen without the cosine (Estevez and Kulla 2017), its visibility
    at most 1.
    """
    alpha = max(roughness, SHEEN_ROUGHNESS_MIN) ** 2
    fit = (1 - alpha) ** 2

    def mix(rough, smooth):
        return rough + (smooth - rough) * fit

    a, b, c = mix(21.5473, 25.3245), mix(3.82987, 3.32435), mix(0.19823, 0.16801)
    d, e = mix(-1.97760, -1.27393), mix(-4.32054, -4.85967)

    def shape(x):
        return a / (1 + b * x**c) + d * x + e

    def smith(x):
        return math.exp(shape(x)) if x < 0.5 else math.exp(2 * shape(0.5) - shape(1 - x))

    visibility = min(1.0, 1 / ((1 + smith(out) + smith(cosine)) * 4 * out * cosine))
    return (2 + 1 / alpha) * max(0.0, 1 - half * half) ** (0.5 / alpha) / (2 * math.pi) * visibility


def sheen_albedo(out, roughness, points=96):
    """Directional albedo of the sheen: the integral over the cosine to the light and half a turn.
    """
    out = max(out, 1e-4)
    sine_out = math.sqrt(max(0.0, 1 - out * out))
    total = 0.0
    for i in range(points):
        # More points towards the horizon, where the lobe lives: cosine = t^2.
        t = (i + 0.5) / points
        cosine = t * t
        sine = math.sqrt(1 - cosine * cosine)
        for j in range(points):
            between = sine_out * sine * math.cos(math.pi * (j + 0.5) / points) + out * cosine
            half = (out + cosine) / math.sqrt(max(1e-12, 2 + 2 * between))
            total += sheen_value(out, cosine, half, roughness) * cosine * 2 * t
    return total / points**2 * 2 * math.pi


def sheen():
    """Rows of rising roughness; in each the albedo of rising cosine."""
    return [
        sheen_albedo(column / (STEPS - 1), row / (STEPS - 1))
        for row in range(STEPS)
        for column in range(STEPS)
    ]


LOSS_COSINES, LOSS_ROUGHNESSES, LOSS_INDICES = 16, 10, 11
LOSS_LEAST = 0.1  # of sqrt(1 - ratio); an index nearer to 1 does not refract
ALPHA_MIN = 1e-3  # as in ggx.h


def refraction_loss(cosine, alpha, ratio, points=96):
    """Share of the light that refracting facets send to the wrong side, seen from the side of the
    larger index: what layered.h reflects to below the surface and refracts to above it. `ratio`:
    the index behind the surface over the one before it.
    """
    a2 = alpha * alpha
    root_o = math.sqrt(a2 + (1 - a2) * cosine * cosine)
    sine = math.sqrt(1 - cosine * cosine)
    length = math.hypot(alpha * sine, cosine)
    up = cosine / length
    along = alpha * sine / length
    f0 = ((ratio - 1) / (ratio + 1)) ** 2
    lost = 0.0
    for i in range(points):
        # Spherical caps, of which one half is enough.
        z = (1 - (i + 0.5) / points) * (1 + up) - up
        radius = math.sqrt(max(0.0, 1 - z * z))
        for j in range(points):
            angle = math.pi * (j + 0.5) / points
            hx, hy, hz = radius * math.cos(angle) + along, radius * math.sin(angle), z + up
            hx, hy = hx * alpha, hy * alpha
            inverse = 1 / math.sqrt(hx * hx + hy * hy + hz * hz)
            hx, hz = hx * inverse, hz * inverse
            dot = sine * hx + cosine * hz
            out = 2 * dot * hz - cosine
            squared = 1 - (1 - dot * dot) / (ratio * ratio)
            is_total = squared <= 0
            behind = 0.0 if is_total else math.sqrt(squared)
            fresnel = 1.0 if is_total else f0 + (1 - f0) * (1 - behind) ** 5
            kept = 0.0
            if out > 0:
                root_i = math.sqrt(a2 + (1 - a2) * out * out)
                kept = out * (cosine + root_o) / (out * root_o + cosine * root_i)
            reflected = fresnel * (kept + (1 - kept) * fresnel)
            if out <= 0:
                lost += reflected
            if not is_total and hz * (dot / ratio - behind) - cosine / ratio >= 0:
                lost += 1 - reflected
    return lost / points**2


def loss():
    """For rising sqrt(1 - ratio), rows of rising roughness; in each the loss of rising
    sqrt(cosine). Then the cosine-weighted means of the rows.
    """
    table, mean = [], []
    step = 1 / (LOSS_COSINES - 1)
    for index in range(LOSS_INDICES):
        root = LOSS_LEAST + (1 - LOSS_LEAST) * index / (LOSS_INDICES - 1)
        ratio = max(1 - root * root, 1e-4)
        for row in range(LOSS_ROUGHNESSES):
            alpha = ALPHA_MIN + (1 - ALPHA_MIN) * (row / (LOSS_ROUGHNESSES - 1)) ** 2
            # A smooth surface loses nothing that floats resolve. The first knot stands for what is
            # next to it: at grazing itself the loss is a narrow peak.
            entries = [
                refraction_loss((max(c, 0.5) * step) ** 2, alpha, ratio) if row > 0 else 0.0
                for c in range(LOSS_COSINES)
            ]
            table += entries
            # Exactly the mean of what the kernels interpolate: the integral of 4 t^3 times a
            # function that is linear in t = sqrt(cosine) between its knots.
            total = 0.0
            for c in range(LOSS_COSINES - 1):
                t0, t1, slope = c * step, (c + 1) * step, (entries[c + 1] - entries[c]) / step
                base = entries[c] - slope * t0
                total += base * (t1**4 - t0**4) + 0.8 * slope * (t1**5 - t0**5)
            mean.append(total)
    return table, mean


FILTER_STEPS = 128


def inverse_distribution(density, radius):
    """|x| beyond which a share (1 - k / FILTER_STEPS)^2 of a symmetric density on [-radius, radius]
    lies. The square puts more knots into the tail.
    """
    count = 200000
    step = radius / count
    sums, total = [0.0], 0.0
    for i in range(count):
        total += density((i + 0.5) * step)
        sums.append(total)
    knots, at = [], 0
    for k in range(FILTER_STEPS + 1):
        want = total * (1 - (1 - k / FILTER_STEPS) ** 2)
        while at < count and sums[at + 1] < want:
            at += 1
        if k == FILTER_STEPS:
            knots.append(radius)
        else:
            knots.append((at + (want - sums[at]) / (sums[at + 1] - sums[at])) * step)
    return knots


def gaussian(x):
    """Standard deviation 0.5 px, cut at 2 px."""
    return math.exp(-2 * x * x)


def blackman_harris(x):
    """Four terms over 3.3 px (Harris 1978)."""
    t = 2 * math.pi * (x / 3.3 + 0.5)
    return 0.35875 - 0.48829 * math.cos(t) + 0.14128 * math.cos(2 * t) - 0.01168 * math.cos(3 * t)


def write_sheen():
    write(
        "bsdf/sheen_table.h",
        [
            "Directional albedo of the Charlie sheen (Estevez and Kulla 2017): rows of rising "
            "perceptual roughness, in each the",
            "albedo of rising cosine, both uniform over [0, 1].",
        ],
        [(f"SHEEN_ALBEDO[{STEPS * STEPS}]", sheen())],
    )


def write_loss():
    table, mean = loss()
    rows = LOSS_ROUGHNESSES * LOSS_INDICES
    write(
        "bsdf/loss_table.h",
        [
            "Light that the facets of a refracting surface send to the wrong side, seen from the "
            "side of the larger index n: for",
            "sqrt(1 - 1 / n) from 0.1 to 1, rows of sqrt(alpha) from 0 to 1, in each the share of "
            "rising sqrt(cosine); and each row's",
            "cosine-weighted mean.",
        ],
        [
            (f"REFRACTION_LOSS[{rows * LOSS_COSINES}]", table),
            (f"REFRACTION_LOSS_MEAN[{rows}]", mean),
        ],
    )


def main():
    write(
        "material/srgb_table.h",
        ["Linear value of each sRGB code (IEC 61966-2-1)."],
        [("LINEAR_FROM_SRGB[256]", srgb())],
    )
    table, mean = albedo()
    write(
        "bsdf/albedo_table.h",
        [
            "Directional albedo of GGX, split so that F0 * a + b is the albedo under Schlick's "
            "Fresnel term with F0: rows of",
            "rising perceptual roughness, in each pairs (a, b) of rising cosine, "
            "both uniform over [0, 1]; and each row's",
            "cosine-weighted mean.",
        ],
        [(f"GGX_ALBEDO[{2 * STEPS * STEPS}]", table), (f"GGX_ALBEDO_MEAN[{2 * STEPS}]", mean)],
    )
    write_sheen()
    write_loss()
    write(
        "sampling/filter_table.h",
        [
            "Pixel filters: |x| in pixels beyond which a share (1 - k / 128)^2 "
            "of the filter lies, k from 0 to 128."
        ],
        [
            (f"GAUSSIAN_QUANTILE[{FILTER_STEPS + 1}]", inverse_distribution(gaussian, 2.0)),
            (
                f"BLACKMAN_HARRIS_QUANTILE[{FILTER_STEPS + 1}]",
                inverse_distribution(blackman_harris, 1.65),
            ),
        ],
    )


if __name__ == "__main__":
    main()
