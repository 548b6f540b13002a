"""Seconds of HyperQueue for N tasks that do nothing, on this machine: prints one JSON object.

    python peer.py TASKS CORES

HyperQueue's unit is a process; ours is a lease. What starting `true` alone costs is measured beside
it, so that it can be taken off.
"""

import json
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from hyperqueue import Job
from hyperqueue.cluster import LocalCluster, WorkerConfig


def seconds_of_tasks(tasks: int, cores: int, folder: Path) -> float:
    """From the submit to the end of the last task, on one worker of so many cores."""
    with LocalCluster(server_dir=str(folder), worker_config=WorkerConfig(cores=cores)) as cluster:
        client = cluster.client()
        job = Job(default_workdir=str(folder))
        for _ in range(tasks):
            job.program(["/bin/true"], stdout=None, stderr=None)
        begun = time.perf_counter()
        client.wait_for_jobs([client.submit(job)])
        return time.perf_counter() - begun


def seconds_of_starts(starts: int) -> float:
    """`true`, one after another, as often."""
    begun = time.perf_counter()
    for _ in range(starts):
        subprocess.run(["/bin/true"], check=True)
    return time.perf_counter() - begun


def main() -> None:
    tasks, cores = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        seconds = seconds_of_tasks(tasks, cores, Path(folder))
    starts = min(tasks, 1000)
    found = {
        "version": version("hyperqueue"),
        "tasks": tasks,
        "micros_a_task": seconds / tasks * 1e6,
        "micros_a_start": seconds_of_starts(starts) / starts * 1e6,
    }
    print(json.dumps(found))


main()
