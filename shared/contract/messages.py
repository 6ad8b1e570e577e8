"""The messages that applications and Duebell exchange, as pydantic models, with all checks that need only the message.
Commands refuse unknown fields, so that a misspelt field is an error. The published contract quotes these docstrings.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.contract.fields import Headers, HttpUrl, IdempotencyKey, JobId, Note, Revision, SecretName, Text, Topic
from shared.contract.job_status import JobStatus
from shared.contract.labels import Labels

REQUEST_TYPE = "ScheduleRequest"
CANCEL_TYPE = "ScheduleCancel"
PAUSE_TYPE = "SchedulePause"
RESUME_TYPE = "ScheduleResume"
TRIGGER_TYPE = "ScheduleTrigger"
QUERY_TYPE = "ScheduleQuery"
BULK_TYPE = "ScheduleBulk"
DUE_TYPE = "ScheduleDue"
REPLY_TYPE = "ScheduleReply"
COMPLETED_TYPE = "DeliveryCompleted"
FAILED_TYPE = "DeliveryFailed"


class Misfire(StrEnum):
    ALL = "all"
    LATEST = "latest"
    SKIP = "skip"


class Outcome(StrEnum):
    """What became of a command:

    - accepted: of a request: it is stored; its id is new, or an ended id lives again
    - rescheduled: of a request: it has replaced one with a lower revision
    - duplicate: it is known, or one with a higher revision is; nothing changed, and `errors` say so if it may matter
    - cancelled: of a cancel: the job is cancelled, now or already
    - unknown: of a cancel or a query: there is no such job; a cancel has closed its revisions all the same
    - paused: of a pause: the job is paused, now or already
    - resumed: of a resume: the job is not paused, now or already
    - triggered: of a trigger: it rings once, now
    - rejected: it is wrong, of a user who is not the owner, or too late; nothing changed, and `errors` say why
    - found: of a query: the reply says how the job, or the bulk, stands
    - finished: of a bulk: it has gone through all jobs that match; `bulk` says how many it changed
    """

    ACCEPTED = "accepted"
    RESCHEDULED = "rescheduled"
    DUPLICATE = "duplicate"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    PAUSED = "paused"
    RESUMED = "resumed"
    TRIGGERED = "triggered"
    REJECTED = "rejected"
    FOUND = "found"
    FINISHED = "finished"


class _Command(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Webhook(_Command):
    """Where and how delivery calls when the job is due."""

    url: HttpUrl = Field(
        description="http or https address that gets a POST", examples=["https://example.com/hooks/invoices"]
    )
    headers: Headers = Field(
        default_factory=dict, max_length=50, description="sent with the POST", examples=[{"X-Tenant": "acme"}]
    )
    timeout_seconds: float = Field(
        default=10.0, ge=0.1, le=120.0, allow_inf_nan=False, description="for the whole call", examples=[2.5]
    )
    max_retries: int = Field(default=3, ge=0, le=20, description="attempts after the first", examples=[10])
    secret: SecretName | None = Field(
        default=None,
        description="name of a signing secret that the delivery service knows; never its value",
        examples=["billing"],
    )


_SCHEDULES = {"at": "string", "rrule": "string", "cron": "string", "every_seconds": "integer"}


class ScheduleRequest(_Command):
    """Ring me at this moment, or by this rule: exactly one of at, rrule, cron, every_seconds."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [name], "properties": {name: {"type": kind}}} for name, kind in _SCHEDULES.items()]
        }
    )

    id: JobId = Field(description="the application's own name for the schedule", examples=["invoice-42"])
    at: Text | None = Field(
        default=None,
        description="an instant; or a local date-time without offset, together with timezone",
        examples=["2026-07-10T09:00:00Z", "2026-07-10T09:00:00"],
    )
    rrule: Text | None = Field(
        default=None,
        description="RFC 5545: an RRULE, or lines of RRULE, RDATE and EXDATE",
        examples=["FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"],
    )
    cron: Text | None = Field(
        default=None, description="five cron fields, or @daily and friends", examples=["0 9 * * 1-5"]
    )
    every_seconds: int | None = Field(
        default=None, ge=1, le=366 * 86400, description="a plain interval on the absolute time line", examples=[5400]
    )
    start_at: Text | None = Field(
        default=None,
        description="the rule's DTSTART: an instant, or local in timezone; missing: when the request was made",
        examples=["2026-07-10T09:00:00"],
    )
    timezone: Text | None = Field(
        default=None, description="IANA name; rules default to UTC", examples=["Europe/Berlin"]
    )
    dst_gap: Literal["shift", "skip"] | None = Field(
        default=None,
        description="a wall time that does not exist: ring after the gap, or not at all; missing: by the rule's kind",
        examples=["skip"],
    )
    dst_fold: Literal["first", "last", "both"] | None = Field(
        default=None,
        description="a wall time that happens twice: ring at the first, the last, or both; missing: by the rule's kind",
        examples=["both"],
    )
    topic: Topic = Field(
        default="default", description="the event type; part of the routing key", examples=["invoices.reminder"]
    )
    payload: Any = Field(default=None, description="any JSON value, carried untouched", examples=[{"invoice": 42}])
    webhook: Webhook | None = Field(
        default=None,
        description="call this when due, besides the event",
        examples=[{"url": "https://example.com/hooks/invoices"}],
    )
    labels: Labels | None = Field(
        default=None,
        description="for people: to find the schedule by, and to act on all that have them",
        examples=[{"team": "billing", "env": "production"}],
    )
    misfire: Misfire = Field(
        default=Misfire.ALL,
        strict=False,
        description="occurrences that are late by more than misfire_grace_seconds: all ring, the latest alone, or none",
        examples=["latest"],
    )
    misfire_grace_seconds: int = Field(
        default=60, ge=0, le=366 * 86400, description="how late an occurrence may be and still ring", examples=[300]
    )
    revision: Revision = Field(
        default=1,
        description="a higher one reschedules, or uses an ended id again; an equal or lower one is a duplicate",
        examples=[2],
    )

    @property
    def starts_when_made(self) -> bool:
        return self.at is None and self.start_at is None

    @model_validator(mode="after")
    def _exactly_one_schedule(self) -> Self:
        given = [name for name in _SCHEDULES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"at: exactly one of {', '.join(_SCHEDULES)} is needed; given: {', '.join(given) or 'none'}"
            )
        if self.at is not None and self.start_at is not None:
            raise ValueError("start_at: goes with a rule, not with at")
        return self


