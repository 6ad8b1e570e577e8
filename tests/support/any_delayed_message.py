"""Delayed messages with all that AMQP 0-9-1 allows, as bytes, and the bytes in which they are to arrive. The expected
bytes are put together here, not by the code under test.
"""

import math
import struct
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.support.raw_publishing import short

YEAR_MS = 365 * 24 * 3600 * 1000
SHORT_MS, LONG_MS = 2_000, 10 * YEAR_MS

# The properties in the order of their flags.
TEXTS_BEFORE, TEXTS_BETWEEN = ("content_type", "content_encoding"), ("correlation_id", "reply_to")
ORDER = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip
NUMBERS = {
    "b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I", "l": ">q", "f": ">f", "d": ">d",
}  # fmt: skip
LARGEST = {"b": 127, "B": 255, "s": 32767, "u": 65535, "I": 2**31 - 1, "i": 2**32 - 1, "l": 2**62}
NEGATIVE = {"B": "s", "u": "I", "i": "l"}


class Field(NamedTuple):
    """A header, or an item of an array: the letter of its type, and its value as bytes without a length."""

    name: bytes
    kind: str
    value: bytes

    @property
    def typed(self) -> bytes:
        length = struct.pack(">I", len(self.value)) if self.kind in "SxFA" else b""
        return self.kind.encode() + length + self.value

    @property
    def named(self) -> bytes:
        return short(self.name) + self.typed


@dataclass(frozen=True, slots=True)
class AnyMessage:
    """`properties` are bytes by name, without the headers. `when` is the header that delays, as it is sent, and as it
    arrives. `delay_ms` is None for messages that are passed on at once; `in_ms` is that of a moment.
    """

    properties: dict[str, bytes]
    headers: tuple[Field, ...]
    has_headers: bool
    body: bytes
    when: tuple[Field, Field] | None = None
    place: int = 0
    delay_ms: Decimal | None = None
    moment: tuple[str, int] | None = None
    due_at: float | None = None  # of a message with a moment, by time.time()

    def at(self, now: datetime) -> "AnyMessage":
        """The message with its moment as a header, if it has one."""
        if self.moment is None:
            return self
        kind, in_ms = self.moment
        due = now + timedelta(milliseconds=in_ms)
        seconds, milliseconds = int(due.timestamp()), int(due.timestamp() * 1000)
        due_at = {"T": float(seconds), "l": milliseconds / 1000, "S": due.timestamp()}[kind]
        value = {"T": struct.pack(">Q", seconds), "l": struct.pack(">q", milliseconds), "S": due.isoformat().encode()}
        field = Field(b"x-deliver-at", kind, value[kind])
        return replace(self, when=(field, field), due_at=due_at)

    @property
    def sent(self) -> bytes:
        return self._written(0)

    def arriving(self, *, by_name: bool) -> bytes:
        """`by_name`: the broker sorts headers by their names, and keeps the first of each name."""
        return self._written(1, by_name=by_name)

    def _written(self, side: int, *, by_name: bool = False) -> bytes:
        headers, properties = list(self.headers), dict(self.properties)
        if self.when is not None:
            headers.insert(self.place % (len(headers) + 1), self.when[side])
        if side and (user := properties.pop("user_id", None)):
            headers.append(Field(b"duebell-user-id", "S", user[1:]))
        if by_name:
            first = {field.name: field for field in reversed(headers)}
            headers = [first[name] for name in sorted(first)]
        table = b"".join(field.named for field in headers)
        if headers or self.has_headers:
            properties["headers"] = struct.pack(">I", len(table)) + table
        flags = sum(1 << (15 - ORDER.index(name)) for name in properties)
        return struct.pack(">H", flags) + b"".join(properties[name] for name in ORDER if name in properties)


def _number(kind: str, number: float) -> bytes:
    return struct.pack(NUMBERS[kind], number)


# RabbitMQ closes a connection that sends a float which is not a finite number, and turns a boolean byte other than 0
# into 1.
scalars: st.SearchStrategy[tuple[str, bytes]] = st.one_of(
    st.sampled_from([b"\0", b"\1"]).map(lambda value: ("t", value)),
    st.sampled_from(["S", "x"]).flatmap(lambda kind: st.binary(max_size=12).map(lambda value: (kind, value))),
    st.sampled_from(["b", "B", "s", "u", "I", "i", "l", "f", "d", "T", "V", "D"]).flatmap(
        lambda kind: (
            st.binary(min_size=_size(kind), max_size=_size(kind))
            .filter(lambda value: kind not in "fd" or math.isfinite(struct.unpack(NUMBERS[kind], value)[0]))
            .map(lambda value: (kind, value))
        )
    ),
)


def _size(kind: str) -> int:
    return {"T": 8, "V": 0, "D": 5}.get(kind) or (struct.calcsize(NUMBERS[kind]) if kind in NUMBERS else 0)


def _nested(inner: st.SearchStrategy[tuple[str, bytes]]) -> st.SearchStrategy[tuple[str, bytes]]:
    tables = st.lists(st.tuples(st.binary(max_size=5), inner), max_size=3).map(
        lambda fields: ("F", b"".join(Field(name, *value).named for name, value in fields))
    )
    arrays = st.lists(inner, max_size=3).map(lambda items: ("A", b"".join(Field(b"", *value).typed for value in items)))
    return tables | arrays


