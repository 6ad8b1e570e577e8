"""Reads what MassTransit's schedulers are asked for, in JSON envelopes: a message to hold, or a command. Pure.

A scheduled message becomes a delayed message, and a recurring one a job. The event of such a job is read here, too, and
becomes a delayed message that is due at once. What is sent at last is an envelope around the payload, to the exchange
that the destination names. Which exchanges may be reached is not decided here.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec.structs import replace

from consumer.commands.delayed import DelayedMessage, RefusedDelayed, move_user
from consumer.commands.masstransit_fields import (
    BadEnvelope,
    Fields,
    is_given,
    read_fields,
    read_instant,
    read_uuid,
    read_value,
    required,
)
from consumer.commands.parse import Command, Refused, Trigger
from consumer.commands.quartz_cron import as_rrule
from consumer.commands.schedule import Schedule
from shared.amqp.content_header import ContentHeader
from shared.amqp.message import IncomingMessage
from shared.contract.fields import format_instant
from shared.contract.json_depth import say_too_deep, too_deep_field
from shared.contract.messages import CANCEL_TYPE, PAUSE_TYPE, REQUEST_TYPE, RESUME_TYPE
from shared.contract.names import MASSTRANSIT_TOPIC

CONTENT_TYPE = "application/vnd.masstransit+json"
TOKEN_HEADER = "MT-Scheduling-TokenId"  # noqa: S105 - a header's name

_ID_PREFIX = "masstransit:"
_TYPES = "urn:message:MassTransit.Scheduling:"
_SCHEMES = {"rabbitmq", "rabbitmqs", "amqp", "amqps"}
# MassTransit allows no other characters in the names of exchanges and queues.
_ENTITY = re.compile(r"[A-Za-z0-9_.:-]{1,255}", re.ASCII)
_MISFIRES = {0: "latest", 1: "skip", 2: "latest", "default": "latest", "skip": "skip", "send": "latest"}

# What the fields of a request are called in MassTransit's message.
_FIELDS = {
    "id": "message.schedule.scheduleId",
    "rrule": "message.schedule.cronExpression",
    "start_at": "message.schedule.startTime",
    "timezone": "message.schedule.timeZoneId",
    "payload": "message.payload",
}


class MassTransitMessage(DelayedMessage, frozen=True, gc=False):
    """A delayed message whose sender has named the target in the body. The target has to be open."""

    must_be_open: bool = True


def read_masstransit(
    message: IncomingMessage, virtual_host: str, now: datetime, max_bytes: int
) -> MassTransitMessage | IncomingMessage | RefusedDelayed:
    """Return the delayed message that an envelope asks for, or the command; or why it cannot be read."""
    try:
        return _read(message, virtual_host, now, max_bytes)
    except BadEnvelope as error:
        return RefusedDelayed(str(error))


def _read(
    message: IncomingMessage, virtual_host: str, now: datetime, max_bytes: int
) -> MassTransitMessage | IncomingMessage:
    if len(message.body) > max_bytes:
        raise BadEnvelope(f"body: has {len(message.body)} bytes, the limit is {max_bytes}")
    if (message.content_type or "").partition(";")[0].strip().lower() != CONTENT_TYPE:
        raise BadEnvelope(f"content_type: must be {CONTENT_TYPE}, not {message.content_type!r}")
    if (field := too_deep_field(message.body)) is not None:
        raise BadEnvelope(say_too_deep(field))
    envelope = read_fields("body", message.body)
    kinds = read_value(envelope, "messageType", list[str], "a list of texts")
    content = read_fields("message", required(envelope, "message"))
    for name, read in _READERS.items():
        if _TYPES + name in kinds:
            return read(message, envelope, content, virtual_host, now)
    raise BadEnvelope(f"messageType: none of {', '.join(_READERS)} in MassTransit.Scheduling")


def read_occurrence(event: IncomingMessage) -> MassTransitMessage | RefusedDelayed:
    """Return the delayed message of one occurrence of a recurring message. It is due at once."""
    try:
        due = read_fields("body", event.body)
        payload = read_fields("payload", required(due, "payload"))
        key = read_value(due, "idempotency_key", str, "a text")
        due_at = read_value(due, "due_at", str, "a text")
        exchange = read_value(payload, "exchange", str, "a text")
        # A copy of the event becomes a copy of the message: receivers know it by its id.
        message_id = str(uuid5(NAMESPACE_URL, f"duebell:{key}"))
        envelope = read_fields("payload.envelope", required(payload, "envelope"))
        return MassTransitMessage(
            exchange=exchange,
            routing_key=b"",
            header=_new_header(message_id),
            body=msgspec.json.encode({"messageId": message_id, **envelope, "sentTime": due_at}),
            message_id=message_id,
        )
    except BadEnvelope as error:
        return RefusedDelayed(str(error))


def refuse_reserved(command: Command) -> Refused | None:
    """Refuse a command that has to come as an envelope of MassTransit. It would send an event of a recurring message,
    with an exchange and a body of its sender's choice.
    """
    if isinstance(command, Schedule) and command.topic == MASSTRANSIT_TOPIC:
        error = f"topic: {MASSTRANSIT_TOPIC} is for the recurring messages of MassTransit"
    elif isinstance(command, Trigger) and command.payload is not None and command.id.startswith(_ID_PREFIX):
        error = "payload: a recurring message of MassTransit is sent with its own"
    else:
        return None
    return Refused((error,), command.id, user=command.user, origin=command.origin)


def in_masstransits_words(error: str) -> str:
    """Return the error of a request with the name that its field has in MassTransit's message."""
    field, colon, text = error.partition(":")
    return f"{_FIELDS.get(field, field)}{colon}{text}"


