"""TLS with the farm's own authority: trusted by its file, and by nothing else."""

from __future__ import annotations

import os
import time
from unittest import mock

from tessera_farm import Farm, Render, Unreachable

from .support import FarmTest, library


class TlsTest(FarmTest):
    """A farm whose address begins with https."""

    def test_jobs_are_submitted_watched_and_fetched(self) -> None:
        job = self.farm.submit(Render(library("cornell-box.gltf"), 32, 24, spp=1))
        self.assertEqual(list(self.farm.watch(job))[-1].job.state, "done")
        self.assertEqual(len(self.farm.fetch(job, "frames")), 1)

    def test_other_authorities_are_not_trusted(self) -> None:
        began = time.monotonic()
        with mock.patch.dict(os.environ):
            del os.environ["TESSERA_CA_FILE"]
            with Farm() as farm, self.assertRaisesRegex(Unreachable, "CERTIFICATE_VERIFY_FAILED"):
                farm.me()
        # That does not become better by trying.
        self.assertLess(time.monotonic() - began, 5)

    def test_plain_http_is_not_answered(self) -> None:
        address = os.environ["TESSERA_URL"].replace("https://", "http://")
        with Farm(address, quiet=2.0, within=4.0) as farm, self.assertRaises(Exception):
            farm.me()
