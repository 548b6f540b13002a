"""Jobs and nodes of a real farm: submitted, listed, changed, watched, drained."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import os
import tempfile
import threading
import time
import uuid

from tessera_farm import (
    AsyncFarm,
    Farm,
    JobFailed,
    LookAt,
    Malformed,
    NotAllowed,
    NotFound,
    NotSignedIn,
    Render,
    TimedOut,
)
from tessera_farm.uploads import missing

from .support import FarmTest, library

CORNELL = library("cornell-box.gltf")
# Longer than any test waits.
LONG = Render(CORNELL, 512, 512, spp=65_536, options={"tile": 32})
SMALL = Render(CORNELL, 32, 24, spp=1, frames="1-3", formats=("exr", "png"))


def external(folder: str) -> str:
    """A scene of the library with its buffers in files of their own."""
    with open(CORNELL, encoding="utf-8") as stream:
        document = json.load(stream)
    os.makedirs(os.path.join(folder, "data"), exist_ok=True)
    for index, buffer in enumerate(document["buffers"]):
        data = base64.b64decode(buffer["uri"].split(",", 1)[1])
        with open(os.path.join(folder, "data", f"buffer {index}.bin"), "wb") as stream:
            stream.write(data)
        buffer["uri"] = f"data/buffer%20{index}.bin"
    path = os.path.join(folder, "box.gltf")
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(document, stream)
    return path


class SubmitTest(FarmTest):
    """What is sent."""

    def test_a_scene_goes_with_the_files_that_it_names(self) -> None:
        # Who runs these tests submits the same files by the command line, and compares.
        scene = external("external")
        render = Render(scene, 48, 32, spp=2, formats=("exr",))
        job = self.farm.submit(render, name="external", priority=60)
        self.assertEqual(self.farm.wait(job, timeout=120).state, "done")
        spec = self.farm.detail(job).spec["kind"]["Render"]
        files = [file["path"] for file in spec["files"]]
        self.assertEqual(files, ["box.gltf", "data/buffer 0.bin"])
        self.assertEqual(missing(self.farm._farm, [file["hash"] for file in spec["files"]]), [])
        self.assertEqual(self.farm.job(job).priority, 60)

    def test_the_same_submit_again_makes_no_second_job(self) -> None:
        job, sent = str(uuid.uuid4()), []
        name = f"twice-{job}"
        for _ in range(2):
            again = self.farm.submit(
                SMALL, name=name, job=job, progress=lambda now, total: sent.append(total)
            )
            self.assertEqual(again, job)
        self.assertEqual([one.id for one in self.farm.jobs(name=name)], [job])
        self.farm.cancel(job)

    def test_options_reach_the_job(self) -> None:
        camera = LookAt((0, 1, 3), (0, 1, 0), vfov=30)
        render = Render(
            CORNELL, 40, 30, spp=4, camera=camera, environment=(1, 0.5, 0.25), denoise=True,
            options={"depth": 3, "aovs": ["albedo"]},
        )  # fmt: skip
        job = self.farm.submit(render, max_nodes=1)
        spec = self.farm.detail(job).spec["kind"]["Render"]
        self.assertEqual((spec["width"], spec["depth"], spec["aovs"]), (40, 3, ["albedo"]))
        self.assertEqual(spec["environment"], {"Constant": [1.0, 0.5, 0.25]})
        self.assertEqual(spec["camera"]["LookAt"]["eye"], [0.0, 1.0, 3.0])
        self.assertEqual(self.farm.wait(job, timeout=120).frames_done, 1)

    def test_a_job_waits_for_others(self) -> None:
        first = self.farm.submit(SMALL)
        second = self.farm.submit(SMALL, after=[f"{first}:frames"])
        third = self.farm.submit(SMALL, after=second, after_any=first)
        detail = self.farm.detail(third)
        self.assertEqual(
            [(one.job, one.until) for one in detail.after], [(second, "success"), (first, "end")]
        )
        by = [(one.job, one.until) for one in self.farm.detail(second).awaited_by]
        self.assertEqual(by, [(third, "success")])
        self.assertEqual(self.farm.wait(third, timeout=240).state, "done")
        detail = self.farm.detail(third)
        self.assertEqual([(one.over, one.state) for one in detail.after], [(True, "done")] * 2)
        self.assertEqual(self.farm.job(second).frames_done, 3)

    def test_what_cannot_be_waited_for_is_refused(self) -> None:
        unknown = str(uuid.uuid4())
        with self.assertRaisesRegex(NotFound, unknown):
            self.farm.submit(SMALL, after=unknown)
        self.assertRaises(ValueError, self.farm.submit, SMALL, after="film")
        self.assertRaises(ValueError, self.farm.submit, SMALL, after_any=f"{unknown}:frames")
        long = self.farm.submit(LONG)
        waits = self.farm.submit(SMALL, after=long)
        self.farm.cancel(long)
        with self.assertRaisesRegex(JobFailed, long):
            self.farm.wait(waits, timeout=60)
        with self.assertRaisesRegex(Malformed, "was cancelled"):
            self.farm.submit(SMALL, after=long)

    def test_what_the_farm_refuses_says_why(self) -> None:
        with self.assertRaisesRegex(Malformed, "spp"):
            self.farm.submit(Render(CORNELL, spp=0))
        with self.assertRaisesRegex(Malformed, "nothing"):
            self.farm.submit(Render(CORNELL, options={"nothing": 1}))
        self.assertRaises(NotFound, self.farm.job, str(uuid.uuid4()))
        self.assertRaises(ValueError, self.farm.job, "../nodes")
        with Farm(token="tsb1_nobody") as stranger:
            self.assertRaises(NotSignedIn, stranger.me)

    def test_a_viewer_may_look_and_change_nothing(self) -> None:
        form = {"role": "viewer", "ttl_secs": 600}
        _, told = self.farm._farm.ask("POST", "/api/v1/tokens/api", form, safe=False)
        with Farm(token=told["token"]) as viewer:
            self.assertEqual(viewer.me().role, "viewer")
            self.assertGreater(len(viewer.nodes()), 0)
            self.assertRaises(NotAllowed, viewer.submit, SMALL)


class CostsTest(FarmTest):
    """What was spent, and the rules of it."""

    def test_time_is_counted_and_has_the_price_of_the_rules(self) -> None:
        rules = {
            "currency": "EUR",
            "price": [{"per_hour": 3600.0}],
            "budget": [{"of": {"owner": "nobody"}, "amount": 5}],
        }
        self.farm.set_cost_rules(rules)
        self.assertEqual(self.farm.cost_rules()["price"][0]["per_hour"], 3600.0)
        # Long enough to take more than the millisecond that times are told in.
        job = self.farm.submit(Render(CORNELL, 128, 96, spp=16))
        self.farm.wait(job)
        done = self.farm.job(job)
        self.assertGreater(done.device_secs, 0)
        self.assertAlmostEqual(done.cost, done.device_secs, delta=0.01)
        costs = self.farm.costs()
        self.assertEqual((costs.currency, costs.budgets[0].spent), ("EUR", 0))
        self.assertGreaterEqual(sum(one.secs for one in costs.spent) + 0.01, done.device_secs)
        self.assertEqual(self.farm.costs("1999-12").spent, [])
        with self.assertRaisesRegex(Malformed, "month"):
            self.farm.costs("soon")
        with self.assertRaisesRegex(Malformed, "factor"):
            self.farm.set_cost_rules({"factor": -1})
        # Space has a price from now on, and is counted before the rules change again.
        self.farm.set_cost_rules({"storage_gb_month": 1e9})
        self.assertEqual(self.farm.costs().gb_month, 1e9)
        time.sleep(0.1)
        self.farm.set_cost_rules({})
        self.assertGreater(sum(one.cost for one in self.farm.costs().stored), 0)

    def test_a_job_begins_at_its_time(self) -> None:
        begins = int(time.time()) + 3
        job = self.farm.submit(SMALL, not_before=begins)
        self.assertIn("begins at", self.farm.job(job).note)
        self.farm.wait(job, timeout=120)
        self.assertGreaterEqual(time.time(), begins)


class JobsTest(FarmTest):
    """Lists and changes."""

    def test_lists_go_over_all_pages(self) -> None:
        prefix = f"page-{uuid.uuid4()}"
        made = {self.farm.submit(SMALL, name=f"{prefix}-{n}", priority=n) for n in range(5)}
        for rows in (1, 2, 5, 100):
            found = [job.id for job in self.farm.jobs(name=f"{prefix}-*", rows=rows)]
            self.assertEqual((len(found), set(found)), (5, made))
        ordered = [job.priority for job in self.farm.jobs(name=f"{prefix}-*", order="priority")]
        self.assertEqual(ordered, [4, 3, 2, 1, 0])
        self.assertEqual(len(list(self.farm.jobs(name=f"{prefix}-*", limit=2, rows=1))), 2)
        for job in made:
            self.farm.wait(job, timeout=120)
        self.assertEqual(len(list(self.farm.jobs(state=("done", "failed"), name=f"{prefix}-*"))), 5)
        self.assertEqual(sorted(self.farm.forget(*made).jobs), sorted(made))
        self.assertEqual(list(self.farm.jobs(name=f"{prefix}-*")), [])

    def test_jobs_are_changed_paused_resumed_and_cancelled(self) -> None:
        job = self.farm.submit(LONG, name="long")
        edited = self.farm.edit(job, name="longer", priority=70, max_nodes=1)
        self.assertEqual((edited.name, edited.priority), ("longer", 70))
        later = datetime.datetime(2999, 12, 1, 20, tzinfo=datetime.timezone.utc)
        self.farm.edit(job, not_before=later)
        self.assertEqual(self.farm.detail(job).spec["not_before"], 32_501_073_600)
        self.farm.edit(job, not_before=None)
        self.assertIsNone(self.farm.detail(job).spec["not_before"])
        self.assertEqual(self.farm.pause(job).jobs, [job])
        self.assertEqual(self.farm.job(job).state, "paused")
        self.assertEqual(self.farm.pause(job).unchanged, 1)
        self.assertEqual(self.farm.resume(job).jobs, [job])
        self.assertEqual(self.farm.change("cancel", [job], dry_run=True).jobs, [job])
        self.assertFalse(self.farm.job(job).ended)
        self.assertEqual(self.farm.cancel(job, reason="a test").jobs, [job])
        with self.assertRaises(JobFailed) as failed:
            self.farm.wait(job, timeout=30)
        self.assertEqual((failed.exception.job, failed.exception.state), (job, "cancelled"))
        self.assertEqual(self.farm.wait(job, check=False).state, "cancelled")
        self.assertEqual(self.farm.retry(job).jobs, [job])
        self.assertEqual(self.farm.cancel(job).jobs, [job])
        self.assertRaises(TypeError, self.farm.edit, job, owner="me")

    def test_nodes_are_listed_drained_and_given_work_again(self) -> None:
        node = next(node for node in self.farm.nodes() if node.state == "ready")
        self.assertEqual(node.devices[0]["kind"], "cpu")
        self.assertEqual(self.farm.node(node.name).id, node.id)
        try:
            self.assertTrue(self.farm.drain(node.id).drained)
            self.assertIn(self.farm.node(node.id).state, ("draining", "drained"))
        finally:
            self.assertFalse(self.farm.undrain(node.id).drained)
        self.assertRaises(NotFound, self.farm.drain, "no/such node")


class WatchTest(FarmTest):
    """What changes."""

    def test_a_job_is_watched_from_its_begin_to_its_end(self) -> None:
        job = self.farm.submit(SMALL)
        updates = list(self.farm.watch(job))
        self.assertEqual(updates[-1].job.state, "done")
        self.assertEqual([frame.number for frame in updates[0].frames], [1, 2, 3])
        done = {frame.number: frame for update in updates for frame in update.frames}
        self.assertEqual({frame.state for frame in done.values()}, {"done"})
        self.assertEqual([file.format for file in done[2].files], ["exr", "png"])
        # One that has ended is told once.
        self.assertEqual(len(list(self.farm.watch(job))), 1)

    def test_a_wait_that_is_too_long_ends(self) -> None:
        job = self.farm.submit(LONG)
        began = time.monotonic()
        self.assertRaises(TimedOut, self.farm.wait, job, 1.0)
        self.assertLess(time.monotonic() - began, 15)
        self.assertFalse(self.farm.job(job).ended)
        self.farm.cancel(job)

    def test_events_tell_of_other_jobs_and_can_be_closed(self) -> None:
        stream = self.farm.events()
        kinds: list[str] = []

        def read() -> None:
            kinds.extend(event.kind for event in stream)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            deadline = time.monotonic() + 60
            while "hello" not in kinds and time.monotonic() < deadline:
                time.sleep(0.05)
                if stream._answer is not None:
                    break
            job = self.farm.submit(SMALL)
            self.farm.wait(job, timeout=120)
            time.sleep(1)
        finally:
            stream.close()
            reader.join(30)
        self.assertFalse(reader.is_alive())
        self.assertTrue({"hello", "jobs", "frames", "through"} <= set(kinds), kinds)


class AsyncTest(FarmTest):
    """The same for asyncio."""

    def test_several_jobs_are_awaited_at_once(self) -> None:
        async def run() -> None:
            async with AsyncFarm(within=60.0) as farm:
                jobs = await asyncio.gather(*(farm.submit(SMALL) for _ in range(3)))
                ended = await asyncio.gather(*(farm.wait(job, 120) for job in jobs))
                self.assertEqual([job.state for job in ended], ["done"] * 3)
                listed = [job.id async for job in farm.jobs(state="done")]
                self.assertTrue(set(jobs) <= set(listed))
                updates = [update async for update in farm.watch(jobs[0])]
                self.assertEqual(updates[-1].job.state, "done")
                with tempfile.TemporaryDirectory() as folder:
                    self.assertEqual(len(await farm.fetch(jobs[0], folder)), 6)

        asyncio.run(run())

    def test_a_wait_can_be_cancelled(self) -> None:
        async def run() -> float:
            async with AsyncFarm(within=60.0) as farm:
                job = await farm.submit(LONG)
                began = time.monotonic()
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(farm.wait(job), 0.5)
                took = time.monotonic() - began
                async for event in farm.events():
                    self.assertEqual(event.kind, "hello")
                    break
                await farm.cancel(job)
                return took

        self.assertLess(asyncio.run(run()), 5.0)
