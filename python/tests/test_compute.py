"""Compute jobs of a real farm, with arrays of NumPy in and out."""

from __future__ import annotations

import os
import tempfile
import unittest
import uuid
from typing import TYPE_CHECKING, Any

from tessera_farm import (
    BadAnswer, FromJob, JobFailed, Kernel, Malformed, NotFound, Output, Render,
)  # fmt: skip
from tessera_farm.compute import prepare, read_array

from .support import ROOT, FarmTest

if TYPE_CHECKING:
    import numpy
else:
    try:
        import numpy
    except ImportError:
        numpy = None

EXAMPLES = os.path.join(ROOT, "examples", "compute")


@unittest.skipIf(numpy is None, "NumPy is not there")
class SpecTest(unittest.TestCase):
    """What is submitted; no farm is needed."""

    def test_arrays_of_every_type_are_written_as_they_are(self) -> None:
        types = "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 ?".split() + ["c8", "c16"]
        for kind in types:
            array = numpy.arange(6).reshape(2, 3).astype(kind)
            for given in (
                array,
                array.T,
                array[:, ::2],
                array.astype(array.dtype.newbyteorder(">")),
            ):
                spec, sources, _ = prepare(Kernel("builtin:merge", (6,), {"a": given}))
                data = sources[0].data
                assert data is not None
                back = read_array(data)
                self.assertTrue(numpy.array_equal(back, given), kind)
                self.assertEqual(spec["inputs"][0]["shape"], list(given.shape))
                self.assertEqual(spec["inputs"][0]["length"], len(data))
        self.assertRaises(ValueError, prepare, Kernel("builtin:merge", (1,), {"a": ["text"]}))

    def test_arguments_keep_their_type(self) -> None:
        arguments: dict[str, Any] = {
            "a": 3,
            "b": 0.5,
            "c": True,
            "d": 2**63,
            "e": ("f32", [1, 2.5]),
        }
        spec, _, _ = prepare(Kernel("builtin:merge", (1,), arguments=arguments))
        numbers = [argument["value"]["numbers"] for argument in spec["arguments"]]
        self.assertEqual(numbers[0], [{"Integer": 3}])
        self.assertEqual(numbers[1:3], [[{"Real": 0.5}], [{"Integer": 1}]])
        self.assertEqual(numbers[3:], [[{"Unsigned": 2**63}], [{"Integer": 1}, {"Real": 2.5}]])
        bads: list[Any] = [float("nan"), float("inf"), "word", None]
        for bad in bads:
            kernel = Kernel("builtin:merge", (1,), arguments={"a": bad})
            self.assertRaises(ValueError, prepare, kernel)

    def test_ptx_says_what_it_needs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.ptx")
            for target, wanted in (("sm_90a", ([9, 0], "only")), ("sm_120", ([12, 0], "newer"))):
                with open(path, "w", encoding="ascii") as stream:
                    stream.write(f"// .version 1.0\n.version 8.4\n.target {target}\n")
                spec, sources, _ = prepare(Kernel(path, (4,)))
                self.assertEqual(spec["ptx"]["version"], [8, 4])
                self.assertEqual((spec["ptx"]["capability"], spec["ptx"]["reach"]), wanted)
                self.assertEqual(spec["program"]["Ptx"]["hash"], sources[0].hash)

    def test_results_that_are_no_arrays_are_bad_answers(self) -> None:
        good = prepare(Kernel("builtin:merge", (1,), {"a": numpy.zeros(4)}))[1][0].data
        assert good is not None
        huge = good.replace(b"(4,), ", b"(4000000000000,), ".ljust(6))
        objects = good.replace(b"'<f8'", b"'|O' ")
        for data in (b"", b"\x93NUMPY", good[:-1], good[:40], huge, objects, b"\0" * 200):
            self.assertRaises(BadAnswer, read_array, data)


