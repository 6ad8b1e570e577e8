"""Reading a command: bytes and AMQP properties in, a checked command or the reasons for refusing it out. Pure: the
caller says what time it is.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import msgspec
import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from consumer.json_faults import MAX_DEPTH, too_deep_field, where_json_is_wrong
from shared.instants import format_instant, parse_date_time, require_year_in_range
from shared.messages import CANCEL_TYPE, REQUEST_TYPE, Misfire, ScheduleCancel, ScheduleRequest
from shared.recurrence import BadRule, RuleSpec, compile_rule, dtstart_in, resolve_local
from shared.topology import CANCEL_KEY, REQUEST_KEY
from shared.zones import load_zone

# What a command may need besides its payload.
ROOM_BESIDE_PAYLOAD = 64 * 1024
MAX_ERRORS = 10
MAX_ERROR_LENGTH = 300

Model = TypeVar("Model", ScheduleRequest, ScheduleCancel)

_TYPE_OF_KEY = {REQUEST_KEY: REQUEST_TYPE, CANCEL_KEY: CANCEL_TYPE}


@dataclass(frozen=True, slots=True)
class RawCommand:
    body: bytes
    type: str | None
    routing_key: str
    timestamp: datetime | None = None
    unreadable: str | None = None  # "property: what is wrong with it"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A request that can be kept, with its first occurrence worked out."""

    id: str
    revision: int
    topic: str
    payload: str | None  # JSON text, as it came
    webhook: str | None  # JSON text
    rule: RuleSpec | None
    rule_index: int
    misfire: Misfire
    misfire_grace_seconds: int
    next_run_at: datetime


@dataclass(frozen=True, slots=True)
class Cancel:
    id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Each error starts with the field that it is about."""

    errors: tuple[str, ...]
    id: str | None = None


Command = Schedule | Cancel | Refused


class _PayloadOnly(msgspec.Struct):
    payload: msgspec.Raw = msgspec.Raw()


class _Refusal(Exception):
    """Inside this module only: ends the reading."""

    def __init__(self, *errors: str) -> None:
        self.errors = errors


def read_command(raw: RawCommand, now: datetime, max_payload_bytes: int) -> Command:
    job_id: str | None = None
    try:
        kind = _message_type(raw)
        content = _json_object(raw.body, max_payload_bytes)
        if isinstance(given_id := content.get("id"), str):
            job_id = given_id
        if kind == CANCEL_TYPE:
            return Cancel(_validated(ScheduleCancel, content).id)
        payload = _raw_payload(raw.body, max_payload_bytes) if "payload" in content else None
        return _resolve(_validated(ScheduleRequest, content), payload, _made_at(raw, now))
    except _Refusal as refusal:
        return Refused(tuple(error[:MAX_ERROR_LENGTH] for error in refusal.errors[:MAX_ERRORS]), job_id)


def _message_type(raw: RawCommand) -> str:
    if raw.unreadable:
        raise _Refusal(raw.unreadable)
    if raw.type:
        if raw.type in _TYPE_OF_KEY.values():
            return raw.type
        raise _Refusal(f"type: {raw.type!r} is not a command; {REQUEST_TYPE} or {CANCEL_TYPE} is")
    if kind := _TYPE_OF_KEY.get(raw.routing_key):
        return kind
    raise _Refusal(f"type: is missing, and the routing key {raw.routing_key!r} names no command")


def _json_object(body: bytes, max_payload_bytes: int) -> dict[str, Any]:
    limit = max_payload_bytes + ROOM_BESIDE_PAYLOAD
    if len(body) > limit:
        raise _Refusal(f"payload: the message has {len(body)} bytes; with a payload at its limit it would have {limit}")
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _Refusal(f"{where_json_is_wrong(body)}: {error}") from None
    if not isinstance(content, dict):
        raise _Refusal("body: must be a JSON object")
    if field := too_deep_field(body, content):
        raise _Refusal(f"{field}: is nested deeper than {MAX_DEPTH} levels")
    return content


def _validated(model: type[Model], content: dict[str, Any]) -> Model:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise _Refusal(*(_describe(problem) for problem in error.errors(include_url=False))) from None


def _describe(problem: ErrorDetails) -> str:
    field = ".".join(str(part) for part in problem["loc"])[:100]
    match problem["type"]:
        case "extra_forbidden":
            text = "is not a field of this command"
        case "missing":
            text = "is missing"
        case _:
            text = problem["msg"].removeprefix("Value error, ")
    return f"{field}: {text}" if field else text


def _raw_payload(body: bytes, max_payload_bytes: int) -> str:
    """The payload's own bytes: numbers, escapes and white space come out as they went in."""
    payload = bytes(msgspec.json.decode(body, type=_PayloadOnly).payload)
    if len(payload) > max_payload_bytes:
        raise _Refusal(f"payload: has {len(payload)} bytes, the limit is {max_payload_bytes}")
    return payload.decode()


