"""The messages that applications and Duebell exchange, as pydantic models: the contract, and the checks that need
nothing but the message itself. Commands refuse unknown fields, so that a misspelt one is an error and not a surprise.
"""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

REQUEST_TYPE = "ScheduleRequest"
CANCEL_TYPE = "ScheduleCancel"
PAUSE_TYPE = "SchedulePause"
RESUME_TYPE = "ScheduleResume"
TRIGGER_TYPE = "ScheduleTrigger"
DUE_TYPE = "ScheduleDue"
REPLY_TYPE = "ScheduleReply"
COMPLETED_TYPE = "DeliveryCompleted"
FAILED_TYPE = "DeliveryFailed"

_TOPIC = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)
_NAME = r"^[A-Za-z0-9_-]{1,100}$"

# Headers that belong to the connection, to HTTP itself or to Duebell.
_RESERVED_HEADERS = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade", "host", "content-length", "content-type", "expect", "user-agent",
        "x-idempotency-key", "webhook-id", "webhook-timestamp", "webhook-signature", "traceparent",
    }
)  # fmt: skip


def _without_nul(text: str) -> str:
    # Postgres' text cannot hold it. A payload may: its column is json, where it stays an escape.
    if "\0" in text:
        raise ValueError("must not contain NUL")
    return text


def _a_topic(text: str) -> str:
    if not _TOPIC.fullmatch(text):
        raise ValueError("must be words of A-Z, a-z, 0-9, _ and - joined by dots, such as invoices.reminder")
    return text


def _an_http_url(text: str) -> str:
    if not text.isascii() or any(c.isspace() or not c.isprintable() for c in text):
        raise ValueError("must be plain ASCII without white space (write IDN hosts as xn--…, the rest with %XX)")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # What it says would quote what it stumbled over: a password with a slash in it looks like a port.
        raise ValueError("has a host or a port that cannot be read") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must start with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user name or password; send an Authorization header instead")
    if port == 0:
        raise ValueError("must not name port 0")
    return text


def _header_names(headers: Any) -> Any:  # noqa: ANN401 - whatever was given; its type is checked after the names
    """Before the values are looked at: an error about those names its header."""
    for number, name in enumerate(headers if isinstance(headers, dict) else (), start=1):
        if not _HEADER_NAME.fullmatch(str(name)):
            # Not quoted: a whole line, value and all, is a common mistake.
            raise ValueError(f"the name of header {number} has a character that no header name has")
        if name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"{name!r} is set by Duebell or by HTTP itself")
    return headers


def _header_values(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"the value of {name!r} has a line break or a character outside printable ASCII")
    return headers


Text = Annotated[str, AfterValidator(_without_nul)]
JobId = Annotated[Text, StringConstraints(min_length=1, max_length=200)]


class Misfire(StrEnum):
    ALL = "all"
    LATEST = "latest"
    SKIP = "skip"


class Outcome(StrEnum):
    ACCEPTED = "accepted"
    RESCHEDULED = "rescheduled"
    DUPLICATE = "duplicate"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    RESUMED = "resumed"
    TRIGGERED = "triggered"
    REJECTED = "rejected"


