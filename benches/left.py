#!/usr/bin/env python3
"""How well a farm says when it will be done: real farms of two unequal nodes, new to their
coordinator, one job each. Prints what was said when a fifth of the job was done, and how long it
then took.

    cargo build --release && python3 benches/left.py [--tessera FILE] [SCENE ARGUMENTS]...

An argument is a scene with the options of `tessera submit`, in one string; without any, scenes of
the library. The two nodes share this machine, one of them with twice the threads of the other, so
it should have nothing else to do. The coordinator listens on 127.0.0.1:7951.
"""
import argparse
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

JOBS = [
    "scenes/library/many-lights.gltf --size 640x360 --spp 64",
    "scenes/library/drink.gltf --size 400x400 --spp 96",
    "scenes/library/cornell-box.gltf --size 480x480 --spp 64",
    "scenes/library/material-row.gltf --size 480x270 --spp 96",
    "scenes/library/sunflower.gltf --size 640x360 --spp 96",
    "scenes/library/spinning-cube.gltf --size 320x180 --spp 64 --frames 1-20",
]
ADDRESS = "127.0.0.1:7951"
START_SECS = 120
JOB_SECS = 600


class Farm:
    """A coordinator and two nodes in a folder of their own."""

    def __init__(self, tessera, folder):
        self.tessera, self.folder, self.processes = tessera, folder, []
        self.env = dict(os.environ, TESSERA_COORDINATOR=ADDRESS, HOME=folder)
        self.env["TESSERA_IDENTITY"] = f"{folder}/c/admin"
        self.start("c", "coordinator", "--data", f"{folder}/c", "--listen", ADDRESS,
                   "--http", "off")
        self.until(lambda: self.run("nodes").returncode == 0)
        for name, threads in ("slow", 1), ("fast", 2):
            token = f"{folder}/{name}.token"
            with open(token, "w", encoding="utf-8") as file:
                file.write(self.run("token", "create", "--role", "node").stdout)
            self.start(name, "node", "--name", name, "--token-file", token, "--data",
                       f"{folder}/{name}", "--threads", str(threads), "--device", "cpu")
        self.until(lambda: [node["state"] for node in self.json("nodes")] == ["ready"] * 2)

    def start(self, name, *command):
        log = open(f"{self.folder}/{name}.log", "w", encoding="utf-8")
        self.processes.append(subprocess.Popen(
            [self.tessera, *command], env=self.env, stdout=subprocess.DEVNULL, stderr=log))

    def run(self, *command):
        return subprocess.run([self.tessera, *command], env=self.env, capture_output=True,
                              text=True, check=False)

    def json(self, *command):
        done = self.run(*command, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else []

    def until(self, is_so):
        end = time.time() + START_SECS
        while not is_so():
            if time.time() > end:
                sys.exit(f"the farm did not start; its logs are in {self.folder}")
            time.sleep(0.3)

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()


def measure(farm, job):
    """The error of what was said at a fifth of a job; None if nothing was said."""
    submitted = farm.run("submit", *shlex.split(job), "--name", "measured")
    if submitted.returncode != 0:
        sys.exit(submitted.stderr)
    begun, said, at, share = time.time(), None, None, 0.0
    while time.time() - begun < JOB_SECS:
        time.sleep(0.3)
        now, seen = time.time(), farm.json("jobs")[-1]
        if at is None and seen["units_committed"] >= 0.2 * seen["units"]:
            at, said = now, seen["left_secs"]
            share = seen["units_committed"] / seen["units"]
        if seen["state"] in ("done", "failed"):
            break
    else:
        sys.exit(f"{job}: not done after {JOB_SECS} s")
    took = time.time() - at
    error = None if said is None else abs(said - took) / took
    shown = "nothing" if said is None else f"{said} s"
    print(f"{job}: at {share:.2f} said {shown}, took {took:.1f} s"
          + ("" if error is None else f", error {error:.3f}"), flush=True)
    return error


def main():
    parser = argparse.ArgumentParser(description="how well a farm says when it will be done")
    parser.add_argument("--tessera", default="target/release/tessera")
    parser.add_argument("jobs", nargs="*", default=JOBS)
    options = parser.parse_args()
    errors = []
    for job in options.jobs:
        with tempfile.TemporaryDirectory(prefix="tessera-left-") as folder:
            farm = Farm(options.tessera, folder)
            try:
                errors.append(measure(farm, job))
            finally:
                farm.stop()
    known = [error for error in errors if error is not None]
    print(f"{len(known)} of {len(errors)} said something; median error "
          f"{statistics.median(known):.3f}" if known else "nothing was said")


if __name__ == "__main__":
    main()
