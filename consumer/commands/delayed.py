"""Reading a delayed message: when it is due, and the bytes in which it will be published. Pure.

All properties and headers stay as they were sent, but for two. A positive `x-delay` becomes its negative, so that
nothing is delayed twice. The property `user_id`, which RabbitMQ accepts from that user alone, moves into a header.
"""

import math
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal

import msgspec
from msgspec.structs import replace

from shared.amqp.content_header import ContentHeader, Header, Unsplittable, negate, read_number, read_timestamp
from shared.amqp.message import IncomingMessage
from shared.contract.fields import LAST_YEAR, YearOutOfRange, parse_date_time
from shared.contract.names import DELAY_HEADER, DELIVER_AT_HEADER, DIRECT_REPLY_PREFIX, NAME_HEADER, USER_HEADER

# Properties and headers together. A frame of RabbitMQ's default size has room for a little more.
MAX_HEADER_BYTES = 120 * 1024

# What RabbitMQ adds to a message that it delivers again.
_DELIVERY_COUNTS = (b"x-delivery-count", b"x-acquired-count")
# What RabbitMQ adds when a message expires in a queue.
_DEATHS = (b"x-death", b"x-first-death-", b"x-last-death-")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(LAST_YEAR, 12, 31, tzinfo=UTC)
MAX_DUEBELL_ID_LENGTH = 200


class DelayedMessage(msgspec.Struct, frozen=True, gc=False):
    """A message that waits until it is due. It is due `delay` after it is stored, or at `due_at`; or at once."""

    exchange: str  # to which it will be published
    routing_key: bytes
    header: bytes  # flags and properties, as they will be published
    body: bytes
    delay: timedelta | None = None
    due_at: datetime | None = None
    message_id: str | None = None
    name: str | None = None  # a message with the same name, to the same exchange, replaces it
    user: str | None = None
    app_id: str | None = None
    # The sender has named the exchange, in a body or a header: RabbitMQ has not checked that the sender may reach it.
    must_be_open: bool = False


class RefusedDelayed(msgspec.Struct, frozen=True):
    """A message that cannot be held until it is due, and why. The error begins with the part that it is about."""

    error: str


def read_delayed(
    message: IncomingMessage, delay_prefix: str, now: datetime, max_body_bytes: int
) -> DelayedMessage | RefusedDelayed:
    """Return the message as it will be stored, or why it cannot be."""
    if not message.exchange.startswith(delay_prefix):
        came = "a queue's name" if not message.exchange else f"the exchange {message.exchange!r}"
        return RefusedDelayed(f"exchange: the message came by {came}; publish to an exchange {delay_prefix}… itself")
    if len(message.body) > max_body_bytes:
        return RefusedDelayed(f"body: has {len(message.body)} bytes, the limit is {max_body_bytes}")
    if len(message.header) > MAX_HEADER_BYTES:
        size = len(message.header)
        return RefusedDelayed(f"properties: have {size} bytes with all headers, the limit is {MAX_HEADER_BYTES}")
    try:
        header = ContentHeader(message.header)
        target = message.exchange.removeprefix(delay_prefix)
        if not target:
            _refuse_direct_reply(message.routing_key_bytes, header)
        moment = _read_moment(header, now)
        name = _read_name(header)
        move_user(header)
        return DelayedMessage(
            exchange=target,
            routing_key=message.routing_key_bytes,
            header=header.changed(),
            body=message.body,
            delay=moment if isinstance(moment, timedelta) else None,
            due_at=moment if isinstance(moment, datetime) else None,
            message_id=_text(header.short_text("message_id")),
            name=name,
            user=message.user_id,
            app_id=_text(header.short_text("app_id")),
        )
    except Unsplittable as error:
        return RefusedDelayed(f"properties: {error}")
    except _Refused as error:
        return RefusedDelayed(str(error))


def undo_expiry(message: IncomingMessage, queue: str) -> IncomingMessage | RefusedDelayed:
    """Return the message as it was before its own `expiration` ended in the queue of delayed messages. If it has died
    before, elsewhere, it keeps what RabbitMQ tells of all its deaths.

    Up to version 3.13 RabbitMQ believes what a sender writes into `x-death`: the exchange may be the sender's choice.
    """
    deaths = message.headers.get("x-death")
    death = deaths[0] if isinstance(deaths, list) and deaths and isinstance(deaths[0], dict) else {}
    exchange, expiration = death.get("exchange"), death.get("original-expiration")
    if (death.get("queue"), death.get("reason")) != (queue, "expired") or not isinstance(exchange, str):
        return RefusedDelayed(f"exchange: the message was given up by the broker: {death.get('reason', 'unknown')}")
    try:
        header = ContentHeader(message.header)
        for each in list(header.headers()) if len(deaths or ()) == 1 else ():
            if each.name.startswith(_DEATHS):
                header.remove(each)
        if isinstance(expiration, str) and header.short_text("expiration") is None:
            header.add_short_text("expiration", expiration.encode())
    except Unsplittable as error:
        return RefusedDelayed(f"properties: {error}")
    return replace(message, exchange=exchange, header=header.changed())


