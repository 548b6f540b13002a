"""A table of FLIP and relMSE of noisy frames, of Tessera's denoised ones, and of Open Image
Denoise's.

    python compare.py FOLDER NAME...

FOLDER holds NAME.exr, rendered with `--denoise --aov albedo,normal`, and NAME-reference.exr. Open
Image Denoise gets the layer `noisy` and the same guides, as they are (HDR, its highest quality).
FLIP is NVIDIA's own, of the pictures as sRGB at its default distance.
"""

import sys
from pathlib import Path

from pyoidn.denoise import denoise

sys.path.append(str(Path(__file__).parent.parent))
from pictures import flip, layers, picture, relative_mse  # noqa: E402


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    print(
        "| scene | noisy | Tessera | OIDN | Tessera / noisy | OIDN / noisy "
        "| Tessera / OIDN | relMSE: noisy, Tessera, OIDN |"
    )
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
        print(
            f"| {name} | {a:.4f} | {b:.4f} | {c:.4f} | {b / a:.2f} "
            f"| {c / a:.2f} | {b / c:.2f} | {errors} |"
        )


if __name__ == "__main__":
    main()
