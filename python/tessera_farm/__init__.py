"""A client of Tessera farms: submit, watch, fetch, nodes, compute. Pure Python, over HTTP.

from tessera_farm import Farm, Render

with Farm() as farm:
    job = farm.submit(Render("scene.gltf", width=640, height=360, spp=64))
    farm.wait(job)
    print(farm.fetch(job, "frames"))
"""

from .aio import AsyncFarm
from .compute import FromJob, Kernel, Output
from .errors import (
    BadAnswer,
    Conflict,
    Corrupt,
    JobFailed,
    Malformed,
    NotAllowed,
    NotFound,
    NotSignedIn,
    Refused,
    SceneError,
    TesseraError,
    TimedOut,
    TooOften,
    Unavailable,
    Unreachable,
)
from .events import Event, Update
from .farm import Farm
from .models import (
    Batch,
    BatchJob,
    Budget,
    Changed,
    Costs,
    Frame,
    FrameFile,
    Job,
    JobDetail,
    Me,
    Node,
    Outline,
    Parameter,
    Preset,
    Spent,
    Stored,
    Wait,
)
from .render import LookAt, Render

__version__ = "0.1.0"

__all__ = [
    "AsyncFarm",
    "BadAnswer",
    "Batch",
    "BatchJob",
    "Budget",
    "Changed",
    "Conflict",
    "Corrupt",
    "Costs",
    "Event",
    "Farm",
    "Frame",
    "FrameFile",
    "FromJob",
    "Job",
    "JobDetail",
    "JobFailed",
    "Kernel",
    "LookAt",
    "Malformed",
    "Me",
    "Node",
    "NotAllowed",
    "NotFound",
    "NotSignedIn",
    "Outline",
    "Output",
    "Parameter",
    "Preset",
    "Refused",
    "Render",
    "SceneError",
    "Spent",
    "Stored",
    "TesseraError",
    "TimedOut",
    "TooOften",
    "Unavailable",
    "Unreachable",
    "Update",
    "Wait",
]
