"""Reads what is stored of requests, to compare it with a file that says how schedules should be."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.contract.job_status import JobStatus
from shared.contract.labels import read_labels
from shared.postgres.pool import Connection

IDS_AT_A_TIME = 1_000


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A job, as far as its request says it. `payload`, `webhook` and `rule` are JSON text as stored."""

    id: str
    status: JobStatus
    revision: int
    topic: str
    payload: str | None
    webhook: str | None
    rule: str | None
    misfire: str
    misfire_grace_seconds: int
    labels: dict[str, str] | None
    next_run_at: datetime | None
    last_due_at: datetime | None


READ_REQUESTS = """
select id, status, revision, topic, payload::text, webhook::text, rule::text, misfire, misfire_grace_seconds,
       labels::text, next_run_at, last_due_at
  from jobs where id = any($1::text[])
"""


async def read_requests(connection: Connection, ids: Sequence[str]) -> dict[str, StoredRequest]:
    """Return what is stored under these ids. An id without a job is missing."""
    found: dict[str, StoredRequest] = {}
    for first in range(0, len(ids), IDS_AT_A_TIME):
        for row in await connection.fetch(READ_REQUESTS, ids[first : first + IDS_AT_A_TIME]):
            values = {**dict(row), "status": JobStatus(row["status"]), "labels": read_labels(row["labels"])}
            found[row["id"]] = StoredRequest(**values)
    return found
