"""How many samples, and how much time, uniform sampling needs for the error of a frame that was
sampled to a noise.

    python compare.py FOLDER SAMPLES NAME...

FOLDER holds NAME-reference.exr, NAME-noise.exr and, for each N of SAMPLES (ascending, in one
argument), NAME-N.exr of so many samples, each with the JSON of `render`. Errors are against the
reference: of blocks of 16 x 16 pixels, the mean of |picture - reference| summed over the channels,
by the root of the reference's sum (what `--noise` is about), of which the 95th percentile, the
greatest and the mean are told; and relMSE. Between the uniform frames' samples the error is a power
of them. A ratio below 1 says that sampling to a noise needed less; `>` that even the uniform frame
of the most samples is worse.
"""

import json
import sys
from pathlib import Path

import numpy as np
import OpenEXR

BLOCK = 16
ERRORS = ["p95", "max", "mean", "relMSE"]


def picture(path: Path) -> np.ndarray:
    """Red, green and blue."""
    with OpenEXR.File(str(path), separate_channels=True) as file:
        channels = file.channels()
        return np.stack([np.array(channels[name].pixels) for name in "RGB"], -1).astype(np.float64)


def errors(test: np.ndarray, reference: np.ndarray) -> list[float]:
    """In the order of ERRORS."""
    apart = np.abs(test - reference).sum(-1) / (np.sqrt(np.maximum(reference.sum(-1), 0)) + 1e-3)
    height, width = apart.shape
    corners = [(y, x) for y in range(0, height, BLOCK) for x in range(0, width, BLOCK)]
    blocks = [apart[y : y + BLOCK, x : x + BLOCK].mean() for y, x in corners]
    relative = np.mean((test - reference) ** 2 / (reference**2 + 0.01))
    return [
        float(np.percentile(blocks, 95)),
        float(max(blocks)),
        float(np.mean(blocks)),
        float(relative),
    ]


def samples_for(error: float, counts: list[int], uniform: list[float]) -> tuple[str, float]:
    """Samples of a uniform frame with this error, of frames with so many; and whether it is more
    than that.
    """
    if error < min(uniform):
        return ">", float(counts[-1])
    place = next(i for i in range(1, len(counts)) if uniform[i] <= error or i == len(counts) - 1)
    low, high = uniform[place - 1], uniform[place]
    share = np.log(error / low) / np.log(high / low)
    return "", float(
        np.exp(np.log(counts[place - 1]) + share * np.log(counts[place] / counts[place - 1]))
    )


def main() -> None:
    folder, counts, names = (
        Path(sys.argv[1]),
        [int(spp) for spp in sys.argv[2].split()],
        sys.argv[3:],
    )
    print(
        "| scene | mean spp | error: "
        + ", ".join(ERRORS)
        + " | samples over uniform's for the same "
        + ", ".join(ERRORS)
        + " | time, the same |"
    )
    print("|---|---|---|---|---|")
    for name in names:
        reference = picture(folder / f"{name}-reference.exr")
        frame = lambda kind: (
            picture(folder / f"{name}-{kind}.exr"),
            json.loads((folder / f"{name}-{kind}.json").read_text()),
        )
        uniform = [frame(spp) for spp in counts]
        test, about = frame("noise")
        found = errors(test, reference)
        mean_spp = about["samples"] / (reference.shape[0] * reference.shape[1])
        tables = [errors(shown, reference) for shown, _ in uniform]
        seconds = np.polyfit(counts, [said["render_s"] for _, said in uniform], 1)
        samples, times = [], []
        for column, error in enumerate(found):
            more, needed = samples_for(error, counts, [row[column] for row in tables])
            less = "< " if more else ""
            samples.append(f"{less}{mean_spp / needed:.2f}")
            times.append(f"{less}{about['render_s'] / np.polyval(seconds, needed):.2f}")
        shown = ", ".join(f"{error:.3g}" for error in found)
        print(f"| {name} | {mean_spp:.0f} | {shown} | {', '.join(samples)} | {', '.join(times)} |")


if __name__ == "__main__":
    main()
