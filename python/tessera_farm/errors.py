"""What goes wrong, as exceptions: a refusal of the farm, a farm that is not there, a bad answer."""

from __future__ import annotations

from typing import Any


class TesseraError(Exception):
    """The base of everything that this package raises."""


class Unreachable(TesseraError):
    """No connection, or it was lost, also after the tries that were safe."""


class TimedOut(TesseraError):
    """No answer, no bytes or no end of a job within the time that was given."""


class BadAnswer(TesseraError):
    """An answer that is none: cut, too long, not JSON, or without a field that it must have."""


class Corrupt(BadAnswer):
    """A file whose bytes do not have the hash that names them."""


class SceneError(TesseraError):
    """A scene on this machine that cannot be sent. The text says which file, and why."""


class JobFailed(TesseraError):
    """A job that was waited for has failed or was cancelled."""

    def __init__(self, job: str, state: str, note: str) -> None:
        super().__init__(f"job {job} is {state}" + (f": {note}" if note else ""))
        self.job = job
        """Id of the job."""
        self.state = state
        """`failed` or `cancelled`."""
        self.note = note
        """Why, for people."""


class Refused(TesseraError):
    """The farm refuses a request, with problem details (RFC 9457)."""

    def __init__(self, status: int, title: str, detail: str, jobs: list[dict[str, Any]]) -> None:
        super().__init__(f"{status} {title}: {detail}" if detail else f"{status} {title}")
        self.status = status
        """HTTP status, 400 to 599."""
        self.title = title
        """Name of the status."""
        self.detail = detail
        """What was wrong, where, and what to do about it."""
        self.jobs = jobs
        """Jobs that a text means, where it means several; else empty."""


class Malformed(Refused):
    """400, 413, 415, 422: the request does not describe anything that can be done."""


class NotSignedIn(Refused):
    """401: the token is missing, not valid any more, or of another kind."""


class NotAllowed(Refused):
    """403: the token's role may not do this."""


class NotFound(Refused):
    """404: the job, frame, node or file is not there, or not for this token."""


class Conflict(Refused):
    """409: a name that means several things, or an upload that is elsewhere."""


class TooOften(Refused):
    """429: more requests than one identity may make. It was tried again for a while."""


class Unavailable(Refused):
    """503 and other statuses from 500 on: the farm cannot answer now."""


_KINDS = {
    400: Malformed,
    401: NotSignedIn,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    413: Malformed,
    415: Malformed,
    422: Malformed,
    429: TooOften,
}


def refusal(status: int, reason: str, problem: object | None) -> Refused:
    """The exception for a status. `problem` is the answer's JSON, whatever it is."""
    fields = problem if isinstance(problem, dict) else {}
    title = fields.get("title")
    detail = fields.get("detail")
    jobs = fields.get("jobs")
    kind = _KINDS.get(status, Unavailable if status >= 500 else Refused)
    return kind(
        status,
        title if isinstance(title, str) else reason,
        detail if isinstance(detail, str) else "",
        [job for job in jobs if isinstance(job, dict)] if isinstance(jobs, list) else [],
    )
