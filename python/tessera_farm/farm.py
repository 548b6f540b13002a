"""A farm: submit, watch, fetch, nodes, compute. Every call may wait for the farm; `aio` has the
same for asyncio."""

from __future__ import annotations

import datetime
import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Callable, Union
from urllib.parse import quote, urlencode

from . import fetching, render, templates, uploads
from .compute import Kernel, read_array
from .compute import prepare as prepare_kernel
from .connection import Connections, refused
from .errors import BadAnswer, JobFailed, TimedOut
from .events import Stream, Update, watch
from .models import (
    Batch,
    Changed,
    Costs,
    Frame,
    Job,
    JobDetail,
    Me,
    Node,
    Outline,
    Preset,
    field,
    listed,
    mapping,
    optional,
)
from .settings import Settings

if TYPE_CHECKING:
    from .compute import Array

Work = Union[render.Render, Kernel]
"""What can be submitted."""

# Frames of one answer.
_FRAMES_MAX = 16_384
# Longest array that `compute` brings into memory, in bytes.
_ARRAY_MAX = 8 << 30


class Farm:
    """A farm at an address. May be used by several threads; `close` ends its connections.

    Args:
        url: `https://farm.example` or `http://127.0.0.1:7421`; by default `TESSERA_URL`, else the
            latter. Plain HTTP is for this machine.
        token: Of `tessera token create --api`; by default `TESSERA_API_TOKEN`, or the file that
            `TESSERA_API_TOKEN_FILE` names.
        ca_file: PEM file of the authority that signed the farm's certificate; by default
            `TESSERA_CA_FILE`, else the system's authorities.
        quiet: Longest time without a byte from the farm in seconds.
        within: Longest time of one request in seconds, tries included. Files take longer.
        allow_plain: Lets the token cross the network in clear.

    Every method raises `Refused` where the farm refuses, `Unreachable` or `TimedOut` where it is
    not there, and `BadAnswer` where its answer cannot be used.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        ca_file: str | None = None,
        quiet: float = 30.0,
        within: float = 120.0,
        allow_plain: bool = False,
    ) -> None:
        settings = Settings(url, token, ca_file, allow_plain)
        self._farm = Connections(settings, quiet, within)

    def __enter__(self) -> Farm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections that nobody uses."""
        self._farm.close()

    def _get(self, path: str, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        ending = "?" + urlencode(given) if given else ""
        return self._farm.ask("GET", f"/api/v1{path}{ending}")[1]

    def me(self) -> Me:
        """Whom the token stands for."""
        return Me.read(self._get("/me"))

    # Submit

    def submit(
        self,
        work: Work,
        name: str | None = None,
        priority: int = 50,
        pool: str | None = None,
        max_nodes: int | None = None,
        after: str | Iterable[str] = (),
        after_any: str | Iterable[str] = (),
        not_before: datetime.datetime | int | None = None,
        batch: str | None = None,
        notify: str | Iterable[str] = (),
        job: str | None = None,
        progress: uploads.Progress | None = None,
    ) -> str:
        """Sends the files that the farm lacks, then the job. Its id, once the job is durable.

        Args:
            work: What to render or to compute.
            name: Name of the job and of its files; by default that of the scene or kernel.
            priority: 0 to 100.
            pool: Only nodes of this pool work on it.
            max_nodes: Most nodes that work on it at a time.
            after: Ids of jobs that have to succeed first; if one does not, this job ends too. With
                `:frames` after an id, each frame waits for the frame of its number.
            after_any: Ids of jobs that have to end first, whichever way.
            not_before: When the job may begin: a time (of this machine's zone, if it has none), or
                seconds since 1970 in UTC.
            batch: A name that several jobs share, by which all are listed and changed together.
            notify: Targets of events that are told of the job, besides others.
            job: Its id, a UUID: the same submit again, also after a crash, makes no second job.
            progress: Called with the bytes that are sent, and all that have to be.

        Raises:
            SceneError, OSError, ValueError: What is to be sent is not there, or not as it must be.
        """
        job = str(uuid.UUID(job)) if job else _new_id()
        form: dict[str, Any] = {"priority": priority, "pool": pool, "max_nodes": max_nodes}
        form.update(after=_after(after, after_any), batch=batch)
        form.update(not_before=_seconds(not_before))
        form.update(notify=[notify] if isinstance(notify, str) else list(notify))
        if isinstance(work, render.Render):
            spec, sources = render.prepare(work)
            form.update(name=name or render.name_of(work.scene), render=spec)
        else:
            spec, sources, device_bytes = prepare_kernel(work)
            default = render.name_of(os.fspath(work.program).replace("builtin:", "", 1))
            form.update(name=name or default, compute=spec, device_bytes=device_bytes)
        uploads.send_all(self._farm, sources, progress)
        _, told = self._farm.ask("PUT", f"/api/v1/jobs/{job}", form)
        accepted = field(mapping(told, "an answer"), "job", str)
        if accepted != job:
            raise BadAnswer(f"the farm accepted {accepted!r:.80} and not {job}")
        return job

    # Templates

    def outline(
        self,
        template: None | str | os.PathLike[str] = None,
        preset: str | None = None,
        values: Mapping[str, templates.Value] | None = None,
    ) -> Outline:
        """What a template takes, and the files that its jobs name with these values.

        Args:
            template: A file: TOML, or Open Job Description if it ends in `.yaml`, `.yml` or
                `.json`.
            preset: A preset of the farm, in its place.
            values: Values of parameters, by name.
        """
        form, _ = templates.form(template, preset, values)
        return Outline.read(self._farm.ask("POST", "/api/v1/templates/outline", form)[1])

    def submit_template(
        self,
        template: None | str | os.PathLike[str] = None,
        preset: str | None = None,
        values: Mapping[str, templates.Value] | None = None,
        name: str | None = None,
        files: Iterable[str | os.PathLike[str]] = (),
        batch: str | None = None,
        progress: uploads.Progress | None = None,
    ) -> Batch:
        """Sends the files that the farm lacks, then all jobs of a template, or none. Returns once
        all are durable.

        Args:
            template: A file: TOML, or Open Job Description if it ends in `.yaml`, `.yml` or
                `.json`. Its files are looked for beside it.
            preset: A preset of the farm, in its place. Files are looked for in the working folder.
            values: Values of parameters, by name. A path is one beside the template.
            name: Name in place of the template's.
            files: More files beside it, such as headers of kernels: those that jobs name, and what
                their scenes name, are found.
            batch: Name that the jobs share: the same submit again, also after a crash, makes no
                second jobs. By default the template's, with random letters.
            progress: Called with the bytes that are sent, and all that have to be.

        Raises:
            SceneError, OSError, ValueError: A file is not there, or not as it must be.
        """
        form, folder = templates.form(template, preset, values, name)
        _, told = self._farm.ask("POST", "/api/v1/templates/outline", form)
        outline = Outline.read(told)
        if outline.problem is not None:
            raise ValueError(outline.problem)
        named, sources = templates.gather(folder, outline.files, files)
        uploads.send_all(self._farm, sources, progress)
        form["files"] = named
        batch = batch or f"{name or outline.name}-{uuid.uuid4().hex[:8]}"
        path = f"/api/v1/batches/{quote(batch, safe='')}"
        return Batch.read(self._farm.ask("PUT", path, form)[1])

    def presets(self) -> list[Preset]:
        """The templates that admins have published, without their texts."""
        return [Preset.read(one) for one in listed(self._get("/presets"), "the presets")]

    def preset(self, name: str) -> Preset:
        """A template that an admin has published."""
        return Preset.read(self._get(f"/presets/{quote(name, safe='')}"))

    def publish_preset(self, name: str, template: str) -> Preset:
        """Publishes the text of a template for all who submit. For admins."""
        path = f"/api/v1/presets/{quote(name, safe='')}"
        return Preset.read(self._farm.ask("PUT", path, {"template": template})[1])

    def remove_preset(self, name: str) -> None:
        """Takes a preset away; jobs that were made of it stay. For admins."""
        self._farm.ask("DELETE", f"/api/v1/presets/{quote(name, safe='')}")

    # Jobs

    def jobs(
        self,
        state: None | str | Iterable[str] = None,
        owner: str | None = None,
        name: str | None = None,
        older_than: int | None = None,
        limit: int | None = None,
        order: str | None = None,
        rows: int | None = None,
        batch: str | None = None,
    ) -> Iterator[Job]:
        """Jobs, newest first, page after page as they are read.

        Args:
            state: One state or several: `queued`, `running`, `paused`, `done`, `failed`,
                `cancelled`.
            owner: Name, or `#` and the number of an identity.
            name: Pattern of the whole name: `*` is any text, `?` one character.
            older_than: Least seconds since it ended or, while it is open, was submitted.
            limit: Most jobs.
            order: `newest`, `name`, `owner`, `priority`, `state` or `progress`.
            rows: Jobs of one request, 1 to 1,024.
            batch: Name that the jobs of one submission share.
        """
        states = state if state is None or isinstance(state, str) else ",".join(state)
        asked: dict[str, Any] = {"state": states, "owner": owner, "name": name, "batch": batch}
        asked.update(older_than_secs=older_than, limit=limit, order=order, rows=rows)
        cursor: str | None = None
        seen = 0
        while True:
            page = mapping(self._get("/jobs", cursor=cursor, **asked), "a page")
            for one in field(page, "jobs", list):
                yield Job.read(one)
                seen += 1
                if limit is not None and seen >= limit:
                    return
            before, cursor = cursor, optional(page, "next", str)
            if cursor is None:
                return
            if cursor == before:
                raise BadAnswer("a page of jobs leads to itself")

    def job(self, job: str) -> Job:
        """A job."""
        return self.detail(job).job

    def detail(self, job: str) -> JobDetail:
        """Everything about a job."""
        return JobDetail.read(self._get(f"/jobs/{_id(job)}"))

    def frames(self, job: str) -> list[Frame]:
        """All frames of a job, in order."""
        found: list[Frame] = []
        while True:
            some = listed(
                self._get(f"/jobs/{_id(job)}/frames", **{"from": len(found)}), "the frames"
            )
            found += [Frame.read(one) for one in some]
            if len(some) < _FRAMES_MAX:
                return found

    def kernel_text(self, job: str) -> str:
        """What a compute job's kernel printed, and what compilers said of it."""
        answer = self._farm.begin(
            "GET", f"/api/v1/jobs/{_id(job)}/kernel-text", within=self._farm.within
        )
        try:
            if answer.status != 200:
                raise refused(answer)
            return answer.read().decode("utf-8", "replace")
        finally:
            answer.close()

    def edit(self, job: str, **fields: Any) -> Job:
        """Changes a job that has not ended: `name`, `priority` (0 to 100), `pool`, `max_nodes` and
        `not_before`, of which None is none."""
        unknown = set(fields) - {"name", "priority", "pool", "max_nodes", "not_before"}
        if unknown:
            raise TypeError(f"a job has no {', '.join(sorted(unknown))} that can be changed")
        if "not_before" in fields:
            fields["not_before"] = _seconds(fields["not_before"])
        return JobDetail.read(self._farm.ask("PATCH", f"/api/v1/jobs/{_id(job)}", fields)[1]).job

    def change(self, change: str, jobs: Iterable[str], **fields: Any) -> Changed:
        """Changes jobs in one step: `cancel`, `pause`, `resume`, `retry` or `forget`.

        Args:
            change: What to do.
            jobs: Ids, their beginnings or whole names.
            fields: More of the request, as docs/openapi.json has them: `owner`, `states`, `name`,
                `batch`, `older_than_secs`, `limit`, `all`, `dry_run`, `reason`.
        """
        form = {"change": change, "jobs": list(jobs), **fields}
        # A second `retry` or `forget` may meet what came after the first one.
        safe = change in ("cancel", "pause", "resume")
        return Changed.read(self._farm.ask("POST", "/api/v1/jobs/change", form, safe)[1])

    def cancel(self, *jobs: str, reason: str = "") -> Changed:
        """Ends jobs. Frames that are finished stay."""
        return self.change("cancel", jobs, reason=reason)

    def pause(self, *jobs: str) -> Changed:
        """Gives jobs no work until they are resumed."""
        return self.change("pause", jobs)

    def resume(self, *jobs: str) -> Changed:
        """Gives paused jobs work again."""
        return self.change("resume", jobs)

    def retry(self, *jobs: str) -> Changed:
        """Renders failed frames again."""
        return self.change("retry", jobs)

    def forget(self, *jobs: str) -> Changed:
        """Deletes jobs that have ended, and their frames."""
        return self.change("forget", jobs)

    # Watch

    def events(self, patience: float = 60.0) -> Stream:
        """What changes on the farm from now on, over as many connections as it takes.

        `patience`: for how many seconds a farm that is not there is tried again.
        """
        return Stream(self._farm, patience)

    def watch(self, job: str, patience: float = 60.0) -> Iterator[Update]:
        """A job as it is, and then each time that it changes, up to its end."""
        return self.watching(job, self.events(patience))

    def watching(self, job: str, stream: Stream) -> Iterator[Update]:
        """The same over a stream of events, which is closed at the end."""
        job = _id(job)
        return watch(stream, job, lambda: self.job(job), lambda: self.frames(job))

    def wait(
        self,
        job: str,
        timeout: float | None = None,
        on_update: Callable[[Job], None] | None = None,
        check: bool = True,
    ) -> Job:
        """Waits for a job's end.

        Args:
            job: Its id.
            timeout: Most seconds; None waits as long as it takes.
            on_update: Called each time that it changes.
            check: Whether a job that is not `done` raises.

        Raises:
            JobFailed: It failed or was cancelled.
            TimedOut: It has not ended by then. It goes on.
        """
        stream = self.events()
        with _Alarm(timeout, stream.close):
            for update in self.watching(job, stream):
                if on_update is not None:
                    on_update(update.job)
                if update.job.ended:
                    if check and update.job.state != "done":
                        raise JobFailed(job, update.job.state, update.job.note)
                    return update.job
        raise TimedOut(f"job {job} has not ended within {timeout} s; it goes on")

    # Fetch

    def fetch(
        self,
        job: str,
        folder: str | os.PathLike[str],
        frames: Iterable[int] | None = None,
        formats: Iterable[str] | None = None,
        overwrite: bool = False,
        parallel: int = 4,
        on_file: fetching.OnFile | None = None,
    ) -> list[str]:
        """Fetches the finished frames of a job into a folder, as `NAME.0001.exr` and so on. A file
        has its name once it is whole and has its hash; one that is there already is not fetched
        again. What was interrupted goes on where it stopped.

        Args:
            job: Its id.
            folder: Where to; made where it is not there.
            frames: Which frames; by default all that are finished.
            formats: Such as `exr`, or `flux.npy` of a named output; by default all.
            overwrite: Whether other files of these names are replaced.
            parallel: Files at a time, 1 to 16.
            on_file: Called for each file that was fetched or was there, by several threads.

        Returns:
            The paths, in the order of the frames.

        Raises:
            FileExistsError: Something else has a file's name.
            Corrupt: The bytes of a file do not have their hash.
        """
        detail = self.detail(job)
        numbers = None if frames is None else set(frames)
        kinds = None if formats is None else set(formats)
        wanted = [
            fetching.Wanted(_id(job), frame.number, file)
            for frame in self.frames(job)
            for file in frame.files
            if (numbers is None or frame.number in numbers)
            and (kinds is None or file.format in kinds)
        ]
        stem = fetching.stem_of(detail.job.name)
        return fetching.fetch_all(self._farm, wanted, folder, stem, overwrite, parallel, on_file)

    # Compute

    def results(self, job: str, frame: int | None = None) -> dict[str, Array]:
        """The arrays of a compute job's frame, by default its last, by the names of the kernel's
        outputs; of a kernel without named outputs, one by the name `""`. `wait` for the job first.

        Raises:
            BadAnswer: The frame is not finished, or has no arrays.
        """
        found = [one for one in self.frames(job) if frame is None or one.number == frame][-1:]
        if not found or found[0].state != "done":
            raise BadAnswer(f"job {job} has no finished frame {'' if frame is None else frame}")
        arrays: dict[str, Array] = {}
        for file in found[0].files:
            name, _, extension = file.format.rpartition(".")
            if extension == "npy":
                wanted = fetching.Wanted(_id(job), found[0].number, file)
                data = fetching.to_memory(self._farm, wanted, _ARRAY_MAX)
                arrays[name] = read_array(data)
        if not arrays:
            raise BadAnswer(f"job {job} has no arrays; its formats are others")
        return arrays

    def compute(self, kernel: Kernel, timeout: float | None = None, **submit: Any) -> Array:
        """Submits a kernel with one output, waits for it, and returns the last frame's result.

        Args:
            kernel: What to compute.
            timeout: Most seconds to wait; the job is cancelled after them.
            submit: More arguments of `submit`.

        Raises:
            ValueError: The kernel has several outputs: `compute_all` returns them.
            JobFailed: The kernel failed, or the job was cancelled.
            TimedOut: There is no result by then.
        """
        if len(kernel.outputs) > 1:
            raise ValueError("the kernel has several outputs; compute_all returns them by name")
        return next(iter(self.compute_all(kernel, timeout, **submit).values()))

    def compute_all(
        self, kernel: Kernel, timeout: float | None = None, **submit: Any
    ) -> dict[str, Array]:
        """The same for a kernel with several outputs: their arrays by name."""
        job = self.submit(kernel, **submit)
        try:
            self.wait(job, timeout)
        except (TimedOut, KeyboardInterrupt):
            self.cancel(job, reason="nobody waits for it any more")
            raise
        return self.results(job)

    # Costs

    def costs(self, month: str | None = None) -> Costs:
        """What was spent in a month such as `2026-11`, or in this one, and how far budgets are
        used. Operators see all owners, others themselves."""
        return Costs.read(self._get("/costs", **({} if month is None else {"month": month})))

    def cost_rules(self) -> dict[str, Any]:
        """Prices, groups and budgets, as the file of `tessera cost rules` has them."""
        return mapping(self._get("/costs/rules"), "the rules")

    def set_cost_rules(self, rules: Mapping[str, Any]) -> None:
        """Sets prices, groups and budgets for what is spent from now on."""
        self._farm.ask("PUT", "/api/v1/costs/rules", dict(rules))

    # Nodes

    def nodes(self) -> list[Node]:
        """All nodes of the present and the past, by name."""
        return [Node.read(one) for one in listed(self._get("/nodes"), "the nodes")]

    def node(self, node: str) -> Node:
        """A node, by its id or by a name that only one has."""
        found = [one for one in self.nodes() if node in (one.id, one.name)]
        if len(found) == 1:
            return found[0]
        return Node.read(self._get(f"/nodes/{quote(node, safe='')}"))

    def _order(self, node: str, order: str, form: Any) -> Node:
        path = f"/api/v1/nodes/{quote(node, safe='')}{order}"
        return Node.read(self._farm.ask("POST" if order else "DELETE", path, form)[1])

    def drain(self, node: str, leave: bool = False) -> Node:
        """Lets a node finish its units and gives it no more; with `leave`, it then ends."""
        return self._order(node, "/drain", {"leave": leave})

    def undrain(self, node: str) -> Node:
        """Gives a drained or quarantined node work again."""
        return self._order(node, "/undrain", None)

    def remove_node(self, node: str) -> Node:
        """Takes an absent node off the list."""
        return self._order(node, "", None)


class _Alarm:
    """Calls something when the time is over, unless the block has ended."""

    def __init__(self, after: float | None, call: Callable[[], None]) -> None:
        self._timer = None if after is None else threading.Timer(max(after, 0.0), call)

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _id(job: str) -> str:
    """An id of a job as it is in addresses.

    Raises:
        ValueError: It is no UUID.
    """
    return str(uuid.UUID(job))


def _seconds(at: datetime.datetime | int | None) -> int | None:
    """A time in seconds since 1970 in UTC."""
    return int(at.timestamp()) if isinstance(at, datetime.datetime) else at


def _after(after: str | Iterable[str], after_any: str | Iterable[str]) -> list[dict[str, str]]:
    """What a job waits for, as it is submitted.

    Raises:
        ValueError: An id is no UUID.
    """
    waits = []
    for one in [after] if isinstance(after, str) else after:
        job = one.removesuffix(":frames")
        waits.append({"job": _id(job), "until": "success" if job == one else "frames"})
    for one in [after_any] if isinstance(after_any, str) else after_any:
        waits.append({"job": _id(one), "until": "end"})
    return waits


def _new_id() -> str:
    """A UUID of version 7: its beginning is the time."""
    millis = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (millis & (2**48 - 1)) << 80 | 7 << 76 | (random >> 68 & 0xFFF) << 64
    return str(uuid.UUID(int=value | 2 << 62 | random & (2**62 - 1)))
