"""Client of Duebell, the scheduler for people who run RabbitMQ and Postgres.

async with Scheduler("amqp://…") as duebell:
    await duebell.schedule("invoice-42", at=tomorrow, payload={"invoice": 42})
"""

from duebell.errors import (
    Conflict,
    DuebellError,
    InvalidCommand,
    InvalidURL,
    NoReply,
    NotAllowed,
    Rejected,
    SomeFailed,
    Unconfirmed,
    Unreachable,
    Unroutable,
)
from duebell.messages import (
    BulkProgress,
    HistoryEntry,
    JobState,
    JobStatus,
    Misfire,
    Outcome,
    ScheduleDue,
    ScheduleReply,
    ScheduleRequest,
    Webhook,
)
from duebell.requests import request
from duebell.scheduler import Scheduler
from duebell.seen import InMemorySeen, Seen

__version__ = "0.1.0"

__all__ = [
    "BulkProgress",
    "Conflict",
    "DuebellError",
    "HistoryEntry",
    "InMemorySeen",
    "InvalidCommand",
    "InvalidURL",
    "JobState",
    "JobStatus",
    "Misfire",
    "NoReply",
    "NotAllowed",
    "Outcome",
    "Rejected",
    "ScheduleDue",
    "ScheduleReply",
    "ScheduleRequest",
    "Scheduler",
    "Seen",
    "SomeFailed",
    "Unconfirmed",
    "Unreachable",
    "Unroutable",
    "Webhook",
    "request",
]
