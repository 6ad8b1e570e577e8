"""AMQP properties and routing keys, byte by byte: everything that RabbitMQ carries, whether a client could read it or
not. (What it refuses itself, such as a header table that is cut short, or anything after the last property, never
reaches a consumer.)
"""

import struct
from collections.abc import Iterator

from tests.hostile.case import Case, a_moment, judged, parked, stored
from tests.hostile.wire import (
    entry,
    long,
    nested_lists,
    nested_tables,
    properties,
    table,
    text,
    timestamp,
    well_behaved,
    with_flags,
)
from tests.support.raw_publishing import short

TEXTS = ["content_type", "content_encoding", "correlation_id", "reply_to", "message_id", "app_id", "cluster_id"]
TRACE = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
# Values of headers, each with the letter of its type.
HEADERS = {
    "true": b"t\x01", "a boolean that is neither": b"t\x07", "a byte": b"b\x80", "an unsigned byte": b"B\xff",
    "a short": b"s\x80\x00", "an unsigned short": b"u\xff\xff", "an int": b"I\x80\x00\x00\x00",
    "an unsigned int": b"i" + b"\xff" * 4,
    "a long": b"l\x80" + b"\0" * 7, "a long of ones": b"L" + b"\xff" * 8, "a float": b"f\x7f\x7f\xff\xff",
    "a double": b"d" + struct.pack(">d", 1e300), "a small double": b"d" + struct.pack(">d", 5e-324),
    "a decimal": b"D\x02" + struct.pack(">i", 1), "the largest decimal": b"D\xff\x7f\xff\xff\xff",
    "the smallest decimal": b"D\x00\x80\x00\x00\x00", "a moment": b"T" + timestamp(1_900_000_000), "nothing": b"V",
    "bytes": b"x" + long(bytes(range(256))), "a text that is not UTF-8": text(b"\xff\xfe"), "an empty text": text(b""),
    "a text of 100 kB": text(b"x" * 100_000), "a text with NUL": text(b"a\0b"), "an empty list": b"A" + long(b""),
    "an empty table": b"F" + table(), "a mixed list": b"A" + long(b"t\x01" + text(b"x") + b"V"),
    "100 lists deep": nested_lists(100), "100 tables deep": nested_tables(100), "30 lists deep": nested_lists(30),
}  # fmt: skip
NOT_HEADERS = {
    "a name that is not UTF-8": entry(b"\xff", text(b"x")),
    "a moment in the year 292278994": entry(b"a", b"T" + timestamp(2**63)),
    "1,200 lists deep": entry(b"a", nested_lists(1_200)), "1,200 tables deep": entry(b"a", nested_tables(1_200)),
    "a moment in a list": entry(b"a", b"A" + long(b"T" + timestamp(2**64 - 1))),
    "2,001 in one list": entry(b"a", b"A" + long(b"V" * 2_000)),
    "a list of 100,000": entry(b"a", b"A" + long(b"V" * 100_000)),
    "2,001 texts": b"".join(entry(b"%d" % number, text(b"x")) for number in range(2_001)),
    "150 lists deep": entry(b"a", nested_lists(150)), "150 tables deep": entry(b"a", nested_tables(150)),
}  # fmt: skip
NOT_KEYS = [
    "", " ", "#", "*", ".", "schedule", "schedule.", "schedule.requests", "schedule.request ", " schedule.request",
    "Schedule.Request",
    "schedule.request.x", "schedule.request\n", "schedule.request\0", "schedule.réquest", "scheduler.inbox", "k" * 255,
    "😀" * 63,
    "\udcff", "schedule.request\udcff", "schedule.\udcc3(", "\udc80" * 255, "é\udcff",
]  # fmt: skip
NOT_TYPES = [
    " ", "schedulerequest", "SCHEDULEREQUEST", "ScheduleRequest ", " ScheduleRequest", "ScheduleRequest\0",
    "ScheduleRequest\n",
    "Schedule_Request", "ScheduleDue", "ScheduleReply", "ScheduleEverything", "schedule.request", "application/json",
    "null", "0",
    "SсheduleRequest", "x" * 255, "é" * 127,
]  # fmt: skip


def cases() -> Iterator[Case]:
    for name in TEXTS:
        yield parked(
            f"{name} that is not UTF-8", name, a_moment(), properties=properties(**{name: short(b"a\xff\xfe")})
        )
        yield stored(f"an empty {name}", a_moment(), properties=properties(**{name: short(b"")}))
        if name != "reply_to":
            yield stored(f"{name} of 255 bytes", a_moment(), properties=properties(**{name: short(b"x" * 255)}))
    yield from _types_and_keys()
    yield from _timestamps()
    yield from _headers()
    yield from _replies()
    for what, given in {
        "none at all": properties(), "priority 255": properties(priority=b"\xff"),
        "delivery mode 1": properties(delivery_mode=b"\x01"),
        "text/plain": properties(content_type=short(b"text/plain")),
        "gzip that is none": properties(content_encoding=short(b"gzip")),
        "a long life": properties(expiration=short(b"86400000")),
        "an unused bit": with_flags(2, properties()), "more flags that are none": with_flags(1, properties()),
        **{
            f"the low bits {bits} and a long life": with_flags(bits, properties(expiration=short(b"399999999")))
            for bits in (1, 2, 3)
        },
        "a type behind more flags": with_flags(
            1, properties(content_type=short(b"b\0\0\x01x"), expiration=short(b"86400000"), type=short(b""))
        ),
    }.items():  # fmt: skip
        yield stored(f"properties: {what}", a_moment(), properties=given)