def _read_message(
    message: IncomingMessage, envelope: Fields, content: Fields, virtual_host: str, now: datetime
) -> MassTransitMessage:
    token = read_uuid(content, "message.correlationId")
    due_at = read_instant(content, "message.scheduledTime")
    if due_at is None:
        raise BadEnvelope("message.scheduledTime: is missing")
    exchange = _destination(content, virtual_host)
    header = ContentHeader(message.header)
    move_user(header)
    return MassTransitMessage(
        exchange=exchange,
        routing_key=b"",
        header=header.changed(),
        body=msgspec.json.encode({**_outgoing(envelope, content, token), "sentTime": format_instant(max(due_at, now))}),
        due_at=due_at,
        message_id=message.message_id,
        name=token,
        user=message.user_id,
        app_id=message.app_id,
    )


def _read_recurring(
    message: IncomingMessage, envelope: Fields, content: Fields, virtual_host: str, now: datetime
) -> IncomingMessage:
    schedule = read_fields("message.schedule", required(content, "message.schedule"))
    sent_at = read_instant(envelope, "sentTime") or now
    start_at = read_instant(schedule, "message.schedule.startTime")
    until = read_instant(schedule, "message.schedule.endTime")
    expression = read_value(schedule, "message.schedule.cronExpression", str, "a text")
    try:
        rrule = as_rrule(expression, until)
    except ValueError as error:
        raise BadEnvelope(f"message.schedule.cronExpression: {error}") from None
    policy: Any = read_value(schedule, "message.schedule.misfirePolicy", int | str | None, "a policy", None) or 0
    misfire = _MISFIRES.get(policy.lower() if isinstance(policy, str) else policy)
    if misfire is None:
        raise BadEnvelope(f"message.schedule.misfirePolicy: {str(policy)[:40]!r} is none of Default, Skip, Send")
    token = read_uuid(content, "message.correlationId")
    outgoing = _outgoing(envelope, content, token)
    outgoing.pop("messageId", None)  # each occurrence has one of its own
    request = {
        "id": _recurring_id(schedule, "message.schedule."),
        "rrule": rrule,
        "start_at": format_instant(max(start_at or sent_at, sent_at)),
        "timezone": read_value(schedule, "message.schedule.timeZoneId", str | None, "a text", None) or "UTC",
        "topic": MASSTRANSIT_TOPIC,
        "misfire": misfire,
        "revision": _revision(sent_at),
        "payload": {"exchange": _destination(content, virtual_host), "envelope": outgoing},
    }
    return _command(message, REQUEST_TYPE, request)


