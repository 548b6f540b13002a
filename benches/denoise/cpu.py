"""CPU seconds of denoising one 1920 x 1080 frame, of Tessera and of Open Image Denoise.

    python cpu.py TESSERA SCENE [ROUNDS]

TESSERA is the program, for SCENE any scene will do (the library's Cornell box was measured). Every
round renders the frame with 2 samples and depth 1, with `--denoise` and without: the difference is
what denoising takes, with the larger film. Then Open Image Denoise denoises the same noisy picture
with albedo and normal (HDR, its highest quality), twice: the second time its filter is warm. Times
are user and system, of all threads. The least of all rounds counts, because other programs on the
machine make them longer.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from pyoidn.denoise import denoise

sys.path.append(str(Path(__file__).parent.parent))
from pictures import layers, picture  # noqa: E402


def seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def rendered(program: str, scene: str, out: Path, *more: str) -> float:
    before = seconds(resource.RUSAGE_CHILDREN)
    size = ["--size", "1920x1080", "--spp", "2", "--depth", "1", "--device", "cpu", "-q"]
    aovs = ["--aov", "albedo,normal,depth"]
    subprocess.run([program, "render", scene, "-o", str(out), *size, *aovs, *more], check=True)
    return seconds(resource.RUSAGE_CHILDREN) - before


def denoised(noisy: Path) -> float:
    frame = layers(noisy)
    color = picture(frame, ["R", "G", "B"])
    guides = [
        picture(frame, [f"albedo.{part}" for part in "RGB"]),
        picture(frame, [f"normal.{part}" for part in "XYZ"]),
    ]
    times = []
    for _ in range(2):
        before = seconds(resource.RUSAGE_SELF)
        denoise(color, *guides, hdr=True)
        times.append(seconds(resource.RUSAGE_SELF) - before)
    return min(times)


def main() -> None:
    program, scene = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    plain, ours, theirs = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            plain.append(rendered(program, scene, Path(folder) / "plain.exr"))
            ours.append(rendered(program, scene, Path(folder) / "denoised.exr", "--denoise"))
            theirs.append(denoised(Path(folder) / "plain.exr"))
            print(f"noisy {plain[-1]:.2f} s, denoised {ours[-1]:.2f} s, OIDN {theirs[-1]:.2f} s")
    taken = min(ours) - min(plain)
    print(f"Tessera {taken:.2f} s, OIDN {min(theirs):.2f} s: {taken / min(theirs):.2f} times")


if __name__ == "__main__":
    main()
