"""What the HTTP API answers. Commands and verdicts are the messages of AMQP themselves: shared.contract.messages."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from shared.contract.messages import HistoryEntry, Outcome


class _Read(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class Problems(BaseModel):
    """Why nothing was done."""

    errors: list[str] = Field(description="each names its field or parameter first, if it is about one")


class ListedSchedule(_Read):
    id: str
    status: str
    topic: str
    labels: dict[str, str] | None
    rule: str = Field(description="in words", examples=["every weekday at 09:00 Europe/Berlin"])
    next_run_at: datetime | None
    retry_at: datetime | None = Field(description="when an event that the broker has refused is published again")
    refusals: int
    revision: int
    life: int
    sequence: int
    last_due_at: datetime | None
    finished_at: datetime | None
    owner: str | None
    has_webhook: bool


class SchedulePage(_Read):
    schedules: list[ListedSchedule]
    next: str | None = Field(description="give it as `after` for the next page; null: this is the last one")
    count: int = Field(description="how many match")
    more: bool = Field(description="the count stopped there: there may be more")


class Occurrence(_Read):
    at: datetime
    local: str = Field(description="by the clock of the rule's time zone", examples=["Fri 2026-07-10 09:00:00 CEST"])
    note: str | None = Field(description="what the clocks do on that day, if it matters")


class Schedule(_Read):
    """One schedule whole."""

    id: str
    status: str
    topic: str
    owner: str | None
    labels: dict[str, str] | None
    rule: dict[str, Any] | None = Field(description="as it is stored; null: it rings once")
    rule_in_words: str
    next_run_at: datetime | None
    retry_at: datetime | None
    refusals: int
    revision: int
    life: int
    sequence: int
    last_due_at: datetime | None
    misfire: str
    misfire_grace_seconds: int
    webhook: dict[str, Any] | None = Field(description="without the values of its headers")
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    upcoming: list[Occurrence] = Field(description="the next ten")
    payload_is_hidden: bool = Field(description="the user has no right to see payloads")
    payload: Any = Field(default=None, description="as the application sent it, number for number")


class Why(_Read):
    """Why a schedule has or has not rung."""

    id: str
    cause: str = Field(description="a name that programs may rely on", examples=["not_yet"])
    says: str
    to_do: str = Field(description="empty if there is nothing to do")
    history: list[HistoryEntry] = Field(description="newest first")


class Preview(_Read):
    """What would become of a ScheduleRequest. Nothing is sent."""

    outcome: Outcome
    errors: list[str]
    rule: str = Field(description="in words; empty if the request is wrong")
    upcoming: list[Occurrence]


class ListedDelivery(_Read):
    id: int
    job_id: str
    topic: str
    sequence: int
    status: str
    host: str
    retry_count: int
    max_retries: int
    due_at: datetime
    next_attempt_at: datetime | None
    finished_at: datetime | None
    failure_reason: str | None
    replay_of: int | None
    replayed_as: int | None


class DeliveryPage(_Read):
    deliveries: list[ListedDelivery]
    next: str | None = Field(description="give it as `after` for the next page; null: this is the last one")


class Attempt(_Read):
    number: int
    started_at: datetime
    duration_seconds: float
    status_code: int | None
    error: str | None
    answer: str | None = Field(description="the beginning of what was answered; null without the right to payloads")


class Delivery(_Read):
    id: int
    job_id: str
    idempotency_key: str
    replay_of: int | None
    replayed_as: int | None
    topic: str
    sequence: int
    trigger_id: str | None
    status: str
    url: str = Field(description="without its query")
    host: str
    timeout_seconds: float
    max_retries: int
    retry_count: int
    secret: str | None = Field(description="the name of the signing secret")
    due_at: datetime
    fired_at: datetime
    next_attempt_at: datetime | None
    failure_reason: str | None
    created_at: datetime
    finished_at: datetime | None
    attempts: list[Attempt] = Field(description="the last one first")


class BulkState(_Read):
    """How a ScheduleBulk stands. It goes on until it has a finished_at."""

    id: str
    action: str
    dry_run: bool
    labels: dict[str, str] | None
    topic: str | None
    id_prefix: str | None
    by_user: str | None
    operator: str | None
    note: str | None
    matched: int
    changed: int
    requested_at: datetime
    finished_at: datetime | None
