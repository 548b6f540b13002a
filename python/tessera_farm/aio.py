"""The farm for asyncio. Each call runs in a thread of a small pool of its own: the calls wait for
the network and hold no lock meanwhile, and there is one way of talking to a farm, not two. A call
that is cancelled returns at once; its thread ends with its request."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    TypeVar,
)

from .compute import Kernel
from .events import Event, Update
from .farm import Farm, Work
from .models import Batch, Changed, Costs, Frame, Job, JobDetail, Me, Node, Outline, Preset

if TYPE_CHECKING:
    from .compute import Array

T = TypeVar("T")

# Calls at a time; a stream of events is one for as long as it is read.
_THREADS = 32


class AsyncFarm:
    """A farm at an address, with the arguments of `Farm`.

    Its methods are those of `Farm`, with the same arguments, values and exceptions; `jobs`,
    `events` and `watch` are asynchronous iterators.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.farm = Farm(*args, **kwargs)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="tessera")

    async def __aenter__(self) -> AsyncFarm:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections that nobody uses. Calls that run go on to their end."""
        self.farm.close()
        self._pool.shutdown(wait=False)

    async def _run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(call, *args, **kwargs))

    async def _each(self, items: Iterator[T]) -> AsyncIterator[T]:
        end: Any = object()
        while True:
            item = await self._run(next, items, end)
            if item is end:
                return
            yield item

    async def me(self) -> Me:
        """As `Farm.me`."""
        return await self._run(self.farm.me)

    async def submit(self, work: Work, **options: Any) -> str:
        """As `Farm.submit`. `progress` is called by another thread."""
        return await self._run(self.farm.submit, work, **options)

    async def outline(self, *template: Any, **options: Any) -> Outline:
        """As `Farm.outline`."""
        return await self._run(self.farm.outline, *template, **options)

    async def submit_template(self, *template: Any, **options: Any) -> Batch:
        """As `Farm.submit_template`. `progress` is called by another thread."""
        return await self._run(self.farm.submit_template, *template, **options)

    async def presets(self) -> list[Preset]:
        """As `Farm.presets`."""
        return await self._run(self.farm.presets)

    async def preset(self, name: str) -> Preset:
        """As `Farm.preset`."""
        return await self._run(self.farm.preset, name)

    async def publish_preset(self, name: str, template: str) -> Preset:
        """As `Farm.publish_preset`."""
        return await self._run(self.farm.publish_preset, name, template)

    async def remove_preset(self, name: str) -> None:
        """As `Farm.remove_preset`."""
        await self._run(self.farm.remove_preset, name)

    def jobs(self, **filters: Any) -> AsyncIterator[Job]:
        """As `Farm.jobs`."""
        return self._each(self.farm.jobs(**filters))

    async def job(self, job: str) -> Job:
        """As `Farm.job`."""
        return await self._run(self.farm.job, job)

    async def detail(self, job: str) -> JobDetail:
        """As `Farm.detail`."""
        return await self._run(self.farm.detail, job)

    async def frames(self, job: str) -> list[Frame]:
        """As `Farm.frames`."""
        return await self._run(self.farm.frames, job)

    async def kernel_text(self, job: str) -> str:
        """As `Farm.kernel_text`."""
        return await self._run(self.farm.kernel_text, job)

    async def edit(self, job: str, **fields: Any) -> Job:
        """As `Farm.edit`."""
        return await self._run(self.farm.edit, job, **fields)

    async def change(self, change: str, jobs: Iterable[str], **fields: Any) -> Changed:
        """As `Farm.change`."""
        return await self._run(self.farm.change, change, jobs, **fields)

    async def cancel(self, *jobs: str, reason: str = "") -> Changed:
        """As `Farm.cancel`."""
        return await self._run(self.farm.cancel, *jobs, reason=reason)

    async def pause(self, *jobs: str) -> Changed:
        """As `Farm.pause`."""
        return await self._run(self.farm.pause, *jobs)

    async def resume(self, *jobs: str) -> Changed:
        """As `Farm.resume`."""
        return await self._run(self.farm.resume, *jobs)

    async def retry(self, *jobs: str) -> Changed:
        """As `Farm.retry`."""
        return await self._run(self.farm.retry, *jobs)

    async def forget(self, *jobs: str) -> Changed:
        """As `Farm.forget`."""
        return await self._run(self.farm.forget, *jobs)

    async def events(self, patience: float = 60.0) -> AsyncIterator[Event]:
        """As `Farm.events`. Leaving the iteration ends the stream."""
        stream = self.farm.events(patience)
        try:
            async for event in self._each(iter(stream)):
                yield event
        finally:
            stream.close()

    async def watch(self, job: str, patience: float = 60.0) -> AsyncIterator[Update]:
        """As `Farm.watch`. Leaving the iteration ends the stream."""
        stream = self.farm.events(patience)
        try:
            async for update in self._each(self.farm.watching(job, stream)):
                yield update
        finally:
            stream.close()

    async def wait(self, job: str, timeout: float | None = None, check: bool = True) -> Job:
        """As `Farm.wait`."""
        return await self._run(self.farm.wait, job, timeout, None, check)

    async def fetch(self, job: str, folder: str | os.PathLike[str], **options: Any) -> list[str]:
        """As `Farm.fetch`."""
        return await self._run(self.farm.fetch, job, folder, **options)

    async def results(self, job: str, frame: int | None = None) -> dict[str, Array]:
        """As `Farm.results`."""
        return await self._run(self.farm.results, job, frame)

    async def compute(self, kernel: Kernel, timeout: float | None = None, **submit: Any) -> Array:
        """As `Farm.compute`."""
        return await self._run(self.farm.compute, kernel, timeout, **submit)

    async def compute_all(
        self, kernel: Kernel, timeout: float | None = None, **submit: Any
    ) -> dict[str, Array]:
        """As `Farm.compute_all`."""
        return await self._run(self.farm.compute_all, kernel, timeout, **submit)

    async def costs(self, month: str | None = None) -> Costs:
        """As `Farm.costs`."""
        return await self._run(self.farm.costs, month)

    async def nodes(self) -> list[Node]:
        """As `Farm.nodes`."""
        return await self._run(self.farm.nodes)

    async def node(self, node: str) -> Node:
        """As `Farm.node`."""
        return await self._run(self.farm.node, node)

    async def drain(self, node: str, leave: bool = False) -> Node:
        """As `Farm.drain`."""
        return await self._run(self.farm.drain, node, leave)

    async def undrain(self, node: str) -> Node:
        """As `Farm.undrain`."""
        return await self._run(self.farm.undrain, node)

    async def remove_node(self, node: str) -> Node:
        """As `Farm.remove_node`."""
        return await self._run(self.farm.remove_node, node)
