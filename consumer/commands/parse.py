"""Reading a command: bytes and AMQP properties in; a checked command out, or the reasons for refusing it. Pure: the
caller passes the current time.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
import orjson
from msgspec.structs import replace
from pydantic import ValidationError

from consumer.commands.schedule import Schedule, resolve
from consumer.commands.webhook import WebhookRules, check_webhook
from consumer.errors import Refusal
from shared.contract.fields import format_instant
from shared.contract.history import UNNAMED, Origin
from shared.contract.json_depth import say_too_deep, too_deep_field
from shared.contract.labels import write_labels
from shared.contract.messages import (
    BULK_TYPE,
    CANCEL_TYPE,
    PAUSE_TYPE,
    QUERY_TYPE,
    REQUEST_TYPE,
    RESUME_TYPE,
    TRIGGER_TYPE,
    BulkAction,
    ScheduleBulk,
    ScheduleCancel,
    SchedulePause,
    ScheduleQuery,
    ScheduleRequest,
    ScheduleResume,
    ScheduleTrigger,
)
from shared.contract.names import BULK_KEY, CANCEL_KEY, PAUSE_KEY, QUERY_KEY, REQUEST_KEY, RESUME_KEY, TRIGGER_KEY
from shared.contract.wording import describe_problem, limit_errors

# How large the fields of a command besides its payload may be.
MAX_BYTES_BESIDE_PAYLOAD = 64 * 1024
# How long a request may have waited in a queue and still start its rule at the time when it was made.
MAX_TIMESTAMP_AGE = timedelta(days=30)

Model = TypeVar(
    "Model",
    ScheduleRequest,
    ScheduleCancel,
    SchedulePause,
    ScheduleResume,
    ScheduleTrigger,
    ScheduleQuery,
    ScheduleBulk,
)

_TYPE_OF_KEY = {
    REQUEST_KEY: REQUEST_TYPE,
    CANCEL_KEY: CANCEL_TYPE,
    PAUSE_KEY: PAUSE_TYPE,
    RESUME_KEY: RESUME_TYPE,
    TRIGGER_KEY: TRIGGER_TYPE,
    QUERY_KEY: QUERY_TYPE,
    BULK_KEY: BULK_TYPE,
}


class RawCommand(msgspec.Struct, frozen=True):
    """A command as it arrived: its body, and the AMQP properties that say what it is and who sent it."""

    body: bytes
    type: str | None
    routing_key: str
    timestamp: datetime | None = None
    unreadable: str | None = None  # "property: what is wrong with it"
    traceparent: str | None = None
    user_id: str | None = None
    origin: Origin = UNNAMED
    reply_to: str | None = None  # only if it may be answered
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    id: str
    user: str | None = None
    revision: int | None = None  # closes every revision up to this one; None: the one that the job has
    origin: Origin = UNNAMED


@dataclass(frozen=True, slots=True)
class Pause:
    id: str
    user: str | None = None
    revision: int | None = None  # speaks of every revision of the job up to this one; None: of all
    origin: Origin = UNNAMED


@dataclass(frozen=True, slots=True)
class Resume:
    id: str
    user: str | None = None
    revision: int | None = None  # speaks of every revision of the job up to this one; None: of all
    origin: Origin = UNNAMED


@dataclass(frozen=True, slots=True)
class Trigger:
    id: str
    trigger_id: str
    payload: str | None = None  # JSON text, as it came; None: the payload of the job
    traceparent: str | None = None
    user: str | None = None
    origin: Origin = UNNAMED


@dataclass(frozen=True, slots=True)
class Query:
    id: str
    user: str | None = None
    history: int = 10  # how many entries the reply has
    upcoming: int = 3  # how many next instants the reply has


@dataclass(frozen=True, slots=True)
class Bulk:
    """An action on all jobs that match. `reply_to` and `correlation_id` are those of its message: the reply comes when
    the bulk is finished.
    """

    id: str
    action: BulkAction
    labels: str | None = None  # JSON text, by `write_labels`
    topic: str | None = None
    id_prefix: str | None = None
    dry_run: bool = False
    traceparent: str | None = None
    user: str | None = None
    origin: Origin = UNNAMED
    reply_to: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A command that cannot be carried out. Each error begins with the name of the field that it is about."""

    errors: tuple[str, ...]
    id: str | None = None
    parked: bool = True  # a query is not: nothing is lost with it
    user: str | None = None
    origin: Origin = UNNAMED


Command = Schedule | Cancel | Pause | Resume | Trigger | Query | Bulk | Refused


class _PayloadOnly(msgspec.Struct):
    payload: msgspec.Raw = msgspec.Raw()


