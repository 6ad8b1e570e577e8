"""The states of a job and its legal moves: the one table that the SQL guards, the schema and the docs agree with."""

from enum import StrEnum


class JobStatus(StrEnum):
    PENDING = "pending"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"


JOB_MOVES: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.PENDING: frozenset({JobStatus.PENDING, JobStatus.PAUSED, JobStatus.DONE, JobStatus.CANCELLED}),
    JobStatus.PAUSED: frozenset({JobStatus.PAUSED, JobStatus.PENDING, JobStatus.CANCELLED}),
    JobStatus.DONE: frozenset(),
    JobStatus.CANCELLED: frozenset(),
}

# A job in one of these obeys commands; in the others it is over.
OPEN = frozenset(status for status, moves in JOB_MOVES.items() if moves)
