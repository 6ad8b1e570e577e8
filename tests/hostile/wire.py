"""AMQP properties and header tables, byte by byte."""

import struct

from tests.support.raw_publishing import short

# AMQP 0-9-1, 1.8.3: the order in which properties are written, from the highest bit of the flags down.
ORDER = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration",
    "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip


def properties(**values: bytes) -> bytes:
    """Flags, and the values as they are given."""
    flags = sum(1 << (15 - ORDER.index(name)) for name in values)
    return struct.pack(">H", flags) + b"".join(values[name] for name in ORDER if name in values)


def well_behaved(**more: bytes) -> bytes:
    return properties(content_type=short(b"application/json"), delivery_mode=b"\x02", **more)


def with_flags(bits: int, given: bytes) -> bytes:
    """Those that name no property."""
    (flags,) = struct.unpack_from(">H", given)
    return struct.pack(">H", flags | bits) + given[2:]


def timestamp(seconds: int) -> bytes:
    return struct.pack(">Q", seconds)


def table(*entries: bytes) -> bytes:
    return long(b"".join(entries))


def entry(name: bytes, value: bytes) -> bytes:
    """The value begins with the letter of its type."""
    return short(name) + value


def text(value: bytes) -> bytes:
    return b"S" + long(value)


def long(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def nested_lists(depth: int) -> bytes:
    value = b"V"
    for _ in range(depth):
        value = b"A" + long(value)
    return value


def nested_tables(depth: int) -> bytes:
    value = b"V"
    for _ in range(depth):
        value = b"F" + table(entry(b"a", value))
    return value