@unittest.skipIf(numpy is None, "NumPy is not there")
class ComputeTest(FarmTest):
    """Built-in kernels, which every device runs."""

    def test_arrays_go_in_and_come_out(self) -> None:
        random = numpy.random.default_rng(1)
        a, b = (random.random((30, 40, 3), dtype=numpy.float32) for _ in range(2))
        merged = self.farm.compute(
            Kernel(
                "builtin:merge", (40, 30), {"a": a, "b": b},
                {"weight_a": 0.25, "weight_b": numpy.float32(0.75)}, channels=3,
            ),
            timeout=120,
        )  # fmt: skip
        wanted = numpy.float32(0.25) * a + numpy.float32(0.75) * b
        self.assertEqual((merged.shape, str(merged.dtype)), ((30, 40, 3), "float32"))
        self.assertLess(float(numpy.abs(merged - wanted).max()), 1e-6)

    def test_words_and_files_are_taken_as_by_the_command_line(self) -> None:
        image = numpy.arange(64 * 64, dtype=numpy.float32).reshape(64, 64)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "image.npy")
            numpy.save(path, image)
            kernel = Kernel("builtin:resize", (32, 32), {"image": path}, {"filter": "box"})
            small = self.farm.compute(kernel, timeout=120)
        boxes = image.reshape(32, 2, 32, 2).mean((1, 3))
        self.assertLess(float(numpy.abs(small - boxes).max()), 1e-2)

    def test_a_result_can_be_one_value_and_of_a_frame(self) -> None:
        ones = numpy.ones((8, 8), numpy.float32)
        kernel = Kernel(
            "builtin:merge", (8, 8), {"a": ones, "b": ones}, {"weight_a": 1.5, "weight_b": 0.5},
            reduce="sum", frames="3-4",
        )  # fmt: skip
        job = self.farm.submit(kernel, name="sum")
        self.farm.wait(job, timeout=120)
        for frame in (3, 4, None):
            total = self.farm.results(job, frame)[""]
            self.assertEqual((total.shape, float(total)), ((), 128.0))
        self.assertRaises(BadAnswer, self.farm.results, job, 5)
        self.assertEqual(self.farm.kernel_text(job), "")

    def test_frames_of_a_job_are_inputs_of_another(self) -> None:
        ones = numpy.ones((8, 8), numpy.float32)
        merge = Kernel(
            "builtin:merge", (8, 8), {"a": ones, "b": ones}, {"weight_a": 1.5, "weight_b": 0.5}
        )
        first = self.farm.submit(merge, name="first")
        again = Kernel(
            "builtin:merge", (8, 8), {"a": FromJob(first), "b": ones},
            {"weight_a": 10, "weight_b": 1},
        )  # fmt: skip
        second = self.farm.submit(again, name="second")
        self.assertEqual([wait.job for wait in self.farm.detail(second).after], [first])
        self.farm.wait(second, timeout=120)
        found = self.farm.results(second)[""]
        self.assertTrue(numpy.array_equal(found, 21 * ones))
        wrong = Kernel("builtin:merge", (8, 8), {"a": FromJob(first, "flux"), "b": ones})
        with self.assertRaisesRegex(Malformed, "no output `flux`"):
            self.farm.submit(wrong)
        nothing = Kernel("builtin:merge", (8, 8), {"a": FromJob(str(uuid.uuid4())), "b": ones})
        self.assertRaises(NotFound, self.farm.submit, nothing)

    def test_a_rendered_frame_is_an_input(self) -> None:
        scene = os.path.join(ROOT, "scenes", "library", "cornell-box.gltf")
        film = self.farm.submit(Render(scene, width=16, height=12, spp=1))
        total = Kernel(
            "builtin:resize", (4, 3), {"image": FromJob(film)}, {"filter": "box"}, channels=3
        )
        small = self.farm.compute(total, timeout=120)
        self.assertEqual(small.shape, (3, 4, 3))
        self.assertGreater(float(small.mean()), 0.0)

    def test_wrong_kernels_are_told(self) -> None:
        several = Kernel("builtin:merge", (1,), outputs=[Output("a", "f32"), Output("b", "f32")])
        self.assertRaises(ValueError, self.farm.compute, several)
        with self.assertRaisesRegex(Malformed, "domain"):
            self.farm.compute(Kernel("builtin:merge", (1 << 21, 1 << 21)))
        with self.assertRaises(JobFailed) as failed:
            self.farm.compute(Kernel("builtin:nothing", (4,)), timeout=120)
        self.assertIn("nothing", failed.exception.note)

    def test_kernels_of_ones_own_are_described(self) -> None:
        # A farm of processors has no device for it: it waits, and says for what.
        source = os.path.join(EXAMPLES, "monte_carlo.cu")
        outputs = [Output("total", "f64", reduce="sum"), Output("id", "u32", channels=3)]
        job = self.farm.submit(Kernel(source, (1000,), outputs=outputs), name="own")
        spec = self.farm.detail(job).spec["kind"]["Compute"]
        self.assertEqual(spec["program"]["Cuda"]["path"], "monte_carlo.cu")
        self.assertEqual([output["name"] for output in spec["outputs"]], ["id", "total"])
        self.assertEqual(spec["outputs"][1]["reduction"], "sum")
        self.farm.cancel(job)
