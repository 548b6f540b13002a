"""The files of a glTF scene: which they are, each within the scene's folder. Reads only the JSON,
and follows the same rules as `tessera submit`."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterable
from typing import Any, Union
from urllib.parse import unquote_to_bytes

from .errors import SceneError

_JSON_MAX = 512 << 20
_PATH_MAX = 1024
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_MESHOPT = ("EXT_meshopt_compression", "KHR_meshopt_compression")
_JSON_CHUNK = 0x4E4F534A

StrPath = Union[str, "os.PathLike[str]"]


def files_of(scene: StrPath) -> list[tuple[str, str]]:
    """The files of a scene: for each its path within the scene's folder, and where it is. The
    scene's own file comes first.

    Raises:
        SceneError: It is not glTF, names a file outside of its folder, or one that is not there.
    """
    path = os.fspath(scene)
    folder, name = os.path.split(os.path.abspath(path))
    document = _document(path)
    found, seen = [(name, path)], {name}
    unread = _placeholders(document)
    places = [
        (f"buffers[{index}].uri", buffer)
        for index, buffer in enumerate(_objects(document, "buffers"))
        if index not in unread
    ]
    images = _objects(document, "images")
    places += [(f"images[{index}].uri", image) for index, image in enumerate(images)]
    root = os.path.realpath(folder)
    for place, item in places:
        uri = item.get("uri")
        if not isinstance(uri, str) or uri[:5].lower() == "data:":
            continue
        relative = _confined(uri, f"{path}: {place}")
        if relative in seen:
            continue
        seen.add(relative)
        at = os.path.join(folder, *relative.split("/"))
        real = os.path.realpath(at)
        if os.path.commonpath([root, real]) != root:
            raise SceneError(f"{path}: {place}: {relative!r} is a link out of the scene's folder")
        if not os.path.isfile(real):
            raise SceneError(f"{path}: {place}: the file {relative!r} is not there")
        found.append((relative, at))
    return found


def _document(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as stream:
            head = stream.read(20)
            if head[:4] == b"glTF":
                if len(head) < 20:
                    raise SceneError(f"{path}: the file is cut")
                length, kind = struct.unpack("<II", head[12:20])
                if kind != _JSON_CHUNK or length > _JSON_MAX:
                    raise SceneError(f"{path}: its first chunk is not JSON, or too long")
                text = stream.read(length)
            else:
                text = head + stream.read(_JSON_MAX)
    except OSError as error:
        raise SceneError(f"{path}: {error.strerror or error}") from error
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SceneError(f"{path}: it is not glTF: {error}") from error
    if not isinstance(document, dict) or "asset" not in document:
        raise SceneError(f"{path}: it is not glTF: there is no `asset`")
    return document


def _objects(of: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = of.get(name, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise SceneError(f"`{name}` is not a list of objects")
    return items


def _meshopt(item: dict[str, Any]) -> dict[str, Any]:
    extensions = item.get("extensions")
    extensions = extensions if isinstance(extensions, dict) else {}
    for name in _MESHOPT:
        if isinstance(extensions.get(name), dict):
            found: dict[str, Any] = extensions[name]
            return found
    return {}


def _placeholders(document: dict[str, Any]) -> set[int]:
    """Buffers that only stand for the bytes of compressed views: nobody reads them."""
    buffers = _objects(document, "buffers")
    found = {at for at, one in enumerate(buffers) if _meshopt(one).get("fallback") is True}
    views = _objects(document, "bufferViews")
    compressed = [view for view in views if _meshopt(view)]
    found |= _numbers(view.get("buffer") for view in compressed)
    found -= _numbers(view.get("buffer") for view in views if not _meshopt(view))
    return found - _numbers(_meshopt(view).get("buffer") for view in compressed)


def _numbers(values: Iterable[Any]) -> set[int]:
    return {value for value in values if isinstance(value, int)}


def _confined(uri: str, place: str) -> str:
    """The path that a URI names, relative to the scene's folder and within it."""
    shown = uri if len(uri) <= 80 else uri[:80] + "..."
    scheme = _SCHEME.match(uri)
    if scheme:
        raise SceneError(f"{place}: {shown!r}: only `data:` and relative paths are read")
    try:
        path = unquote_to_bytes(uri).decode("utf-8")
    except UnicodeDecodeError as error:
        raise SceneError(f"{place}: {shown!r} is not UTF-8") from error
    parts = [part for part in path.split("/") if part != "."]
    outside = path.startswith("/") or ".." in parts or "" in parts
    strange = any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\\:" for c in path)
    confined = "/".join(parts)
    if outside or strange or not 1 <= len(confined.encode()) <= _PATH_MAX:
        raise SceneError(f"{place}: {shown!r} is not a path within the scene's folder")
    return confined
