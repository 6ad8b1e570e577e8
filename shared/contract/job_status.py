"""The states of a job and the moves between them. SQL guards, the schema and the documents agree with this table."""

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

# Commands change a job in one of these states. In the other states the job has ended.
OPEN = frozenset(status for status, moves in JOB_MOVES.items() if moves)
