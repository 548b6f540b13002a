"""Compute jobs: a kernel over a domain, with arrays of NumPy in and out. NumPy is imported only
here, and only when an array is read or written."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from .errors import BadAnswer
from .uploads import Source

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

StrPath = Union[str, "os.PathLike[str]"]
Number = Union[bool, int, float]
Argument = Union[Number, str, tuple[str, Sequence[Number]]]
"""A number, a word of a built-in kernel, or the name of an element type and several numbers."""

_ELEMENTS = {
    "float16": "f16", "float32": "f32", "float64": "f64",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "bool": "bool", "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
_SIZES = {
    "f16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "u8": 1, "u16": 2, "u32": 4, "u64": 8, "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip
# Words that built-in kernels take in the place of a number.
_WORDS = {
    ("denoise", "pass"): ("first", "second"),
    ("resize", "filter"): ("box", "triangle", "mitchell", "lanczos"),
    ("tonemap", "curve"): ("standard", "pbr-neutral", "agx", "filmic"),
}
# Bytes of a chunk's values, at most.
_CHUNK_MAX = 16 << 20
_VERSION = re.compile(r"\.version\s+(\d+)\.(\d+)")
_TARGET = re.compile(r"\.target\s+(?:sm|compute)_(\d+)([af]?)")


@dataclass(frozen=True)
class Output:
    """A named output of a kernel."""

    name: str
    element: str
    """`f32`, `u8`, `complex64` and so on: docs/compute.md has all of them."""
    channels: int = 1
    """Values at each index, 1 to 64."""
    reduce: str | None = None
    """`sum`, `mean`, `min`, `max`, `argmin`, `argmax` or `count`; None keeps all values."""
    keys: int = 0
    """Keys of the reduction; 0 reduces all indices together."""

    def spec(self) -> dict[str, Any]:
        """As it is submitted."""
        return {
            "name": self.name,
            "element": self.element,
            "channels": self.channels,
            "reduction": self.reduce,
            "keys": self.keys,
        }


@dataclass(frozen=True)
class FromJob:
    """The frames of another job, as an input: each frame reads the frame of its number, or all of
    them the other job's only one. That job is waited for."""

    job: str
    """Id of the job: a render with EXR files, or a compute job."""
    output: str | None = None
    """Which of its named outputs, where it has several."""


@dataclass(frozen=True)
class Kernel:
    """What runs at every index, and over which."""

    program: StrPath
    """`builtin:NAME`, or the path of a kernel in CUDA C++ (`.cu`) or PTX (`.ptx`)."""
    domain: Sequence[int]
    """Width, height and depth of the domain; the last two may be left out."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """Arrays of NumPy, paths of `.npy` files, or frames of another job (`FromJob`), by the names of
    the kernel's variables."""
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    """Numbers by the names of the kernel's variables."""
    channels: int = 1
    """Values at each index, 1 to 64; of a kernel without named outputs."""
    element: str = "f32"
    """Type of the values; of a kernel without named outputs."""
    reduce: str | None = None
    """How values become one; of a kernel without named outputs."""
    outputs: Sequence[Output] = ()
    """Named outputs."""
    headers: Mapping[str, StrPath] = field(default_factory=dict)
    """Headers of a kernel in CUDA C++: their names in `#include`, and where they are."""
    frames: str = "1"
    """Frames, such as `1-100`. The kernel runs once for each."""
    steps: int = 1
    """Launches of a frame, with a fed input."""
    feed: str | None = None
    """The input that is the result of the frame or step before."""
    feed_from: str | None = None
    """The output that is fed, of a kernel with named outputs."""
    seed: int = 0
    """Seed of the random numbers, 0 to 2^64 - 1."""
    time_limit: int = 60
    """Longest time of a chunk on a device in seconds."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the job, as `detail(job).spec["kind"]["Compute"]` shows them: `chunk`,
    `block` and so on."""


def prepare(kernel: Kernel) -> tuple[dict[str, Any], list[Source], int]:
    """The job's `compute`, its files, and the bytes that a device needs for it.

    Raises:
        ValueError: An array is none that a kernel can read, or the domain is none.
        OSError: A file cannot be read.
    """
    domain = [int(axis) for axis in kernel.domain]
    if not 1 <= len(domain) <= 3 or min(domain) < 1:
        raise ValueError(f"a domain has one to three axes above 0, not {kernel.domain!r}")
    domain += [1] * (3 - len(domain))
    sources: list[Source] = []
    program, needs = _program(kernel, sources)
    spec: dict[str, Any] = {
        "program": program,
        "ptx": needs,
        "headers": [_asset(n, p, sources) for n, p in sorted(kernel.headers.items())],
        "inputs": [_input(n, a, sources) for n, a in sorted(kernel.inputs.items())],
        "arguments": [
            {"name": name, "value": _argument(program, name, value)}
            for name, value in sorted(kernel.arguments.items())
        ],
        "domain": dict(zip(("width", "height", "depth"), domain)),
        "channels": kernel.channels,
        "element": kernel.element,
        "reduction": kernel.reduce,
        "outputs": [output.spec() for output in sorted(kernel.outputs, key=lambda o: o.name)],
        "frames": kernel.frames,
        "steps": kernel.steps,
        "feed": kernel.feed,
        "feed_from": kernel.feed_from,
        "seed": kernel.seed,
        "time_limit_secs": kernel.time_limit,
        **kernel.options,
    }
    return spec, sources, _device_bytes(spec)