def _read_cancel(
    message: IncomingMessage, _: Fields, content: Fields, _virtual_host: str, _now: datetime
) -> IncomingMessage:
    return _command(message, CANCEL_TYPE, {"id": read_uuid(content, "message.tokenId")})


def _of_recurring(command: str) -> "_Reader":
    def read(
        message: IncomingMessage, envelope: Fields, content: Fields, _virtual_host: str, now: datetime
    ) -> IncomingMessage:
        sent_at = read_instant(envelope, "sentTime") or now
        return _command(message, command, {"id": _recurring_id(content, "message."), "revision": _revision(sent_at)})

    return read


_Reader = Callable[[IncomingMessage, Fields, Fields, str, datetime], MassTransitMessage | IncomingMessage]
_READERS: Mapping[str, _Reader] = {
    "ScheduleMessage": _read_message,
    "CancelScheduledMessage": _read_cancel,
    "ScheduleRecurringMessage": _read_recurring,
    "CancelScheduledRecurringMessage": _of_recurring(CANCEL_TYPE),
    "PauseScheduledRecurringMessage": _of_recurring(PAUSE_TYPE),
    "ResumeScheduledRecurringMessage": _of_recurring(RESUME_TYPE),
}


def _command(message: IncomingMessage, kind: str, content: Mapping[str, Any]) -> IncomingMessage:
    return replace(
        message,
        body=msgspec.json.encode(content),
        type=kind,
        content_type="application/json",
        content_encoding=None,
        reply_to=None,
    )


def _outgoing(envelope: Fields, content: Fields, token: str) -> dict[str, Any]:
    """Return the envelope of the payload: that of the request, as far as it speaks of the message and not of it."""
    headers = read_fields("headers", envelope["headers"]) if is_given(envelope, "headers") else {}
    return {
        **envelope,
        "destinationAddress": required(content, "message.destination"),
        "messageType": read_value(content, "message.payloadType", list[str], "a list of texts"),
        "message": required(content, "message.payload"),
        "headers": {**headers, TOKEN_HEADER: token},
    }


def _recurring_id(fields: Fields, path: str) -> str:
    name = read_value(fields, f"{path}scheduleId", str, "a text")
    group = read_value(fields, f"{path}scheduleGroup", str | None, "a text", None) or ""
    return f"{_ID_PREFIX}{group}:{name}"


def _revision(sent_at: datetime) -> int:
    """Return the number by which a later command is known: microseconds since 1970."""
    return max(0, int((sent_at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000))


def _destination(content: Fields, virtual_host: str) -> str:
    """Return the exchange that an address means. MassTransit binds each queue to an exchange of the same name."""
    address: str = read_value(content, "message.destination", str, "an address")
    scheme, _, rest = address.partition(":")
    name, host = rest.partition("?")[0], virtual_host
    if scheme in _SCHEMES:
        folder, _, name = urlsplit(address).path.rpartition("/")
        host = unquote(folder.lstrip("/")) or "/"
    elif scheme not in {"queue", "exchange"}:
        raise BadEnvelope(
            f"message.destination: {address[:80]!r} is no address of RabbitMQ, such as rabbitmq://host/vhost/name"
        )
    if not _ENTITY.fullmatch(name):
        raise BadEnvelope(f"message.destination: {address[:80]!r} does not name an exchange or a queue")
    if host != virtual_host:
        raise BadEnvelope(
            f"message.destination: is in the virtual host {host[:80]!r}, and this one is {virtual_host!r}"
        )
    return name


def _new_header(message_id: str) -> bytes:
    header = ContentHeader(b"\0\0")
    header.add_short_text("content_type", CONTENT_TYPE.encode())
    header.add_persistence()
    header.add_short_text("message_id", message_id.encode())
    return header.changed()