values = scalars | _nested(scalars) | _nested(_nested(scalars) | scalars)
# Hypothesis likes to try bytes that it finds in the code: these names have a meaning, and come by themselves.
WITH_A_MEANING = {b"x-delay", b"x-deliver-at", b"duebell-id", b"duebell-user-id", b"CC", b"BCC"}
names = st.binary(max_size=8).filter(lambda name: name not in WITH_A_MEANING)
fields = st.builds(lambda name, value: Field(name, *value), names, values)
short_texts = st.binary(max_size=12).map(short)
copies = st.lists(st.binary(max_size=5), max_size=2).map(
    lambda keys: Field(b"CC", "A", b"".join(Field(b"", "S", key).typed for key in keys))
)
octets = st.binary(min_size=1, max_size=1)
bodies = st.one_of(
    st.just(b""),
    st.binary(max_size=30),
    st.text(max_size=20).map(str.encode),
    st.integers(1, 60_000).map(b"\0".__mul__),
)


def any_properties(user: str) -> st.SearchStrategy[dict[str, bytes]]:
    texts = ("content_type", "content_encoding", "correlation_id", "reply_to", "message_id", "type", "app_id")
    return st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys((*texts, "cluster_id"), short_texts),
            "delivery_mode": st.sampled_from([b"\1", b"\2"]),
            "priority": octets,
            "expiration": st.integers(3_600_000, 10**9).map(lambda ms: short(str(ms).encode())),
            "timestamp": st.binary(min_size=8, max_size=8),
            "user_id": st.just(short(user.encode())),
        },
    )


@st.composite
def delays(draw: Any, *, long: bool) -> tuple[Field, Field, Decimal]:
    """`x-delay` in any number type, as it is sent and as it arrives, and how many milliseconds it means."""
    kind = draw(st.sampled_from(["l", "d", "S", "i"] if long else [*LARGEST, "f", "d", "D", "S", "x"]))
    low, high = (2**31, LONG_MS) if long else (1, SHORT_MS)
    number = draw(st.integers(low, min(high, LARGEST.get(kind, high))))
    name = b"x-delay"
    match kind:
        case "S" | "x":
            text = draw(st.sampled_from(["{}", " {}", "+{}", "{}.5", "{}e0"])).format(number)
            arriving = b"-" + text.strip().removeprefix("+").encode()
            return Field(name, kind, text.encode()), Field(name, kind, arriving), Decimal(text)
        case "D":
            value = Decimal(number).scaleb(-1)
            sent = Field(name, "D", struct.pack(">BI", 1, number))
            return sent, Field(name, "d", struct.pack(">d", -float(value))), value
        case "f" | "d":
            exact = struct.unpack(NUMBERS[kind], _number(kind, number + 0.25))[0]
            return Field(name, kind, _number(kind, exact)), Field(name, kind, _number(kind, -exact)), Decimal(exact)
        case _:
            negative = NEGATIVE.get(kind, kind)
            return (
                Field(name, kind, _number(kind, number)),
                Field(name, negative, _number(negative, -number)),
                Decimal(number),
            )


# Nothing of this names a moment: it is passed on at once, as it is.
without_moment = st.one_of(
    st.sampled_from(["b", "s", "I", "l", "d"]).flatmap(
        lambda kind: st.integers(-100, 0).map(lambda number: Field(b"x-delay", kind, _number(kind, number)))
    ),
    st.sampled_from([b"", b"soon", b"-5", b"NaN", b"\xff", b"1_0"]).map(lambda text: Field(b"x-delay", "S", text)),
    st.sampled_from([("V", b""), ("t", b"\1"), ("F", b""), ("A", b"")]).map(lambda value: Field(b"x-delay", *value)),
    st.sampled_from([b"tomorrow", b"2026-13-01T00:00:00Z", b"2099-01-01T00:00:00"]).map(
        lambda text: Field(b"x-deliver-at", "S", text)
    ),
)


@st.composite
def any_message(draw: Any, user: str) -> AnyMessage:
    headers = tuple(draw(st.lists(fields, max_size=3)))
    if draw(st.integers(0, 9)) == 0:
        headers += (draw(copies),)
    common = (draw(any_properties(user)), headers, draw(st.booleans()), draw(bodies))
    place = draw(st.integers(0, 3))
    match draw(st.sampled_from(["short"] * 10 + ["moment"] * 4 + ["at once"] * 4 + ["none", "long"])):
        case "none":
            return AnyMessage(*common)
        case "at once":
            field = draw(without_moment)
            return AnyMessage(*common, when=(field, field), place=place)
        case "moment":
            moment = draw(st.tuples(st.sampled_from(["T", "l", "S"]), st.integers(-SHORT_MS, 2 * SHORT_MS)))
            return AnyMessage(*common, place=place, moment=moment)
        case kind:
            sent, arriving, delay = draw(delays(long=kind == "long"))
            return AnyMessage(*common, when=(sent, arriving), place=place, delay_ms=delay)
