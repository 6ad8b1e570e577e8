"""Entries of the history: what happened to an id, when, and by whom. Pure."""

from datetime import datetime
from enum import StrEnum

import msgspec


class HistoryLevel(StrEnum):
    """How much the services write into the history."""

    ALL = "all"
    CHANGES = "changes"  # without the occurrences that were published and called as planned
    OFF = "off"


class What(StrEnum):
    """What an entry of the history tells."""

    ACCEPTED = "accepted"  # a request: a new job, or a new life of an ended id
    RESCHEDULED = "rescheduled"
    DUPLICATE = "duplicate"  # a request that changed nothing, and whose application may not know why
    REJECTED = "rejected"  # any command
    CANCELLED = "cancelled"
    CLOSED = "closed"  # a cancel of an id that no request had used
    PAUSED = "paused"
    RESUMED = "resumed"
    TRIGGERED = "triggered"
    FIRED = "fired"  # a ScheduleDue is published
    UNROUTED = "unrouted"  # a ScheduleDue is published, and no queue was bound for it
    REFUSED = "refused"  # the broker did not take a ScheduleDue, or the job's rule could not be read
    DROPPED = "dropped"  # late occurrences, by the misfire policy
    ENDED = "ended"  # a rule has no further occurrence
    DELIVERED = "delivered"  # the webhook was called and answered with a 2xx
    DELIVERY_FAILED = "delivery_failed"
    BULK = "bulk"  # an action on all jobs that match; the entry has the id of the bulk
    REPLAYED = "replayed"  # an operator has a failed delivery tried again


# What happens again and again while all goes well. HISTORY=changes leaves it out.
AS_PLANNED = frozenset({What.FIRED, What.DELIVERED})


class Origin(msgspec.Struct, frozen=True):
    """Who sent a command, as far as the command says so, and why. The broker checks none of it."""

    app_id: str | None = None
    operator: str | None = None  # a person, as the command line names it
    note: str | None = None


UNNAMED = Origin()


class HistoryEntry(msgspec.Struct, frozen=True, gc=False):
    """A row of the table `history`. `due_at` is that of the occurrence; of a command, the next run after it, and of a
    cancel the run that it cancels.
    """

    job_id: str
    what: str  # a What; in a row that a newer release wrote, perhaps another word
    at: datetime | None = None  # None: when the row is written
    life: int | None = None
    revision: int | None = None
    sequence: int | None = None
    due_at: datetime | None = None
    by_user: str | None = None  # the AMQP user, which the broker has checked
    app_id: str | None = None
    operator: str | None = None
    note: str | None = None
    details: str | None = None  # JSON text


def is_kept(what: str, level: HistoryLevel) -> bool:
    """Return whether a service that keeps the history at this level writes such an entry."""
    match level:
        case HistoryLevel.ALL:
            return True
        case HistoryLevel.CHANGES:
            return what not in AS_PLANNED
        case HistoryLevel.OFF:
            return False