class _RevisedCommand(_Command):
    id: JobId = Field(description="the id of the request", examples=["invoice-42"])


class ScheduleCancel(_RevisedCommand):
    """Ring no more."""

    revision: Revision | None = Field(
        default=None,
        description="closes every revision up to this one; missing: the one that is there",
        examples=[2],
    )
    note: Note | None = Field(default=None, description="why, for people", examples=["paid by hand"])


class SchedulePause(_RevisedCommand):
    """Keep the schedule, and do not ring until it is resumed."""

    revision: Revision | None = Field(
        default=None,
        description="speaks of every revision up to this one, and comes after every lower pause and resume; missing: "
        "of the one that is there",
        examples=[3],
    )
    note: Note | None = Field(default=None, description="why, for people", examples=["holidays"])


class ScheduleResume(_RevisedCommand):
    """Ring again. What was missed meanwhile is what the misfire policy makes of it."""

    revision: Revision | None = Field(
        default=None,
        description="speaks of every revision up to this one, and comes after every lower pause and resume; missing: "
        "of the one that is there",
        examples=[4],
    )
    note: Note | None = Field(default=None, description="why, for people", examples=["back from the holidays"])


class ScheduleTrigger(_Command):
    """Ring once, now, outside the rule. The schedule goes on as if nothing had happened."""

    id: JobId = Field(description="the id of the request", examples=["invoice-42"])
    trigger_id: JobId = Field(
        description="the application's own name for this firing: the same one again is a duplicate",
        examples=["resend-2026-07-10"],
    )
    payload: Any = Field(
        default=None, description="for this firing, instead of the job's own", examples=[{"invoice": 42, "again": True}]
    )


class ScheduleQuery(_Command):
    """How does the job stand? The reply says it; nothing changes."""

    id: JobId = Field(description="the id of the request", examples=["invoice-42"])
    history: int = Field(
        default=10, ge=0, le=50, description="how many entries of its history the reply has, newest first", examples=[3]
    )
    upcoming: int = Field(default=3, ge=0, le=20, description="how many next instants the reply has", examples=[10])


class BulkAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    TRIGGER = "trigger"


class BulkSelector(_Command):
    """Which jobs: those that match all that is given. At least one is needed."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["labels"], "properties": {"labels": {"type": "object", "minProperties": 1}}},
                {"required": ["topic"], "properties": {"topic": {"type": "string"}}},
                {"required": ["id_prefix"], "properties": {"id_prefix": {"type": "string"}}},
            ]
        }
    )

    labels: Labels | None = Field(
        default=None, description="jobs that have all of these labels", examples=[{"team": "billing"}]
    )
    topic: Topic | None = Field(
        default=None, description="jobs of this topic, and of those below it", examples=["invoices"]
    )
    id_prefix: JobId | None = Field(
        default=None, description="jobs whose id begins with this text", examples=["invoice-"]
    )

    @model_validator(mode="after")
    def _selects_something(self) -> Self:
        if not self.labels and self.topic is None and self.id_prefix is None:
            raise ValueError("at least one of labels, topic and id_prefix is needed")
        return self


class ScheduleBulk(_Command):
    """Pause, resume, cancel or trigger all jobs that match and that were there when it was accepted. The reply comes
    when all of them are done.
    """

    id: JobId = Field(
        description="the application's own name for the bulk: the same one again is a duplicate",
        examples=["holidays-2026"],
    )
    action: BulkAction = Field(strict=False, description="what is done with each job", examples=["pause"])
    selector: BulkSelector = Field(description="which jobs", examples=[{"labels": {"team": "billing"}}])
    dry_run: bool = Field(default=False, description="change nothing, and count", examples=[True])
    note: Note | None = Field(default=None, description="why, for people", examples=["holidays"])


class BulkProgress(BaseModel):
    """How a bulk stands."""

    model_config = ConfigDict(extra="ignore")

    action: str = Field(description="of the bulk", examples=["pause"])
    dry_run: bool = Field(description="of the bulk", examples=[False])
    matched: int = Field(description="jobs that matched, so far", examples=[1200])
    changed: int = Field(description="those of them that were changed; of a dry run, that would be", examples=[1180])
    requested_at: datetime = Field(description="when it was accepted", examples=["2026-07-10T09:00:00Z"])
    finished_at: datetime | None = Field(
        description="when it had gone through all that match; null: it goes on", examples=["2026-07-10T09:00:02Z"]
    )


class ScheduleDue(BaseModel):
    """It is time. Readers ignore fields that they do not know."""

    model_config = ConfigDict(extra="ignore")

    id: str = Field(description="of the request", examples=["invoice-42"])
    topic: str = Field(description="of the request", examples=["invoices.reminder"])
    sequence: int = Field(
        ge=1, description="1, 2, 3 … within the job; its triggers are counted by themselves", examples=[1]
    )
    trigger_id: str | None = Field(
        default=None,
        description="absent unless a ScheduleTrigger asked for this firing",
        examples=["resend-2026-07-10"],
    )
    due_at: datetime = Field(description="the moment that was asked for", examples=["2026-07-10T09:00:00Z"])
    fired_at: datetime = Field(
        description="when it was published, by Postgres' clock; never before due_at",
        examples=["2026-07-10T09:00:00.004213Z"],
    )
    payload: Any = Field(description="of the request, byte for byte; null if it had none", examples=[{"invoice": 42}])
    idempotency_key: IdempotencyKey = Field(description="the same for every copy of this firing")
    webhook: Webhook | None = Field(
        default=None, description="absent if the job has none", examples=[{"url": "https://example.com/hooks/invoices"}]
    )


class HistoryEntry(BaseModel):
    """Something that happened to a job. What does not apply is left out."""

    model_config = ConfigDict(extra="ignore")

    at: datetime = Field(description="when", examples=["2026-07-10T09:00:00.004213Z"])
    what: str = Field(description="what happened; there may be other words than you know", examples=["fired"])
    life: int | None = Field(
        default=None, description="the life of the id in which it happened: 1 for its first", examples=[1]
    )
    revision: int | None = Field(default=None, description="of the command", examples=[2])
    sequence: int | None = Field(default=None, description="of the ScheduleDue", examples=[1])
    due_at: datetime | None = Field(
        default=None, description="the moment that it is about", examples=["2026-07-10T09:00:00Z"]
    )
    by_user: str | None = Field(default=None, description="the AMQP user_id of the command", examples=["my-app"])
    app_id: str | None = Field(default=None, description="the AMQP app_id of the command", examples=["billing-7"])
    operator: str | None = Field(default=None, description="who used the command line", examples=["alice"])
    note: str | None = Field(default=None, description="of the command", examples=["paid by hand"])
    details: dict[str, Any] | None = Field(
        default=None, description="what else is known, by name", examples=[{"late_seconds": 0.004}]
    )


class ScheduleReply(BaseModel):
    """The answer to a command that named a reply_to. The fields from status on are only in the answer to a query."""

    model_config = ConfigDict(extra="ignore")

    id: str | None = Field(
        description="null if the command could not be read far enough to know it", examples=["invoice-42"]
    )
    outcome: Outcome = Field(description="what became of the command", examples=["accepted"])
    next_run_at: datetime | None = Field(
        default=None, description="when the job rings next, if it does", examples=["2026-07-10T09:00:00Z"]
    )
    upcoming: list[datetime] = Field(
        default_factory=list,
        description="the next three instants of what was accepted; of a query, as many as it asks for",
        examples=[["2026-07-10T09:00:00Z", "2026-07-11T09:00:00Z", "2026-07-12T09:00:00Z"]],
    )
    errors: list[str] = Field(
        default_factory=list,
        description="each names its field first; those of a duplicate or unknown say why it is one",
        examples=[["timezone: 'Mars/Olympus' is not an IANA time zone"]],
    )
    status: JobStatus | None = Field(default=None, description="of the job", examples=["pending"])
    revision: int | None = Field(default=None, description="the highest one that is stored or closed", examples=[2])
    topic: str | None = Field(default=None, description="of the request", examples=["invoices.reminder"])
    sequence: int | None = Field(
        default=None, description="of its newest ScheduleDue; 0 if it has not rung yet", examples=[1]
    )
    last_due_at: datetime | None = Field(
        default=None, description="the due_at of its newest ScheduleDue", examples=["2026-07-09T09:00:00Z"]
    )
    labels: dict[str, str] | None = Field(
        default=None, description="of the request; null: none", examples=[{"team": "billing"}]
    )
    history: list[HistoryEntry] | None = Field(
        default=None, description="what happened to the id, newest first", examples=[[]]
    )
    bulk: BulkProgress | None = Field(
        default=None,
        description="of a bulk, and of a query for its id: how it stands",
        examples=[
            {
                "action": "pause",
                "dry_run": False,
                "matched": 1200,
                "changed": 1180,
                "requested_at": "2026-07-10T09:00:00Z",
                "finished_at": "2026-07-10T09:00:02Z",
            }
        ],
    )


class _DeliveryEnded(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str = Field(description="of the request", examples=["invoice-42"])
    topic: str = Field(description="of the request", examples=["invoices.reminder"])
    sequence: int = Field(description="of the ScheduleDue", examples=[1])
    trigger_id: str | None = Field(
        default=None,
        description="absent unless a ScheduleTrigger asked for the firing",
        examples=["resend-2026-07-10"],
    )
    due_at: datetime = Field(description="of the ScheduleDue", examples=["2026-07-10T09:00:00Z"])
    idempotency_key: IdempotencyKey = Field(description="of the ScheduleDue, and of every call")
    status: Literal["COMPLETED", "FAILED"] = Field(description="how it ended", examples=["COMPLETED"])
    attempts: int = Field(ge=1, description="calls made, the last one included", examples=[1])
    reason: str | None = Field(
        description="why it failed, such as http_404 or timeout; null if it did not", examples=["http_404"]
    )


class DeliveryCompleted(_DeliveryEnded):
    """The webhook was called and answered with a 2xx."""

    status: Literal["COMPLETED"] = Field(description="how it ended", examples=["COMPLETED"])


class DeliveryFailed(_DeliveryEnded):
    """The webhook will not be called again, unless an operator replays the delivery."""

    status: Literal["FAILED"] = Field(description="how it ended", examples=["FAILED"])
