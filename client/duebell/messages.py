"""The messages of the contract, as far as an application sends or hears them. They say what docs/asyncapi.yaml says;
what only Duebell can judge, such as whether a rule can be read, is left to its verdict.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from duebell.checks import check_cron, check_id, check_labels, check_moment, check_zone, has_offset

JobId = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(check_id)]
Topic = Annotated[str, StringConstraints(max_length=128, pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
Revision = Annotated[int, Field(ge=0, le=2**63 - 1)]
Note = Annotated[str, StringConstraints(max_length=500)]
Labels = Annotated[
    dict[str, Annotated[str, StringConstraints(min_length=1, max_length=100)]],
    AfterValidator(check_labels),
    Field(json_schema_extra={"maxProperties": 16, "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$"}}),
]


class Misfire(StrEnum):
    ALL = "all"
    LATEST = "latest"
    SKIP = "skip"


class Outcome(StrEnum):
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


class JobStatus(StrEnum):
    PENDING = "pending"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"


class Command(BaseModel):
    """The base of all commands. It refuses unknown fields, so that a misspelt one is an error and not a surprise."""

    # A payload with NaN in it must fail to be written, not become null on the way.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, ser_json_inf_nan="constants")

    id: JobId


class Webhook(BaseModel):
    """Where and how Duebell calls when the job is due."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    url: Annotated[str, StringConstraints(max_length=2000, pattern="^[Hh][Tt][Tt][Pp][Ss]?://")]
    headers: dict[str, Annotated[str, StringConstraints(max_length=4000)]] = Field(default_factory=dict, max_length=50)
    timeout_seconds: float = Field(default=10.0, ge=0.1, le=120.0, allow_inf_nan=False)
    max_retries: int = Field(default=3, ge=0, le=20)
    secret: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,100}$")] | None = None


_SCHEDULES = {"at": "string", "rrule": "string", "cron": "string", "every_seconds": "integer"}


class ScheduleRequest(Command):
    """Ring me at this moment, or by this rule. `duebell.request` makes one from datetimes and the like, and gives it a
    revision from the clock; made directly, it has revision 1.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [name], "properties": {name: {"type": kind}}} for name, kind in _SCHEDULES.items()]
        }
    )

    at: str | None = None
    rrule: str | None = None
    cron: str | None = None
    every_seconds: int | None = Field(default=None, ge=1, le=366 * 86400)
    start_at: str | None = None
    timezone: str | None = None
    dst_gap: Literal["shift", "skip"] | None = None
    dst_fold: Literal["first", "last", "both"] | None = None
    topic: Topic = "default"
    payload: Any = None
    webhook: Webhook | None = None
    labels: Labels | None = None
    misfire: Misfire = Field(default=Misfire.ALL, strict=False)
    misfire_grace_seconds: int = Field(default=60, ge=0, le=366 * 86400)
    revision: Revision = 1

    @field_validator("at", "start_at")
    @classmethod
    def _check_moment(cls, text: str | None) -> str | None:
        return text if text is None else check_moment(text)

    @field_validator("timezone")
    @classmethod
    def _check_zone(cls, name: str | None) -> str | None:
        return name if name is None else check_zone(name)

    @field_validator("cron")
    @classmethod
    def _check_cron(cls, text: str | None) -> str | None:
        return text if text is None else check_cron(text)

    @model_validator(mode="after")
    def _exactly_one_schedule(self) -> Self:
        given = [name for name in _SCHEDULES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of {', '.join(_SCHEDULES)} is needed; given: {', '.join(given) or 'none'}")
        return self

    @model_validator(mode="after")
    def _a_timezone_for_local_times(self) -> Self:
        for name in ("at", "start_at"):
            moment = getattr(self, name)
            if moment is not None and self.timezone is None and not has_offset(moment):
                raise ValueError(f"timezone: is needed, because {name} has no offset (a datetime: no tzinfo)")
        return self


class ScheduleCancel(Command):
    """Ring no more. Requests up to the revision change nothing, whether they came before or come later."""

    revision: Revision | None = None
    note: Note | None = None


class SchedulePause(Command):
    """Keep the schedule, and do not ring until it is resumed."""

    revision: Revision | None = None
    note: Note | None = None


class ScheduleResume(Command):
    """Ring again. What was missed meanwhile is what the misfire policy makes of it."""

    revision: Revision | None = None
    note: Note | None = None


class ScheduleTrigger(Command):
    """Ring once, now, outside the rule."""

    trigger_id: JobId
    payload: Any = None


class ScheduleQuery(Command):
    """How does the job stand? The reply says it; nothing changes."""

    history: int = Field(default=10, ge=0, le=50)
    upcoming: int = Field(default=3, ge=0, le=20)


class BulkAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    TRIGGER = "trigger"


class BulkSelector(BaseModel):
    """Which jobs: those that match all that is given."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "anyOf": [
                {"required": ["labels"], "properties": {"labels": {"type": "object", "minProperties": 1}}},
                {"required": ["topic"], "properties": {"topic": {"type": "string"}}},
                {"required": ["id_prefix"], "properties": {"id_prefix": {"type": "string"}}},
            ]
        },
    )

    labels: Labels | None = None
    topic: Topic | None = None
    id_prefix: JobId | None = None

    @model_validator(mode="after")
    def _selects_something(self) -> Self:
        if not self.labels and self.topic is None and self.id_prefix is None:
            raise ValueError("at least one of labels, topic and id_prefix is needed")
        return self


class ScheduleBulk(Command):
    """Pause, resume, cancel or trigger all jobs that match. The reply comes when all of them are done."""

    action: BulkAction = Field(strict=False)
    selector: BulkSelector
    dry_run: bool = False
    note: Note | None = None


class BulkProgress(BaseModel):
    """How a bulk stands: `matched` jobs so far, and those of them that were `changed`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    action: str
    dry_run: bool
    matched: int
    changed: int
    requested_at: datetime
    finished_at: datetime | None


class ScheduleDue(BaseModel):
    """It is time. Fields that this version does not know are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    topic: str
    sequence: int = Field(ge=1)
    trigger_id: str | None = None
    due_at: datetime
    fired_at: datetime
    payload: Any
    idempotency_key: str
    webhook: Webhook | None = None


class HistoryEntry(BaseModel):
    """Something that happened to a job. What does not apply is None."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    at: datetime
    what: str
    life: int | None = None
    revision: int | None = None
    sequence: int | None = None
    due_at: datetime | None = None
    by_user: str | None = None
    app_id: str | None = None
    operator: str | None = None
    note: str | None = None
    details: dict[str, Any] | None = None


class ScheduleReply(BaseModel):
    """What became of a command. The fields from status on are only in the answer to a query."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str | None
    outcome: Outcome
    next_run_at: datetime | None = None
    upcoming: list[datetime] = Field(default_factory=list)
    errors: list[str] = Field(default_factory=list)
    status: JobStatus | None = None
    revision: int | None = None
    topic: str | None = None
    sequence: int | None = None
    last_due_at: datetime | None = None
    labels: dict[str, str] | None = None
    history: list[HistoryEntry] | None = None
    bulk: BulkProgress | None = None


class JobState(BaseModel):
    """How a job stands: the answer to a query."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    status: JobStatus
    revision: int
    topic: str
    sequence: int
    last_due_at: datetime | None
    next_run_at: datetime | None
    upcoming: list[datetime]
    labels: dict[str, str] | None
    history: list[HistoryEntry]
