"""Renders several scenes at once with asyncio: `asynchronous.py FOLDER SCENE...`."""

import asyncio
import sys

from tessera_farm import AsyncFarm, Render


async def one(farm: AsyncFarm, scene: str, folder: str) -> list[str]:
    """Renders a scene, and fetches its frames."""
    job = await farm.submit(Render(scene, width=96, height=72, spp=4))
    await farm.wait(job)
    return await farm.fetch(job, folder)


async def main() -> None:
    """Renders them."""
    async with AsyncFarm() as farm:
        for paths in await asyncio.gather(
            *(one(farm, scene, sys.argv[1]) for scene in sys.argv[2:])
        ):
            print(*paths, sep="\n")


asyncio.run(main())