def read_command(
    raw: RawCommand, now: datetime, max_payload_bytes: int, webhook_rules: WebhookRules | None = None
) -> Command:
    """Return the command that the message holds. A mistake of its publisher is returned as `Refused`, not raised.

    Without `webhook_rules`, which only the consumer's settings tell, every address and every secret is taken.
    """
    job_id: str | None = None
    kind: str | None = None
    try:
        kind = _message_type(raw)
        content = _json_object(raw.body, max_payload_bytes)
        if isinstance(given_id := content.get("id"), str):
            job_id = given_id[:200]
        if kind not in {REQUEST_TYPE, TRIGGER_TYPE}:
            return _read_without_payload(kind, raw, content)
        payload = _raw_payload(raw.body, max_payload_bytes) if "payload" in content else None
        if kind == TRIGGER_TYPE:
            trigger = _validated(ScheduleTrigger, content)
            given = payload if content.get("payload") is not None else None
            return Trigger(trigger.id, trigger.trigger_id, given, raw.traceparent, raw.user_id, raw.origin)
        request = _validated(ScheduleRequest, content)
        if request.webhook is not None and webhook_rules is not None:
            check_webhook(request.webhook, webhook_rules)
        made_at = _made_at(raw, now) if request.starts_when_made else now
        schedule = resolve(request, payload, made_at, traceparent=raw.traceparent, user=raw.user_id)
        return schedule if raw.origin is UNNAMED else replace(schedule, origin=raw.origin)
    except Refusal as refusal:
        return Refused(limit_errors(refusal.errors), job_id, kind != QUERY_TYPE, raw.user_id, raw.origin)


def _read_without_payload(
    kind: str, raw: RawCommand, content: dict[str, Any]
) -> Cancel | Pause | Resume | Query | Bulk:
    if kind == CANCEL_TYPE:
        cancel = _validated(ScheduleCancel, content)
        return Cancel(cancel.id, raw.user_id, cancel.revision, _with_note(raw.origin, cancel.note))
    if kind == PAUSE_TYPE:
        pause = _validated(SchedulePause, content)
        return Pause(pause.id, raw.user_id, pause.revision, _with_note(raw.origin, pause.note))
    if kind == RESUME_TYPE:
        resume = _validated(ScheduleResume, content)
        return Resume(resume.id, raw.user_id, resume.revision, _with_note(raw.origin, resume.note))
    if kind == BULK_TYPE:
        return _read_bulk(_validated(ScheduleBulk, content), raw)
    query = _validated(ScheduleQuery, content)
    return Query(query.id, raw.user_id, query.history, query.upcoming)


def _read_bulk(bulk: ScheduleBulk, raw: RawCommand) -> Bulk:
    selector, origin = bulk.selector, _with_note(raw.origin, bulk.note)
    labels = write_labels(selector.labels) if selector.labels else None
    return Bulk(
        bulk.id,
        bulk.action,
        labels,
        selector.topic,
        selector.id_prefix,
        bulk.dry_run,
        raw.traceparent,
        raw.user_id,
        origin,
        raw.reply_to,
        raw.correlation_id,
    )


def _with_note(origin: Origin, note: str | None) -> Origin:
    return origin if note is None else replace(origin, note=note)


def _message_type(raw: RawCommand) -> str:
    if raw.unreadable:
        raise Refusal(raw.unreadable)
    if raw.type:
        if raw.type in _TYPE_OF_KEY.values():
            return raw.type
        raise Refusal(f"type: {raw.type!r} is not a command; {REQUEST_TYPE} is one")
    if kind := _TYPE_OF_KEY.get(raw.routing_key):
        return kind
    raise Refusal(f"type: is missing, and the routing key {raw.routing_key!r} names no command")


def _json_object(body: bytes, max_payload_bytes: int) -> dict[str, Any]:
    limit = max_payload_bytes + MAX_BYTES_BESIDE_PAYLOAD
    if len(body) > limit:
        raise Refusal(f"payload: the message has {len(body)} bytes; with a payload at its limit it would have {limit}")
    # Before it is parsed: parsers have limits of their own.
    if field := too_deep_field(body):
        raise Refusal(say_too_deep(field))
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refusal(f"{_faulty_field(body)}: {error}") from None
    if not isinstance(content, dict):
        raise Refusal("body: must be a JSON object")
    return content


def _faulty_field(body: bytes) -> str:
    """Return the top-level field that orjson refuses, if the lenient parser of Python can read the body (NaN, half a
    surrogate pair); else "body".
    """
    try:
        content = json.loads(body)
    except ValueError:
        return "body"
    if isinstance(content, dict):
        for field, value in content.items():
            try:
                orjson.loads(json.dumps({field: value}))
            except orjson.JSONDecodeError:
                return str(field.encode(errors="replace").decode()) if isinstance(field, str) else "body"
    return "body"


def _validated(model: type[Model], content: dict[str, Any]) -> Model:
    # Many clients write null for a field that they leave out.
    given = {name: value for name, value in content.items() if value is not None or name not in model.model_fields}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise Refusal(*(describe_problem(problem) for problem in error.errors(include_url=False))) from None


def _raw_payload(body: bytes, max_payload_bytes: int) -> str:
    """Return the bytes of the payload unchanged, so that receivers get its numbers, escapes and white space as sent."""
    payload = bytes(msgspec.json.decode(body, type=_PayloadOnly).payload)
    if len(payload) > max_payload_bytes:
        raise Refusal(f"payload: has {len(payload)} bytes, the limit is {max_payload_bytes}")
    return payload.decode()


def _made_at(raw: RawCommand, now: datetime) -> datetime:
    """Return when the request was made: the publisher's timestamp, so that a request that waited in the queue loses no
    occurrence. A timestamp in the future counts as now.
    """
    if raw.timestamp is None:
        return now
    if now - raw.timestamp > MAX_TIMESTAMP_AGE:
        # More likely the publisher's clock is wrong; and an hourly rule from 1970 would catch up for days.
        raise Refusal(f"timestamp: {format_instant(raw.timestamp)} is too long ago to start a rule there; use start_at")
    return min(raw.timestamp, now)