def _types_and_keys() -> Iterator[Case]:
    yield parked("a type that is not UTF-8", "type", a_moment(), properties=well_behaved(type=short(b"\xff\xfe\xfd")))
    yield stored("an empty type", a_moment(), type="")
    for number, name in enumerate(NOT_TYPES):
        yield parked(f"the type {name[:30]!r}, {number}", "type", a_moment(), type=name)
    for number, key in enumerate(NOT_KEYS):
        yield parked(f"the routing key {key[:30]!a}, {number}", "type", a_moment(), key=key)
        if number % 4 == 0:
            yield stored(f"a type and the routing key {key[:30]!a}", a_moment(), key=key, type="ScheduleRequest")


def _timestamps() -> Iterator[Case]:
    for what, seconds in {"2**63": 2**63, "2**64 - 1": 2**64 - 1, "the year 10000 in ms": 253_402_300_800_000}.items():
        yield parked(f"a timestamp of {what}", "timestamp", a_moment(),
                     properties=well_behaved(timestamp=timestamp(seconds)))  # fmt: skip
    for seconds in (0, 1, 2**31, 2**32 - 1, 2**32, 4_102_444_800_000, 253_402_300_799_000):
        # 0 and 1 are long ago: no reason to refuse a moment, but no place to start a rule.
        given, field = (
            well_behaved(timestamp=timestamp(seconds)),
            "timestamp" if seconds < 2**31 or seconds == 2**32 else None,
        )
        yield stored(f"a moment with the timestamp {seconds}", a_moment(), properties=given)
        yield judged(f"a rule with the timestamp {seconds}", field, {"rrule": "FREQ=YEARLY"}, properties=given)


def _headers() -> Iterator[Case]:
    for what, value in HEADERS.items():
        given = well_behaved(headers=table(entry(b"a", value)))
        yield stored(f"a header that is {what}", a_moment(), properties=given)
        yield parked(f"not JSON, and a header that is {what}", "body", b"{", properties=given)
    for what, value in NOT_HEADERS.items():
        yield parked(f"headers: {what}", "headers", a_moment(), properties=well_behaved(headers=table(value)))
    for what, given in {
        "the same twice": table(entry(b"a", text(b"x")), entry(b"a", text(b"y"))),
        "no name": table(entry(b"", text(b"x"))),
        "a name of 255 bytes": table(entry(b"n" * 255, b"V")),
        "a thousand": table(*(entry(b"%d" % n, b"V") for n in range(1000))),
        "two thousand texts": table(*(entry(b"%d" % n, text(b"x")) for n in range(2000))),
        "own marks, forged": table(entry(b"duebell-unreadable", text(b"x")), entry(b"duebell-reason", text(b"x"))),
        "CC": table(entry(b"CC", b"A" + long(text(b"schedule.cancel")))),
    }.items():  # fmt: skip
        yield stored(f"headers: {what}", a_moment(), properties=well_behaved(headers=given))
    for number, value in enumerate((
        text(b""), text(b"x"), text(b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-00"), text(f"ff-{TRACE}-01".encode()),
        text(f"00-{TRACE}-01\n".encode()), text(f"00-{TRACE}-01-extra".encode()),
        text(f"00-{TRACE.upper()}-01".encode()), b"V", b"t\x01",
        text(b"\xff"), b"A" + long(text(f"00-{TRACE}-01".encode())), text(f"00-{TRACE}-01".encode()),
        text(b"x" * 50_000),
    )):  # fmt: skip
        headers = table(entry(b"traceparent", value))
        yield stored(f"traceparent {number}", a_moment(), properties=well_behaved(headers=headers))


def _replies() -> Iterator[Case]:
    for number, address in enumerate((
        b"q" * 255, b"no-such-queue", b"amq.rabbitmq.reply-to.made.up", b"amq.rabbitmq.reply-to.",
        b"amq.rabbitmq.reply-to.garbage", b"amq.topic",
        b"\0", b" ", b"#", "時計".encode(), b"a\r\nb", b"../x", b"schedule.commands",
    )):  # fmt: skip
        yield stored(f"a reply address {number}", a_moment(), properties=well_behaved(reply_to=short(address)))
        yield parked(f"not JSON, and a reply address {number}", "body", b"{",
                     properties=well_behaved(reply_to=short(address)))  # fmt: skip
