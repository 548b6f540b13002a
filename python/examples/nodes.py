"""Prints a farm's nodes, and the jobs that wait or run."""

from tessera_farm import Farm

with Farm() as farm:
    for node in farm.nodes():
        devices = ", ".join(device["name"] for device in node.devices)
        print(f"{node.name}: {node.state}, {node.units_committed} units, {devices}")
    for job in farm.jobs(state=["queued", "running"]):
        print(f"{job.id} {job.name} of {job.owner}: {job.state}, {job.progress:.0%} {job.note}")
