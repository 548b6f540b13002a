"""A table of FLIP and relMSE of noisy frames, of Tessera's denoised ones, and of Open Image Denoise's.

    python compare.py FOLDER NAME...

FOLDER holds NAME.exr, rendered with `--denoise --aov albedo,normal`, and NAME-reference.exr. Open Image Denoise gets the layer `noisy`
and the same guides, as they are (HDR, its highest quality). FLIP is NVIDIA's own, of the pictures as sRGB at its default distance.
"""

import sys
from pathlib import Path

import numpy as np
import OpenEXR
from flip_evaluator import evaluate
from pyoidn.denoise import denoise


def layers(path: Path) -> dict[str, np.ndarray]:
    """Channels of a frame by name."""
    with OpenEXR.File(str(path), separate_channels=True) as file:
        return {name: np.array(channel.pixels) for name, channel in file.channels().items()}


def picture(channels: dict[str, np.ndarray], names: list[str]) -> np.ndarray:
    """Three channels as one array."""
    return np.ascontiguousarray(np.stack([channels[name] for name in names], -1))


def display(linear: np.ndarray) -> np.ndarray:
    """As an sRGB screen shows it."""
    clipped = np.clip(linear, 0.0, 1.0)
    curve = 1.055 * clipped ** (1 / 2.4) - 0.055
    return np.where(clipped <= 0.0031308, clipped * 12.92, curve).astype(np.float32)


def flip(reference: np.ndarray, test: np.ndarray) -> float:
    """Mean FLIP error."""
    return evaluate(display(reference), display(test), "LDR", applyMagma=False)[1]


def relative_mse(reference: np.ndarray, test: np.ndarray) -> float:
    """With the floor of `tessera diff`."""
    return float(np.mean((test - reference) ** 2 / (reference**2 + 0.01)))


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    print("| scene | noisy | Tessera | OIDN | Tessera / noisy | OIDN / noisy | Tessera / OIDN | relMSE: noisy, Tessera, OIDN |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        frame = layers(folder / f"{name}.exr")
        reference = picture(layers(folder / f"{name}-reference.exr"), ["R", "G", "B"])
        noisy = picture(frame, ["noisy.R", "noisy.G", "noisy.B"])
        guides = [
            picture(frame, [f"albedo.{part}" for part in "RGB"]),
            picture(frame, [f"normal.{part}" for part in "XYZ"]),
        ]
        tests = [noisy, picture(frame, ["R", "G", "B"]), denoise(noisy, *guides, hdr=True)]
        a, b, c = (flip(reference, test) for test in tests)
        errors = ", ".join(f"{relative_mse(reference, test):.2g}" for test in tests)
        print(f"| {name} | {a:.4f} | {b:.4f} | {c:.4f} | {b / a:.2f} | {c / a:.2f} | {b / c:.2f} | {errors} |")


if __name__ == "__main__":
    main()
