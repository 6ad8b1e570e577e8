"""From what an application has at hand (datetimes, an address, any payload) to a checked command and its bytes."""

import json
from datetime import datetime
from typing import Any, Literal, Required, TypedDict, TypeVar, Unpack

from pydantic import ValidationError

from duebell.checks import in_words
from duebell.errors import InvalidCommand
from duebell.messages import Command, Misfire, ScheduleRequest, Webhook

Model = TypeVar("Model", bound=Command)


class RequestFields(TypedDict, total=False):
    """Exactly one of at, rrule, cron, every_seconds. A datetime without tzinfo is local, and needs `timezone`."""

    at: datetime | str | None
    rrule: str | None
    cron: str | None
    every_seconds: int | None
    start_at: datetime | str | None
    timezone: str | None
    dst_gap: Literal["shift", "skip"] | None
    dst_fold: Literal["first", "last", "both"] | None
    topic: str
    payload: Any
    webhook: Webhook | str | None
    misfire: Misfire | Literal["all", "latest", "skip"]
    misfire_grace_seconds: int
    revision: int


class RescheduleFields(RequestFields, total=False):
    revision: Required[int]  # type: ignore[misc]


def request(job_id: str, **fields: Unpack[RequestFields]) -> ScheduleRequest:
    return checked(ScheduleRequest, **{**{name: _as_sent(name, value) for name, value in fields.items()}, "id": job_id})


def checked(model: type[Model], **fields: object) -> Model:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        reasons = [in_words(problem, model.model_fields) for problem in error.errors(include_url=False)]
        raise InvalidCommand(str(fields.get("id")), reasons) from None


def encoded(command: Command) -> bytes:
    """Only what was given: defaults are Duebell's business."""
    try:
        content = command.model_dump(mode="json", exclude_unset=True)
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidCommand(command.id, [f"payload: {error}"]) from error


def _as_sent(name: str, value: object) -> object:
    if name in {"at", "start_at"} and isinstance(value, datetime):
        return value.isoformat()
    if name == "webhook" and isinstance(value, str):
        return {"url": value}
    return value