def undo_redelivery(message: IncomingMessage) -> IncomingMessage:
    """Return the message without the headers that count how often it was delivered to consumers, as one is that was not
    acknowledged before its consumer ended. Receivers would take them for deliveries of their own queue.
    """
    if not message.redelivered:
        return message
    try:
        header = ContentHeader(message.header)
        for each in list(header.headers()):
            if each.name in _DELIVERY_COUNTS:
                header.remove(each)
    except Unsplittable:  # it is refused when it is read
        return message
    return replace(message, header=header.changed())


class _Refused(Exception):
    """Ends the reading of one message."""


def _refuse_direct_reply(routing_key: bytes, header: ContentHeader) -> None:
    """Refuse a message that goes to a direct reply address of RabbitMQ. Such an address is one of a connection, which
    may be gone when the message is due; and over one that is made up RabbitMQ closes the connection of its publisher.
    """
    prefix, copies = DIRECT_REPLY_PREFIX.encode(), header.find(b"CC")
    for part, text in (("routing_key", routing_key), ("CC", copies.value if copies else b"")):
        if prefix in text:
            raise _Refused(f"{part}: a direct reply cannot be held; have replies sent to a queue")


def _read_moment(header: ContentHeader, now: datetime) -> timedelta | datetime | None:
    """Return the delay or the moment; None: at once. `x-deliver-at` counts only if there is no `x-delay`."""
    if (delay := header.find(DELAY_HEADER)) is not None:
        number = _finite(read_number(delay))
        if number is None or number <= 0:
            return None
        duration = _duration("x-delay", number, _LATEST - now)
        for each in list(header.headers()):
            if each.name == DELAY_HEADER and (_finite(read_number(each)) or 0) > 0:
                header.replace(each, *negate(each))
        return duration
    deliver_at = header.find(DELIVER_AT_HEADER)
    return None if deliver_at is None else _read_instant(deliver_at)


def _read_instant(header: Header) -> datetime | None:
    seconds = read_timestamp(header)
    number = _finite(read_number(header)) if seconds is None else 1000 * seconds
    if number is not None:
        return None if number <= 0 else _EPOCH + _duration("x-deliver-at", number, _LATEST - _EPOCH)
    try:
        moment = parse_date_time(header.value.decode()) if header.kind in b"Sx" else None
    except YearOutOfRange:
        if header.value > str(LAST_YEAR).encode():
            raise _too_late("x-deliver-at") from None
        return None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def _finite(number: float | Decimal | None) -> int | float | Decimal | None:
    # math.isfinite makes a float of a Decimal, and large ones infinite. read_number has checked those.
    return number if isinstance(number, Decimal) or (number is not None and math.isfinite(number)) else None


def _duration(field: str, milliseconds: float | Decimal, longest: timedelta) -> timedelta:
    """Return the duration, rounded up to the microsecond."""
    if milliseconds > longest // timedelta(milliseconds=1):
        raise _too_late(field)
    if isinstance(milliseconds, int):
        return timedelta(milliseconds=milliseconds)
    # Not by timedelta: it rounds to the nearest microsecond, which may be too early.
    microseconds = (Decimal(milliseconds) * 1000).to_integral_value(ROUND_CEILING)
    return timedelta(microseconds=int(microseconds))


def _too_late(field: str) -> _Refused:
    return _Refused(f"{field}: is later than the year {LAST_YEAR}")


def _read_name(header: ContentHeader) -> str | None:
    found = header.find(NAME_HEADER)
    if found is None:
        return None
    name = _text(found.value) if found.kind in b"Sx" else None
    if name is None or len(name) > MAX_DUEBELL_ID_LENGTH:
        raise _Refused(f"duebell-id: must be a text of 1 to {MAX_DUEBELL_ID_LENGTH} characters without NUL")
    return name


def move_user(header: ContentHeader) -> None:
    """Put the property `user_id` into a header: RabbitMQ takes the property from that user alone. A header of that name
    that the sender has written is taken out: receivers trust it.
    """
    user = header.short_text("user_id")
    if user:
        header.add_text(USER_HEADER, user)
    elif header.find(USER_HEADER):
        for each in list(header.headers()):
            if each.name == USER_HEADER:
                header.remove(each)
    if user is not None:
        header.take_out("user_id")


def _text(value: bytes | None) -> str | None:
    """Return a text as Postgres can store it, or None."""
    try:
        text = value.decode() if value else None
    except UnicodeDecodeError:
        return None
    return None if text is None or "\0" in text else text
