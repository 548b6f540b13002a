"""A table of FLIP of frames of few samples, of this build and of another one.

    python compare.py FOLDER NAME...

FOLDER holds NAME-N.exr and NAME-N-other.exr of N samples, and NAME-reference.exr. A ratio below 1
says that this build's looks better.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))
from pictures import flip, layers, picture  # noqa: E402

SPP = [1, 4, 16, 64]


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    print("| scene | " + " | ".join(f"{spp} spp: this, other, ratio" for spp in SPP) + " |")
    print("|---|" + "---|" * len(SPP))
    for name in names:
        shown = lambda what: picture(layers(folder / f"{name}-{what}.exr"), list("RGB"))
        reference, cells = shown("reference"), []
        for spp in SPP:
            this, other = (flip(reference, shown(what)) for what in (spp, f"{spp}-other"))
            cells.append(f"{this:.4f}, {other:.4f}, {this / other:.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
