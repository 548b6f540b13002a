"""Pictures and their errors, for the benches that compare frames: EXR files in, FLIP and relMSE
out.
"""

from pathlib import Path

import numpy as np
import OpenEXR
from flip_evaluator import evaluate


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
    """Mean FLIP error (NVIDIA's own, of the pictures as sRGB, at its default distance)."""
    return evaluate(display(reference), display(test), "LDR", applyMagma=False)[1]


def relative_mse(reference: np.ndarray, test: np.ndarray) -> float:
    """With the floor of `tessera diff`."""
    return float(np.mean((test - reference) ** 2 / (reference**2 + 0.01)))