def _device_bytes(spec: Mapping[str, Any]) -> int:
    # The farm adds those of inputs from jobs.
    inputs = sum(int(one.get("length", 0)) for one in spec["inputs"])
    if spec["steps"] <= 1:
        return inputs + _CHUNK_MAX
    outputs = spec["outputs"] or [spec]
    index = sum(_SIZES.get(one["element"], 16) * int(one["channels"]) for one in outputs)
    domain = spec["domain"]
    return inputs + 2 * index * int(domain["width"] * domain["height"] * domain["depth"])


def _program(kernel: Kernel, sources: list[Source]) -> tuple[Any, dict[str, Any] | None]:
    path = os.fspath(kernel.program)
    if path.startswith("builtin:"):
        return {"Builtin": path[len("builtin:") :]}, None
    asset = _asset(os.path.basename(path), path, sources)
    if not path.lower().endswith(".ptx"):
        return {"Cuda": asset}, None
    with open(path, encoding="utf-8", errors="replace") as stream:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", stream.read(64 << 10), flags=re.DOTALL)
    version, target = _VERSION.search(text), _TARGET.search(text)
    if version is None or target is None:
        return {"Ptx": asset}, None
    capability = int(target.group(1))
    reach = {"a": "only", "f": "family", "": "newer"}[target.group(2)]
    return {"Ptx": asset}, {
        "version": [int(version.group(1)), int(version.group(2))],
        "capability": [capability // 10, capability % 10],
        "reach": reach,
    }


def _asset(name: str, path: StrPath, sources: list[Source]) -> dict[str, Any]:
    source = Source.of_file(path)
    sources.append(source)
    return {"path": name, "hash": source.hash, "length": source.length}


def _input(name: str, array: Any, sources: list[Source]) -> dict[str, Any]:
    if isinstance(array, FromJob):
        return {"name": name, "from": {"job": array.job, "output": array.output}}
    import numpy

    if isinstance(array, (str, os.PathLike)):
        source = Source.of_file(array)
        read = numpy.load(os.fspath(array), mmap_mode="r", allow_pickle=False)
        element, shape = _element(name, read.dtype), read.shape
    else:
        plain = numpy.ascontiguousarray(array).reshape(numpy.shape(array))
        element, shape = _element(name, plain.dtype), plain.shape
        stream = io.BytesIO()
        little = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        numpy.lib.format.write_array(stream, little, version=(1, 0), allow_pickle=False)
        source = Source.of_bytes(stream.getvalue())
    sources.append(source)
    return {
        "name": name,
        "hash": source.hash,
        "length": source.length,
        "element": element,
        "shape": [int(axis) for axis in shape],
    }


def _element(name: str, dtype: Any) -> str:
    element = _ELEMENTS.get(dtype.name)
    if element is None:
        raise ValueError(f"the input {name!r} has elements of {dtype}, which no kernel reads")
    return element


def _argument(program: Any, name: str, value: Argument) -> dict[str, Any]:
    if isinstance(value, str):
        words = _WORDS.get((program.get("Builtin", ""), name), ())
        if value not in words:
            raise ValueError(f"the argument {name!r} is not one of {', '.join(words) or 'words'}")
        return {"element": None, "numbers": [{"Integer": words.index(value)}]}
    if isinstance(value, tuple):
        element, numbers = value
        return {"element": element, "numbers": [_number(name, number) for number in numbers]}
    return {"element": None, "numbers": [_number(name, value)]}


def _number(name: str, value: Any) -> dict[str, Any]:
    # Numbers of NumPy are numbers too.
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (bool, int)):
        kind = "Integer" if -(2**63) <= value < 2**63 else "Unsigned"
        return {kind: int(value)}
    if isinstance(value, float) and abs(value) != float("inf") and value == value:
        return {"Real": value}
    raise ValueError(f"the argument {name!r} has {value!r}, which is no finite number")


def read_array(data: bytes) -> Array:
    """The array of a `.npy` file.

    Raises:
        BadAnswer: It is none, or of Python objects.
    """
    import numpy

    read = {(1, 0): numpy.lib.format.read_array_header_1_0}
    read[(2, 0)] = numpy.lib.format.read_array_header_2_0
    stream = io.BytesIO(data)
    try:
        shape, by_column, dtype = read[numpy.lib.format.read_magic(stream)](stream)
        # What the header says is not believed before the bytes are there.
        flat = numpy.frombuffer(data, dtype, offset=stream.tell())
        array: Array = flat.reshape(shape, order="F" if by_column else "C").copy()
    except (ValueError, EOFError, SyntaxError, KeyError, TypeError) as error:
        raise BadAnswer(f"a result is not an array: {error}") from error
    return array
