"""What is sent of a template: its text, its values, and the files beside it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from .gltf import files_of
from .uploads import Source

StrPath = Union[str, "os.PathLike[str]"]
Value = Union[str, int, float, bool, "Sequence[str]", "Sequence[int]", "Sequence[float]"]
"""A value of a parameter."""

_OPENJD = (".yaml", ".yml", ".json")
_TEXT_MAX = 1 << 20


def form(
    template: StrPath | None,
    preset: str | None,
    values: Mapping[str, Value] | None,
    name: str | None = None,
) -> tuple[dict[str, Any], str]:
    """The form of a request without its files, and the folder in which these are.

    Raises:
        ValueError: Not one of template and preset is given, or the template is too long.
        OSError: The template cannot be read.
    """
    made: dict[str, Any] = {"set": dict(values or {})}
    if name is not None:
        made["name"] = name
    if (template is None) == (preset is None):
        raise ValueError("either a template or a preset has to be given")
    if template is None:
        return {**made, "preset": preset}, ""
    path = os.fspath(template)
    with open(path, encoding="utf-8") as stream:
        text = stream.read(_TEXT_MAX + 1)
    if len(text) > _TEXT_MAX:
        raise ValueError(f"{path} is longer than {_TEXT_MAX} characters")
    made["template"] = text
    if path.lower().endswith(_OPENJD):
        made["openjd"] = True
    return made, os.path.dirname(path)


def gather(
    folder: str, named: Iterable[str], more: Iterable[StrPath]
) -> tuple[list[dict[str, Any]], list[Source]]:
    """Files with their paths beside the template, as a form lists them, and their bytes: those that
    are named, what scenes among them name, and more.

    Raises:
        SceneError: A scene cannot be sent.
        OSError: A file cannot be read.
        ValueError: A file is not in the folder.
    """
    places: dict[str, str] = {}
    for path in named:
        here = os.path.join(folder, path)
        places[path] = here
        if path.lower().endswith((".gltf", ".glb")):
            within = path[: path.rfind("/") + 1]
            places.update((within + other, place) for other, place in files_of(here))
    for one in more:
        place = os.fspath(one)
        path = os.path.relpath(place, folder or ".").replace(os.sep, "/")
        if path.startswith("../"):
            raise ValueError(f"{place} is not in the folder of the template")
        places[path] = place
    sources = {path: Source.of_file(place) for path, place in sorted(places.items())}
    listed = [
        {"path": path, "hash": source.hash, "length": source.length}
        for path, source in sources.items()
    ]
    return listed, list(sources.values())
