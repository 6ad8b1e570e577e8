"""Decodes AMQP properties and header tables. Pure.

pamqp copies the rest of the bytes after each field: a header frame of 128 KiB, full of fields of one byte, held the
event loop for a third of a second. This decoder copies only the values. A value that does not end where it should is an
error, and a table has limits that no application comes near, because each field becomes an object or several.

The broker carries properties that pamqp cannot decode: a timestamp in the year 292278994, a type that is not UTF-8.
Such a message arrives with the properties before the unreadable one, and a header that names that one.
"""

from struct import Struct
from typing import Any

from pamqp import decode
from pamqp.commands import Basic
from pamqp.common import FieldArray, FieldTable, FieldValue

UNREADABLE_HEADER = "duebell-unreadable"

# Each death in the x-death header of RabbitMQ has ten fields.
MAX_FIELDS = 2_000
# RabbitMQ's own headers have three levels.
MAX_LEVELS = 128
# In bytes: the length of the name, the letter of the type and the length of the text. Name and text may be empty.
SMALLEST_TEXT_FIELD = 6

_length = Struct(">I").unpack
# The sizes of values by the letter of their type. Types with a length of their own are not among them.
_SIZES = {
    **dict.fromkeys((b"V", b"\0"), 0),
    **dict.fromkeys((b"t", b"b", b"B"), 1),
    **dict.fromkeys((b"s", b"u"), 2),
    **dict.fromkeys((b"I", b"i", b"f"), 4),
    b"D": 5,
    **dict.fromkeys((b"l", b"L", b"d", b"T"), 8),
}

# The AMQP types of the properties that are not short texts.
OTHER_KINDS = {"headers": "table", "delivery_mode": "octet", "priority": "octet", "timestamp": "timestamp"}
FLAGS_SIZE = 2
_flags = Struct(">H").unpack_from


def read_properties(data: bytes) -> tuple[dict[str, Any], str | None]:
    """Decode the flags and the properties that follow them. Return the properties by name, up to the first unreadable
    one, and what is wrong with that one, or None.

    Where pamqp and RabbitMQ read the same bytes differently, this function follows RabbitMQ, which has checked the
    user_id as RabbitMQ reads it. So the flags are one word (one bit announces more flags: pamqp follows it, RabbitMQ
    ignores it), and no bytes may follow the last property.
    """
    values: dict[str, Any] = {}
    name = "properties"
    try:
        (flags,) = _flags(data)
        reader = PropertyReader(data, FLAGS_SIZE)
        for name, flag in Basic.Properties.flags.items():
            if flags & flag:
                values[name] = reader.read(OTHER_KINDS.get(name, "shortstr"))
        name = "properties"
        reader.end()
    except Exception as error:  # noqa: BLE001 - hostile bytes may raise anything, and the message must arrive
        problem = f"{'type' if name == 'message_type' else name}: {error}"[:200]
        values["headers"] = {**(values.get("headers") or {}), UNREADABLE_HEADER: problem}
        return values, problem
    return values, None


class PropertyReader:
    """Decodes one value after the other. Raises an error, mostly ValueError, if a value is wrong."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self._data = data
        self._place = place
        self._fields = 0

    def read(self, kind: str) -> FieldValue:
        """Decode the next value. `kind` is the name of its AMQP type."""
        match kind:
            case "shortstr":
                return self._short_text()
            case "octet":
                return self._take(1)[0]
            case "timestamp":
                return decode.timestamp(self._take(8))[1]
            case "table":
                return self._table(1)
            case _:
                raise ValueError(f"no property is a {kind}")

    def end(self) -> None:
        """Check that no bytes are left."""
        if left := len(self._data) - self._place:
            raise ValueError(f"{left} bytes more than there should be")

    def _take(self, size: int) -> bytes:
        start, self._place = self._place, self._place + size
        if self._place > len(self._data):
            raise ValueError("is cut short")
        return self._data[start : self._place]

    def _short_text(self) -> str:
        return self._take(self._take(1)[0]).decode()

    def _long(self) -> bytes:
        return self._take(_length(self._take(4))[0])

    def _table(self, level: int) -> FieldTable:
        end = self._end_of_box(level)
        fields: FieldTable = {}
        while self._place < end:
            name = self._short_text()
            fields[name] = self._value(level)
        self._check_end(end)
        return fields

    def _list(self, level: int) -> FieldArray:
        end = self._end_of_box(level)
        values: FieldArray = []
        while self._place < end:
            values.append(self._value(level))
        self._check_end(end)
        return values

    def _end_of_box(self, level: int) -> int:
        if level > MAX_LEVELS:
            raise ValueError(f"more than {MAX_LEVELS} levels")
        size: int = _length(self._take(4))[0]
        return self._place + size

    def _check_end(self, end: int) -> None:
        if self._place != end:
            raise ValueError("a table or a list does not end where it should")

    def _value(self, level: int) -> FieldValue:
        self._fields += 1
        if self._fields > MAX_FIELDS:
            raise ValueError(f"more than {MAX_FIELDS:,} fields")
        match kind := self._take(1):
            case b"S":
                return _decode_if_utf8(self._long())
            case b"x":
                return bytearray(self._long())
            case b"F":
                return self._table(level + 1)
            case b"A":
                return self._list(level + 1)
            case _ if kind in _SIZES:
                return decode.TABLE_MAPPING[kind](self._take(_SIZES[kind]))[1]
            case _:
                raise ValueError(f"{kind!r} is no type of a field")


def _decode_if_utf8(text: bytes) -> str | bytes:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text
