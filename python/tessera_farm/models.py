"""What a farm tells, as values. Unknown fields are ignored; a field that is missing or of another
type is a bad answer. Times are seconds since the Unix epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import BadAnswer

T = TypeVar("T")

ENDED = frozenset({"done", "failed", "cancelled"})
"""States of a job that has ended."""


def field(of: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """A field that must be there."""
    value = of.get(name)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BadAnswer(f"the answer's field {name!r} is not {kind.__name__}: {value!r:.80}")
    return value


def optional(of: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """A field that may be missing or null."""
    return None if of.get(name) is None else field(of, name, kind)


def mapping(value: Any, what: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise BadAnswer(f"{what} is not an object: {value!r:.80}")
    return value


def listed(value: Any, what: str) -> list[Any]:
    """A JSON list."""
    if not isinstance(value, list):
        raise BadAnswer(f"{what} is not a list: {value!r:.80}")
    return value


@dataclass(frozen=True)
class Job:
    """A job in a list."""

    id: str
    """A UUID."""
    name: str
    owner: str
    state: str
    """`queued`, `running`, `paused`, `done`, `failed` or `cancelled`."""
    priority: int
    """0 to 100."""
    submitted_at: int
    ended_at: int | None
    frames: int
    frames_done: int
    frames_failed: int
    units: int
    units_committed: int
    note: str
    """Why it waits or failed; empty if it does neither."""
    pool: str | None
    device_secs: float
    """Device time that was spent for it, in seconds, with what was lost."""
    cost: float
    """What that time and the space of its finished frames cost, by the prices of when they were
    used."""

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in ENDED

    @property
    def progress(self) -> float:
        """Share of its units that count, 0 to 1. Jobs with rounds get more units on the way."""
        if self.state == "done":
            return 1.0
        return self.units_committed / self.units if self.units > 0 else 0.0

    @classmethod
    def read(cls, value: Any) -> Job:
        """Reads it from JSON."""
        of = mapping(value, "a job")
        return cls(
            id=field(of, "job", str),
            name=field(of, "name", str),
            owner=field(of, "owner", str),
            state=field(of, "state", str),
            priority=field(of, "priority", int),
            submitted_at=field(of, "submitted_at", int),
            ended_at=optional(of, "ended_at", int),
            frames=field(of, "frames", int),
            frames_done=field(of, "frames_done", int),
            frames_failed=field(of, "frames_failed", int),
            units=field(of, "units", int),
            units_committed=field(of, "units_committed", int),
            note=field(of, "note", str),
            pool=optional(of, "pool", str),
            device_secs=field(of, "device_millis", int) / 1000,
            cost=field(of, "cost", float),
        )


@dataclass(frozen=True)
class Wait:
    """One job that waits for another, as seen from one of them."""

    job: str
    """Id of the job at the other end."""
    name: str
    """Name of that job; empty if it was forgotten."""
    state: str | None
    """State of that job; None if it was forgotten."""
    until: str
    """`success`, `end` or `frames`: what has to happen to the job that is waited for."""
    frames: int
    """Frames that are waited for."""
    frames_done: int
    """How many of them are finished."""
    over: bool
    """Whether the wait is over."""

    @classmethod
    def read(cls, value: Any) -> Wait:
        """Reads it from JSON."""
        of = mapping(value, "a wait")
        return cls(
            job=field(of, "job", str),
            name=field(of, "name", str),
            state=optional(of, "state", str),
            until=field(of, "until", str),
            frames=field(of, "frames", int),
            frames_done=field(of, "frames_done", int),
            over=field(of, "over", bool),
        )


@dataclass(frozen=True)
class JobDetail:
    """Everything about one job."""

    job: Job
    spec: dict[str, Any]
    """What was submitted, with all options: of `kind`, either `Render` or `Compute` is there."""
    fingerprint: str | None
    """Version of what computes its results; None before the first result."""
    failures: list[dict[str, Any]]
    """Failed attempts, newest last: `at`, `unit`, `node`, `reason`."""
    after: list[Wait]
    """Jobs that it waits for or has waited for."""
    awaited_by: list[Wait]
    """Jobs that wait for it or have waited for it; the first 64."""

    @classmethod
    def read(cls, value: Any) -> JobDetail:
        """Reads it from JSON."""
        of = mapping(value, "a job")
        failures = field(of, "failures", list)
        return cls(
            job=Job.read(of.get("summary")),
            spec=mapping(of.get("spec"), "a spec"),
            fingerprint=optional(of, "fingerprint", str),
            failures=[mapping(failure, "a failure") for failure in failures],
            after=[Wait.read(one) for one in field(of, "after", list)],
            awaited_by=[Wait.read(one) for one in field(of, "awaited_by", list)],
        )


@dataclass(frozen=True)
class Spent:
    """Device time of one owner in one month, on devices of one product name."""

    owner: str
    group: str | None
    month: str
    """In UTC, such as `2026-11`."""
    device: str
    secs: float
    """Device time in seconds, with what was lost."""
    lost_secs: float
    """Device time in seconds of which no result was taken."""
    cost: float


@dataclass(frozen=True)
class Stored:
    """Space of the finished frames of one owner in one month, where space has a price."""

    owner: str
    group: str | None
    month: str
    """In UTC, such as `2026-11`."""
    byte_hours: int
    """Bytes × hours."""
    cost: float


@dataclass(frozen=True)
class Budget:
    """How far a budget is used."""

    whose: str | dict[str, Any]
    """`farm`, or an object with `group` or `owner`."""
    period: str
    """`month` or `total`."""
    amount: float
    spent: float
    warns: bool
    """Whether it is nearly used up."""
    reached: str | None
    """What has happened because it is used up: `warn`, `refuse` or `pause`."""


@dataclass(frozen=True)
class Costs:
    """What was spent, as far as the asking identity may know."""

    currency: str
    """Empty where nothing has a price."""
    spent: list[Spent]
    stored: list[Stored]
    budgets: list[Budget]
    gb_month: float
    """What a gigabyte of finished frames costs for 30 days from now on."""

    @classmethod
    def read(cls, value: Any) -> Costs:
        """Reads it from JSON."""
        of = mapping(value, "the costs")
        owners = [mapping(row, "an owner") for row in field(of, "owners", list)]
        spent = [
            Spent(
                owner=field(row, "owner", str),
                group=optional(row, "group", str),
                month=field(row, "month", str),
                device=field(one, "device", str),
                secs=field(one, "millis", int) / 1000,
                lost_secs=field(one, "lost_millis", int) / 1000,
                cost=field(one, "cost", float),
            )
            for row in owners
            for one in (mapping(one, "device time") for one in field(row, "spent", list))
        ]
        return cls(
            currency=field(of, "currency", str),
            spent=spent,
            stored=[_stored(row) for row in owners],
            budgets=[_budget(mapping(one, "a budget")) for one in field(of, "budgets", list)],
            gb_month=field(of, "gb_month", float),
        )


def _stored(of: Mapping[str, Any]) -> Stored:
    stored = mapping(of.get("stored"), "space")
    return Stored(
        owner=field(of, "owner", str),
        group=optional(of, "group", str),
        month=field(of, "month", str),
        byte_hours=field(stored, "byte_hours", int),
        cost=field(stored, "cost", float),
    )


def _budget(of: Mapping[str, Any]) -> Budget:
    whose = of.get("whose")
    return Budget(
        whose=whose if isinstance(whose, str) else mapping(whose, "whose budget"),
        period=field(of, "period", str),
        amount=field(of, "amount", float),
        spent=field(of, "spent", float),
        warns=field(of, "warns", bool),
        reached=optional(of, "reached", str),
    )


@dataclass(frozen=True)
class FrameFile:
    """A file of a finished frame."""

    format: str
    """Its extension: `exr`, `png`, `jpg`, `npy`, or for a named output such as `flux.npy`."""
    hash: str
    """BLAKE3 of its bytes, 64 hexadecimal digits."""
    length: int
    """Bytes."""

    @classmethod
    def read(cls, value: Any) -> FrameFile:
        """Reads it from JSON."""
        of = mapping(value, "a file")
        hashed, length = field(of, "hash", str), field(of, "length", int)
        if len(hashed) != 64 or not set(hashed) <= set("0123456789abcdef") or length < 0:
            raise BadAnswer(f"a file's hash or length is none: {hashed!r:.80}, {length}")
        return cls(format=field(of, "format", str), hash=hashed, length=length)


@dataclass(frozen=True)
class Frame:
    """A frame of a job."""

    number: int
    state: str
    """`open`, `resolving`, `finishing`, `done` or `failed`."""
    files: list[FrameFile]
    """Of a finished frame; else empty."""
    committed: int
    """Units that count, of an open frame."""
    units: int
    """Units, of an open frame."""
    reason: str
    """Why it failed; else empty."""

    @classmethod
    def read(cls, value: Any) -> Frame:
        """Reads it from JSON."""
        of = mapping(value, "a frame")
        state = of.get("state")
        word, told = state, None
        if isinstance(state, dict) and len(state) == 1:
            word, told = next(iter(state.items()))
        if not isinstance(word, str):
            raise BadAnswer(f"a frame's state is none: {state!r:.80}")
        opened = told if isinstance(told, dict) else {}
        files = listed(told, "a frame's files") if word == "done" else []
        return cls(
            number=field(of, "frame", int),
            state=word,
            files=[FrameFile.read(file) for file in files],
            committed=field(opened, "committed", int) if word == "open" else 0,
            units=field(opened, "units", int) if word == "open" else 0,
            reason=str(told) if word == "failed" else "",
        )


@dataclass(frozen=True)
class Node:
    """A node and its devices."""

    id: str
    """A UUID."""
    name: str
    state: str
    """`ready`, `draining`, `drained`, `away`, `lost`, `left`, `unfit` or `removed`."""
    devices: list[dict[str, Any]]
    """Slot, kind, name, parallelism, memory and state of each device."""
    telemetry: list[dict[str, Any]]
    """What the devices said of themselves at the last heartbeat."""
    units_leased: int
    units_committed: int
    samples_per_second: float
    """Committed camera samples, over the last minute."""
    drained: bool
    """Whether an operator has drained it."""
    note: str
    """Why it gets no work; empty if it gets work."""
    pool: str | None

    @classmethod
    def read(cls, value: Any) -> Node:
        """Reads it from JSON."""
        of = mapping(value, "a node")
        return cls(
            id=field(of, "node", str),
            name=field(of, "name", str),
            state=field(of, "state", str),
            devices=[mapping(one, "a device") for one in field(of, "devices", list)],
            telemetry=[mapping(one, "telemetry") for one in field(of, "telemetry", list)],
            units_leased=field(of, "units_leased", int),
            units_committed=field(of, "units_committed", int),
            samples_per_second=field(of, "samples_per_second", float),
            drained=field(of, "drained", bool),
            note=field(of, "note", str),
            pool=optional(of, "pool", str),
        )


@dataclass(frozen=True)
class Me:
    """Whom the token stands for."""

    name: str
    number: int
    """Number of the identity."""
    role: str
    """`viewer`, `artist`, `operator` or `admin`."""
    expires_at: int

    @classmethod
    def read(cls, value: Any) -> Me:
        """Reads it from JSON."""
        of = mapping(value, "an identity")
        return cls(
            name=field(of, "name", str),
            number=field(of, "number", int),
            role=field(of, "role", str),
            expires_at=field(of, "expires_at", int),
        )


@dataclass(frozen=True)
class Parameter:
    """What can be set in a template."""

    name: str
    kind: str
    """`text`, `integer`, `number`, `switch`, `frames` or `file`."""
    list: bool
    """Whether it is a list."""
    default: str | None
    """None where it has to be set."""
    choices: Sequence[str]
    """All values that it can have; empty if there are others."""
    help: str

    @classmethod
    def read(cls, value: Any) -> Parameter:
        """Reads it from JSON."""
        of = mapping(value, "a parameter")
        return cls(
            name=field(of, "name", str),
            kind=field(of, "kind", str),
            list=field(of, "list", bool),
            default=optional(of, "default", str),
            choices=tuple(str(one) for one in field(of, "choices", list)),
            help=field(of, "help", str),
        )


@dataclass(frozen=True)
class Outline:
    """What a template takes."""

    name: str
    description: str
    parameters: list[Parameter]
    files: list[str]
    """Paths beside the template that its jobs name, with the values that are set."""
    problem: str | None
    """What is wrong with these values, or missing."""

    @classmethod
    def read(cls, value: Any) -> Outline:
        """Reads it from JSON."""
        of = mapping(value, "an outline")
        return cls(
            name=field(of, "name", str),
            description=field(of, "description", str),
            parameters=[Parameter.read(one) for one in field(of, "parameters", list)],
            files=[str(one) for one in field(of, "files", list)],
            problem=optional(of, "problem", str),
        )


@dataclass(frozen=True)
class BatchJob:
    """A job that was submitted with others."""

    job: str
    """Its id."""
    name: str
    step: str
    """Name of its step in the template."""
    values: Mapping[str, str]
    """Values that the sweep gave it, by variable."""


@dataclass(frozen=True)
class Batch:
    """Jobs that were submitted together."""

    batch: str
    """Name that they share: `jobs(batch=...)` lists them."""
    jobs: list[BatchJob]
    """Each after those that it waits for."""
    notes: list[str]
    """What people should know."""

    @classmethod
    def read(cls, value: Any) -> Batch:
        """Reads it from JSON."""
        of = mapping(value, "a batch")
        jobs = [mapping(one, "a job") for one in field(of, "jobs", list)]
        return cls(
            batch=field(of, "batch", str),
            jobs=[
                BatchJob(
                    job=field(one, "job", str),
                    name=field(one, "name", str),
                    step=field(one, "step", str),
                    values={k: str(v) for k, v in field(one, "values", dict).items()},
                )
                for one in jobs
            ],
            notes=[str(one) for one in field(of, "notes", list)],
        )


@dataclass(frozen=True)
class Preset:
    """A template that an admin has published."""

    name: str
    by: str
    """Name of the admin."""
    at: int
    """When, in seconds since 1970."""
    template: str | None
    """Its text; None in a listing."""

    @classmethod
    def read(cls, value: Any) -> Preset:
        """Reads it from JSON."""
        of = mapping(value, "a preset")
        return cls(
            name=field(of, "name", str),
            by=field(of, "by", str),
            at=field(of, "at", int),
            template=optional(of, "template", str),
        )


@dataclass(frozen=True)
class Changed:
    """What a change did."""

    jobs: list[str]
    """Ids of the jobs that were changed."""
    unchanged: int
    """How many named jobs were like this already."""
    refusals: list[str]
    """Why the others were not, one text each; the first of them."""
    refused: int
    """How many were refused."""
    left: int
    """How many more are selected than one request has room for: ask again."""

    @classmethod
    def read(cls, value: Any) -> Changed:
        """Reads it from JSON."""
        of = mapping(value, "an answer")
        jobs = [mapping(job, "a job") for job in field(of, "jobs", list)]
        refusals = [mapping(one, "a refusal") for one in field(of, "refusals", list)]
        return cls(
            jobs=[field(job, "job", str) for job in jobs],
            unchanged=field(of, "unchanged", int),
            refusals=[f"{field(r, 'what', str)}: {field(r, 'why', str)}" for r in refusals],
            refused=field(of, "refused", int),
            left=field(of, "left", int),
        )
