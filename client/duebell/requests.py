"""Makes a checked command and its bytes from what an application has at hand: datetimes, an address, any payload."""

import json
from datetime import datetime
from typing import Any, Literal, TypedDict, TypeVar, Unpack
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from duebell.checks import in_words
from duebell.errors import InvalidCommand
from duebell.messages import Command, Misfire, ScheduleRequest, Webhook
from duebell.revisions import next_revision

Model = TypeVar("Model", bound=Command)


class RequestFields(TypedDict, total=False):
    """The fields of a request. It has exactly one of at, rrule, cron, every_seconds. A datetime without tzinfo is
    local, and needs `timezone`. Without `revision` the request gets the microseconds of the clock, and so replaces what
    is scheduled under its id.
    """

    at: datetime | str | None
    rrule: str | None
    cron: str | None
    every_seconds: int | None
    start_at: datetime | str | None
    timezone: ZoneInfo | str | None
    dst_gap: Literal["shift", "skip"] | None
    dst_fold: Literal["first", "last", "both"] | None
    topic: str
    payload: Any
    webhook: Webhook | str | None
    labels: dict[str, str] | None
    misfire: Misfire | Literal["all", "latest", "skip"]
    misfire_grace_seconds: int
    revision: int | None


class ChangeFields(TypedDict, total=False):
    """The fields of a cancel, a pause and a resume. Without `revision` the command gets the microseconds of the clock,
    and so comes after everything that was asked for before. `note` says why, for people.
    """

    revision: int | None
    note: str | None


class BulkFields(TypedDict, total=False):
    """Which jobs a bulk means, and `note`, which says why, for people."""

    labels: dict[str, str]
    topic: str
    id_prefix: str
    dry_run: bool
    note: str


def request(job_id: str, **fields: Unpack[RequestFields]) -> ScheduleRequest:
    """Make a checked request. It keeps its revision, so to send the same object again is to send a duplicate."""
    given = {name: _as_sent(name, value) for name, value in fields.items()}
    return checked(ScheduleRequest, **{**given, "id": job_id, "revision": _or_next(fields.get("revision"))})


def change(model: type[Model], job_id: str, **fields: Unpack[ChangeFields]) -> Model:
    """Make a checked cancel, pause or resume."""
    return checked(model, **{**fields, "id": job_id, "revision": _or_next(fields.get("revision"))})


def checked(model: type[Model], **fields: object) -> Model:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        reasons = [in_words(problem, model.model_fields) for problem in error.errors(include_url=False)]
        raise InvalidCommand(str(fields.get("id")), reasons) from None


def encoded(command: Command) -> bytes:
    """Return the command as JSON. Fields that were not given are left out: Duebell has the defaults."""
    try:
        content = command.model_dump(mode="json", exclude_unset=True)
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidCommand(command.id, [f"payload: {error}"]) from error


def _as_sent(name: str, value: object) -> object:
    if name in {"at", "start_at"} and isinstance(value, datetime):
        return value.isoformat()
    if name == "timezone" and isinstance(value, ZoneInfo):
        return value.key
    if name == "webhook" and isinstance(value, str):
        return {"url": value}
    return value


def _or_next(revision: int | None) -> int:
    return next_revision() if revision is None else revision