def _made_at(raw: RawCommand, now: datetime) -> datetime:
    """When the request was made: the publisher's timestamp, so that one which waited in the queue loses no occurrence.
    A publisher whose clock is ahead gains nothing by it.
    """
    if raw.timestamp is None:
        return now
    try:
        require_year_in_range(raw.timestamp)
    except ValueError as error:
        raise _Refusal(f"timestamp: {error}") from None
    return min(raw.timestamp, now)


def _resolve(request: ScheduleRequest, payload: str | None, made_at: datetime) -> Schedule:
    rule, index = None, 1
    if request.at is not None:
        next_run_at = _instant_of(request.at, request)
    else:
        rule = _rule_spec(request, made_at)
        try:
            first = compile_rule(rule).first()
        except BadRule as error:
            raise _Refusal(f"{error.field}: {error}") from None
        if first is None:
            raise _Refusal(f"{_rule_field(request)}: has no occurrence")
        next_run_at, index = first.at, first.index
    return Schedule(
        id=request.id,
        revision=request.revision,
        topic=request.topic,
        payload=payload,
        webhook=request.webhook.model_dump_json(exclude_none=True) if request.webhook else None,
        rule=rule,
        rule_index=index,
        misfire=request.misfire,
        misfire_grace_seconds=request.misfire_grace_seconds,
        next_run_at=next_run_at,
    )


def _instant_of(text: str, request: ScheduleRequest) -> datetime:
    moment = _date_time("at", text, request.timezone)
    if moment.tzinfo is not None:
        return moment
    instant = resolve_local(
        moment,
        load_zone(request.timezone or ""),
        request.dst_gap or "shift",
        "last" if request.dst_fold == "last" else "first",
    )
    if instant is None:
        raise _Refusal(f"at: {text} does not exist in {request.timezone}, and dst_gap says skip")
    return instant


def _rule_spec(request: ScheduleRequest, made_at: datetime) -> RuleSpec:
    if request.start_at is None:
        start_at = format_instant(made_at)
        _require_zone(request.timezone)
    else:
        if request.rrule is not None and dtstart_in(request.rrule):
            raise _Refusal("start_at: the rrule has a DTSTART of its own")
        _date_time("start_at", request.start_at, request.timezone)
        start_at = request.start_at
    return RuleSpec(
        start_at=start_at,
        timezone=request.timezone or "UTC",
        rrule=request.rrule,
        cron=request.cron,
        every_seconds=request.every_seconds,
        dst_gap=request.dst_gap,
        dst_fold=request.dst_fold,
    )


def _date_time(field: str, text: str, timezone: str | None) -> datetime:
    try:
        moment = parse_date_time(text)
    except ValueError as error:
        raise _Refusal(f"{field}: {error}") from None
    _require_zone(timezone)
    if moment.tzinfo is None and timezone is None:
        raise _Refusal(f"timezone: is needed, because {field} has no offset")
    return moment


def _require_zone(timezone: str | None) -> None:
    try:
        if timezone is not None:
            load_zone(timezone)
    except ValueError as error:
        raise _Refusal(f"timezone: {error}") from None


def _rule_field(request: ScheduleRequest) -> str:
    return "rrule" if request.rrule is not None else "cron" if request.cron is not None else "every_seconds"
