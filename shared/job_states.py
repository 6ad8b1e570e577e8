"""The states of a job and its legal moves: the one table that the SQL guards, the schema and the docs agree with."""

from enum import StrEnum


class JobStatus(StrEnum):
    PENDING = "pending"
    DONE = "done"
    CANCELLED = "cancelled"


JOB_MOVES: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.PENDING: frozenset({JobStatus.PENDING, JobStatus.DONE, JobStatus.CANCELLED}),
    JobStatus.DONE: frozenset(),
    JobStatus.CANCELLED: frozenset(),
}
