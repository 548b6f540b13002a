#!/usr/bin/env python3
"""What a farm of one machine pays for what it does not use: two programs beside each other, by
turns. Prints medians and the second's share of the first.

    python3 benches/embedded.py BEFORE AFTER [--rounds N]

Both are copied without symbols, and all is measured with the copies. A start is from the call to
the line that says where the coordinator listens, in a new folder and in one with a finished job.
Memory is the most that the coordinator had resident: after a rest, and after a job of one node.
Commands are called by turns,
with both coordinators running: from the call to the end, and their own processor time. Both
programs must be built by the same profile. Coordinators listen on 127.0.0.1:7953 and 7954.
"""
import argparse
import os
import resource
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

ADDRESSES = ["127.0.0.1:7953", "127.0.0.1:7954"]
COMMANDS = [["--version"], ["help"], ["jobs"], ["nodes", "--json"]]
SCENE = "scenes/library/cornell-box.gltf"
JOB = ["--size", "128x96", "--spp", "16", "--tile", "32", "--format", "exr"]
REST_SECS = 2
START_SECS = 60
CALLS = 60


class Farm:
    """A coordinator in a folder of its own, and at times a node."""

    def __init__(self, tessera, folder, address=ADDRESSES[0]):
        self.tessera, self.folder, self.address = tessera, folder, address
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("TESSERA_")
        }
        self.environment.update(
            TESSERA_HTTP="off",
            TESSERA_COORDINATOR=address,
            TESSERA_IDENTITY=os.path.join(folder, "data/admin"),
            XDG_CONFIG_HOME=os.path.join(folder, "config"),
        )

    def start(self):
        """Starts the coordinator; seconds until it listens."""
        begun = time.monotonic()
        self.process = subprocess.Popen(
            [self.tessera, "coordinator", "--data", os.path.join(self.folder, "data"),
             "--listen", self.address],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=self.environment, text=True,
        )
        for line in self.process.stderr:
            if "coordinator listens" in line:
                return time.monotonic() - begun
            if time.monotonic() - begun > START_SECS:
                break
        raise SystemExit(f"{self.tessera} does not start")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()

    def most_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            line = next(line for line in status if line.startswith("VmHWM:"))
        return int(line.split()[1])

    def run(self, *arguments):
        """Runs a command; its output."""
        done = subprocess.run(
            [self.tessera, *arguments], env=self.environment, check=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        return done.stdout.strip()

    def timed(self, arguments):
        """Runs a command; seconds that passed, and those of its processor time."""
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        self.run(*arguments)
        passed, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        return passed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def work(self):
        """A node joins, renders a job, and leaves."""
        token = os.path.join(self.folder, "token")
        with open(token, "w", encoding="ascii") as file:
            file.write(self.run("token", "create", "--role", "node"))
        os.chmod(token, 0o600)
        node = subprocess.Popen(
            [self.tessera, "node", "--name", "one", "--device", "cpu", "--threads", "1",
             "--token-file", token, "--data", os.path.join(self.folder, "node")],
            stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=self.environment,
        )
        try:
            job = self.run("submit", SCENE, *JOB)
            self.run("wait", job)
        finally:
            node.send_signal(signal.SIGTERM)
            node.wait()


def measure(tessera):
    """All values of one round."""
    folder = tempfile.mkdtemp()
    farm, values = Farm(tessera, folder), {}
    try:
        values["start in a new folder, ms"] = farm.start() * 1e3
        time.sleep(REST_SECS)
        values["memory at rest, KiB"] = farm.most_kib()
        farm.work()
        values["memory after a job, KiB"] = farm.most_kib()
        farm.stop()
        values["start with a finished job, ms"] = farm.start() * 1e3
        farm.stop()
        return values
    finally:
        farm.process.kill()
        shutil.rmtree(folder)


def commands(programs):
    """Prints what commands take, called by turns."""
    folders = [tempfile.mkdtemp() for _ in programs]
    farms = [Farm(*parts) for parts in zip(programs, folders, ADDRESSES)]
    try:
        for farm in farms:
            farm.start()
        for command in COMMANDS:
            taken = [[farm.timed(command) for farm in farms] for _ in range(CALLS)]
            for index, what in enumerate(["", " of processor"]):
                both = [[call[program][index] * 1e3 for call in taken] for program in (0, 1)]
                show(f"`{' '.join(command)}`, ms{what}", both)
    finally:
        for farm, folder in zip(farms, folders):
            farm.process.kill()
            shutil.rmtree(folder)


def show(name, both):
    """Prints two medians, and the second's share of the first."""
    one, two = (statistics.median(values) for values in both)
    print(f"{name}: {one:.1f}, {two:.1f}: {two / one:.3f}")


def stripped(tessera, folder):
    """A copy without symbols. Both are written anew and alike: the resident pages of a program
    depend on how the kernel cached its file."""
    copy = os.path.join(folder, f"tessera-{len(os.listdir(folder))}")
    subprocess.run(["strip", "-o", copy, tessera], check=True)
    return copy


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs=2, metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare([stripped(program, folder) for program in arguments.programs], arguments.rounds)


def compare(programs, rounds):
    before, after = (os.path.getsize(program) for program in programs)
    print(f"size: {before / 1e6:.2f} MB, {after / 1e6:.2f} MB: {(after - before) / 1e6:+.2f} MB")
    commands(programs)
    found = [{}, {}]
    for number in range(rounds):
        for index in [0, 1] if number % 2 == 0 else [1, 0]:
            for name, value in measure(programs[index]).items():
                found[index].setdefault(name, []).append(value)
    for name in found[0]:
        show(name, [values[name] for values in found])


if __name__ == "__main__":
    main()
