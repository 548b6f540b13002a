"""Render jobs: a scene on this machine and how it is rendered, as the API wants them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .fetching import stem_of
from .gltf import StrPath, files_of
from .uploads import Source

Vector = tuple[float, float, float]

# Where an environment map is among a job's files.
_ENVIRONMENT_FOLDER = "tessera-environment"


@dataclass(frozen=True)
class LookAt:
    """A camera that stands somewhere and looks at something. Lengths are metres."""

    eye: Vector
    target: Vector
    up: Vector = (0.0, 1.0, 0.0)
    vfov: float = 45.0
    """Vertical field of view in degrees, above 0 and below 180."""

    def spec(self) -> dict[str, Any]:
        """As it is submitted."""
        places = {"eye": self.eye, "target": self.target, "up": self.up}
        of = {name: [float(value) for value in place] for name, place in places.items()}
        return {"LookAt": {**of, "vfov_degrees": float(self.vfov)}}


@dataclass(frozen=True)
class Render:
    """Frames of a scene. What is left out is as for `tessera submit`, but for the size, which does
    not follow the camera."""

    scene: StrPath
    """Path of a `.gltf` or `.glb` file. The files that it names are sent with it."""
    width: int = 800
    """Width of a frame in pixels."""
    height: int = 600
    """Height of a frame in pixels."""
    spp: int = 64
    """Samples a pixel; with `noise`, the most of them."""
    frames: str = "0"
    """Frames, such as `5`, `1-100` or `1-100x2`, and lists of these by comma."""
    fps: float = 24.0
    """Frames a second: frame N shows the time N / fps."""
    formats: Sequence[str] = ("exr",)
    """`exr`, `png`, `png16`, `jpeg`."""
    camera: None | str | int | LookAt = None
    """The scene's first camera, one by its name or number, or one of your own."""
    environment: None | str | Vector = None
    """Path of an `.hdr` or `.exr` map, or one linear radiance from everywhere. None: the scene's
    own lights, and white light where it has none."""
    noise: float | None = None
    """Noise at which a tile is finished."""
    denoise: bool = False
    """Whether the files show the denoised picture."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the job, as `detail(job).spec["kind"]["Render"]` shows them: `depth`, `aovs`,
    `tone_map` and so on."""


def prepare(render: Render) -> tuple[dict[str, Any], list[Source]]:
    """The job's `render` and its files, which are hashed: some 16 MB/s without the package
    `blake3`, and more than 1,000 with it.

    Raises:
        SceneError: The scene cannot be sent.
        OSError: A file cannot be read.
    """
    found = files_of(render.scene)
    environment: Any = "Auto"
    if isinstance(render.environment, str):
        extension = os.path.splitext(render.environment)[1].lower()
        path = f"{_ENVIRONMENT_FOLDER}/map{extension}"
        found.append((path, render.environment))
        environment = {"Map": {"path": path}}
    elif render.environment is not None:
        environment = {"Constant": [float(value) for value in render.environment]}
    sources = [Source.of_file(path) for _, path in found]
    spec: dict[str, Any] = {
        "scene": found[0][0],
        "files": [
            {"path": path, "hash": source.hash, "length": source.length}
            for (path, _), source in zip(found, sources)
        ],
        "width": render.width,
        "height": render.height,
        "spp": render.spp,
        "frames": render.frames,
        "fps": render.fps,
        "formats": list(render.formats),
        "camera": _camera(render.camera),
        "environment": environment,
        "noise": render.noise,
        "denoise": render.denoise,
        **render.options,
    }
    return spec, sources


def _camera(camera: None | str | int | LookAt) -> Any:
    if camera is None:
        return "Default"
    if isinstance(camera, LookAt):
        return camera.spec()
    return {"Index": camera} if isinstance(camera, int) else {"Named": camera}


def name_of(scene: StrPath) -> str:
    """A job's name, made of its scene's."""
    return stem_of(os.path.splitext(os.path.basename(os.fspath(scene)))[0])
