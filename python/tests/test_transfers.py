"""Transfers between this machine and a real farm, over a wire that is cut again and again."""

from __future__ import annotations

import os
import tempfile
import threading

from tessera_farm import Render
from tessera_farm.blake3 import of_file
from tessera_farm.uploads import Source, missing, send_all

from .support import Cut, FarmTest, library

CORNELL = library("cornell-box.gltf")


class UploadTest(FarmTest):
    """Files to the farm."""

    def test_an_upload_goes_on_where_it_was_cut(self) -> None:
        data = os.urandom(6 << 20)
        source = Source.of_bytes(data)
        told: list[int] = []
        with Cut(self.farm_url(), up=2 << 20, times=3) as cut:
            farm = self.through(cut)
            sent = send_all(farm._farm, [source], lambda now, _: told.append(now))
            self.assertEqual((sent, cut.cuts), (len(data), 3))
            self.assertEqual(missing(self.farm._farm, [source.hash]), [])
            # What arrived is not sent again: a wire holds some, and no more is lost at a cut.
            self.assertLess(cut.sent, len(data) * 2)
        self.assertEqual(told, sorted(told))
        self.assertEqual(told[-1], len(data))
        self.assertEqual(send_all(self.farm._farm, [source]), 0)

    def test_a_submit_survives_a_wire_that_is_cut(self) -> None:
        with Cut(self.farm_url(), up=300, times=4) as cut:
            farm = self.through(cut)
            job = farm.submit(Render(CORNELL, 16, 16, spp=1), name="cut")
            self.assertEqual(cut.cuts, 4)
        self.assertEqual(self.farm.wait(job, timeout=120).state, "done")

    def farm_url(self) -> str:
        """Where the farm is."""
        return os.environ["TESSERA_URL"]


class FetchTest(FarmTest):
    """Files from the farm."""

    job = ""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        # Large enough that a wire can be cut in the middle of a file.
        render = Render(CORNELL, 640, 480, spp=1, frames="1-4", formats=("exr", "png"))
        cls.job = cls.farm.submit(render, name="fetch")
        cls.farm.wait(cls.job, timeout=240)

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_frames_are_fetched_with_their_hashes_and_once(self) -> None:
        paths = self.farm.fetch(self.job, self.folder)
        names = [f"fetch.{n:04}.{kind}" for n in range(1, 5) for kind in ("exr", "png")]
        self.assertEqual([os.path.basename(path) for path in paths], names)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(names))
        files = [file for frame in self.farm.frames(self.job) for file in frame.files]
        for path, file in zip(paths, files):
            self.assertEqual(of_file(path), (file.hash, file.length))
        before = [os.stat(path).st_mtime_ns for path in paths]
        self.assertEqual(self.farm.fetch(self.job, self.folder), paths)
        self.assertEqual([os.stat(path).st_mtime_ns for path in paths], before)

    def test_frames_and_formats_can_be_chosen(self) -> None:
        paths = self.farm.fetch(self.job, self.folder, frames=[2, 9], formats=["png"])
        self.assertEqual([os.path.basename(path) for path in paths], ["fetch.0002.png"])

    def test_a_file_of_somebody_else_is_not_replaced(self) -> None:
        path = os.path.join(self.folder, "fetch.0001.png")
        with open(path, "wb") as stream:
            stream.write(b"mine")
        with self.assertRaises(FileExistsError):
            self.farm.fetch(self.job, self.folder, formats=["png"])
        with open(path, "rb") as stream:
            self.assertEqual(stream.read(), b"mine")
        self.assertEqual(len(self.farm.fetch(self.job, self.folder, overwrite=True)), 8)
        with open(path, "rb") as stream:
            self.assertEqual(stream.read(4), b"\x89PNG")

    def test_a_fetch_goes_on_where_it_was_cut(self) -> None:
        length = self.farm.frames(self.job)[0].files[0].length
        with Cut(os.environ["TESSERA_URL"], down=length // 3, times=4) as cut:
            farm = self.through(cut)
            paths = farm.fetch(self.job, self.folder, formats=["exr"], parallel=1)
            self.assertEqual((len(paths), cut.cuts), (4, 4))
        self.assertEqual(len(os.listdir(self.folder)), 4)
        for path, frame in zip(paths, self.farm.frames(self.job)):
            self.assertEqual(of_file(path)[0], frame.files[0].hash)

    def test_two_fetches_of_one_folder_do_not_meet(self) -> None:
        failed: list[Exception] = []

        def fetch() -> None:
            try:
                self.farm.fetch(self.job, self.folder)
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=fetch) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        self.assertEqual(failed, [])
        self.assertEqual(len(os.listdir(self.folder)), 8)

    def test_events_go_on_after_a_cut(self) -> None:
        with Cut(os.environ["TESSERA_URL"], down=2000, times=5) as cut:
            farm = self.through(cut)
            job = self.farm.submit(Render(CORNELL, 64, 64, spp=64, frames="1-6"))
            updates = list(farm.watch(job))
            self.assertGreater(cut.cuts, 0)
        self.assertEqual(updates[-1].job.state, "done")
        done = {frame.number for update in updates for frame in update.frames if frame.files}
        self.assertEqual(done, set(range(1, 7)))