class _Command(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Webhook(_Command):
    """Where and how delivery calls when the job is due."""

    url: Annotated[str, StringConstraints(max_length=2000), AfterValidator(_an_http_url)] = Field(
        description="http or https address that gets a POST", examples=["https://example.com/hooks/invoices"]
    )
    headers: Annotated[
        dict[str, Annotated[str, StringConstraints(max_length=4000)]],
        BeforeValidator(_header_names),
        AfterValidator(_header_values),
    ] = Field(
        default_factory=dict, max_length=50, description="sent with the POST", examples=[{"Authorization": "Bearer …"}]
    )
    timeout_seconds: float = Field(
        default=10.0, ge=0.1, le=120.0, allow_inf_nan=False, description="for the whole call"
    )
    max_retries: int = Field(default=3, ge=0, le=20, description="attempts after the first")
    secret: Annotated[str, StringConstraints(pattern=_NAME)] | None = Field(
        default=None, description="name of a signing secret that the delivery service knows; never its value"
    )


class ScheduleRequest(_Command):
    """Ring me at this moment, or by this rule."""

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
        default=None, description="a wall time that does not exist: ring after the gap, or not at all"
    )
    dst_fold: Literal["first", "last", "both"] | None = Field(
        default=None, description="a wall time that happens twice: ring the first time, the last, or both"
    )
    topic: Annotated[str, StringConstraints(max_length=128), AfterValidator(_a_topic)] = Field(
        default="default", description="the event type; part of the routing key", examples=["invoices.reminder"]
    )
    payload: Any = Field(default=None, description="any JSON value, carried untouched")
    webhook: Webhook | None = Field(default=None, description="call this when due, besides the event")
    misfire: Misfire = Field(
        default=Misfire.ALL,
        strict=False,
        description="what becomes of occurrences that are late by more than misfire_grace_seconds",
    )
    misfire_grace_seconds: int = Field(default=60, ge=0, le=366 * 86400)
    revision: int = Field(
        default=1, ge=0, le=2**63 - 1, description="a higher one reschedules, an equal or lower one is a duplicate"
    )

    @property
    def starts_when_made(self) -> bool:
        return self.at is None and self.start_at is None

    @model_validator(mode="after")
    def _exactly_one_schedule(self) -> Self:
        given = [name for name in ("at", "rrule", "cron", "every_seconds") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"at: exactly one of at, rrule, cron, every_seconds is needed; given: {', '.join(given) or 'none'}"
            )
        if self.at is not None and self.start_at is not None:
            raise ValueError("start_at: goes with a rule, not with at")
        return self


class ScheduleCancel(_Command):
    """Ring no more."""

    id: JobId = Field(description="the id of the request", examples=["invoice-42"])


class SchedulePause(_Command):
    """Keep the schedule, and do not ring until it is resumed."""

    id: JobId = Field(description="the id of the request", examples=["invoice-42"])


class ScheduleResume(_Command):
    """Ring again. What was missed meanwhile is what the misfire policy makes of it."""

    id: JobId = Field(description="the id of the request", examples=["invoice-42"])


class ScheduleTrigger(_Command):
    """Ring once, now, outside the rule. The schedule goes on as if nothing had happened."""

    id: JobId = Field(description="the id of the request", examples=["invoice-42"])
    trigger_id: JobId = Field(
        description="the application's own name for this firing: the same one again is a duplicate",
        examples=["resend-2026-07-10"],
    )
    payload: Any = Field(default=None, description="for this firing, instead of the job's own")


class ScheduleDue(BaseModel):
    """It is time. Readers ignore fields that they do not know."""

    model_config = ConfigDict(extra="ignore")

    id: str
    topic: str
    sequence: int = Field(ge=1, description="1, 2, 3 … within the job; its triggers are counted by themselves")
    trigger_id: str | None = Field(default=None, description="absent unless a ScheduleTrigger asked for this firing")
    due_at: datetime
    fired_at: datetime
    payload: Any
    idempotency_key: str = Field(description="the same for every copy of this firing")
    webhook: Webhook | None = None


class ScheduleReply(BaseModel):
    """The answer to a command that named a reply_to."""

    model_config = ConfigDict(extra="ignore")

    id: str | None = Field(description="null if the command could not be read far enough to know it")
    outcome: Outcome
    next_run_at: datetime | None = None
    upcoming: list[datetime] = Field(default_factory=list, description="the next three instants of what was accepted")
    errors: list[str] = Field(default_factory=list, description="each names its field first")


class _DeliveryEnded(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    topic: str
    sequence: int
    trigger_id: str | None = Field(default=None, description="absent unless a ScheduleTrigger asked for the firing")
    due_at: datetime
    idempotency_key: str
    status: Literal["COMPLETED", "FAILED"]
    attempts: int = Field(ge=1, description="calls made, the last one included")
    reason: str | None = Field(description="why it failed, such as http_404 or timeout; null if it did not")


class DeliveryCompleted(_DeliveryEnded):
    """The webhook was called and answered with a 2xx."""

    status: Literal["COMPLETED"]


class DeliveryFailed(_DeliveryEnded):
    """The webhook will not be called again, unless an operator replays the delivery."""

    status: Literal["FAILED"]
