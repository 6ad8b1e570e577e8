"""The content header of a message as bytes: flags, properties and the table of headers. It finds single properties and
headers, and changes some, so that all others stay byte for byte as they were sent. Pure.

`properties.py` in the wire package decodes all values. Here nothing is decoded but what is asked for: bytes that no
library could read are passed on like others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from struct import Struct, error
from typing import NamedTuple

FLAGS_SIZE = 2
# The properties in the order of their flags, from the highest bit down. Those without a kind are short texts.
PROPERTIES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip
_FLAG_OF = {name: 1 << (15 - place) for place, name in enumerate(PROPERTIES)}
_SIZE_OF = {"delivery_mode": 1, "priority": 1, "timestamp": 8}

_flags = Struct(">H")
_length = Struct(">I")
_DECIMAL = Struct(">BI")
# The sizes of values by the letter of their type. Texts, bytes, tables and lists have a length of their own.
_SIZES = {
    ord("V"): 0, ord("t"): 1, ord("b"): 1, ord("B"): 1, ord("s"): 2, ord("u"): 2, ord("I"): 4, ord("i"): 4,
    ord("f"): 4, ord("D"): 5, ord("l"): 8, ord("L"): 8, ord("d"): 8, ord("T"): 8,
}  # fmt: skip
_WITH_LENGTH = frozenset(b"SxFA")
_NUMBERS = {kind: Struct(">" + code) for kind, code in zip(b"bBsuIilLfd", "bBhHIIqQfd", strict=True)} | {
    ord("I"): Struct(">i")
}
# The signed type that has room for the negative of each unsigned value.
_SIGNED = {ord("B"): ord("s"), ord("u"): ord("I"), ord("i"): ord("l"), ord("L"): ord("l")}
_TIMESTAMP = Struct(">Q")


class Unsplittable(ValueError):
    """The bytes are not a content header."""


class Header(NamedTuple):
    """One header of the table, and where it stands in the bytes."""

    name: bytes
    kind: int  # the letter of its type
    value: bytes  # without its length
    start: int
    value_start: int  # the place of the letter
    end: int


@dataclass(slots=True)
class ContentHeader:
    """The flags and properties of one message. Changes are collected, and `changed` returns the new bytes."""

    data: bytes
    flags: int = field(init=False)
    _places: dict[str, tuple[int, int]] = field(init=False)
    _changes: list[tuple[int, int, bytes]] = field(default_factory=list)
    _added: bytes = b""  # headers to add to the table
    _set: int = 0  # flags of properties that are added
    _cleared: int = 0  # flags of properties that are taken out

    def __post_init__(self) -> None:
        """Find the properties. Raises Unsplittable."""
        data, self._places = self.data, {}
        try:
            (self.flags,) = _flags.unpack_from(data)
            place = FLAGS_SIZE
            for name, flag in _FLAG_OF.items():
                if self.flags & flag:
                    start = place
                    if name == "headers":
                        place += 4 + _length.unpack_from(data, place)[0]
                    else:
                        place += _SIZE_OF.get(name) or 1 + data[place]
                    self._places[name] = start, place
        except (IndexError, error) as ending:
            raise Unsplittable("the properties are cut short") from ending
        if place > len(data):
            raise Unsplittable("the properties are cut short")

    def short_text(self, name: str) -> bytes | None:
        """Return a property that is a short text."""
        place = self._places.get(name)
        return self.data[place[0] + 1 : place[1]] if place else None

    def headers(self) -> Iterator[Header]:
        """Yield the headers in their order. Raises Unsplittable."""
        if "headers" not in self._places:
            return
        data, (start, end) = self.data, self._places["headers"]
        place = start + 4
        try:
            while place < end:
                begin = place
                value_start = place + 1 + data[place]
                kind = data[value_start]
                if kind in _WITH_LENGTH:
                    after = value_start + 5 + _length.unpack_from(data, value_start + 1)[0]
                    value = data[value_start + 5 : after]
                else:
                    after = value_start + 1 + _SIZES[kind]
                    value = data[value_start + 1 : after]
                place = after
                yield Header(data[begin + 1 : value_start], kind, value, begin, value_start, place)
        except (IndexError, KeyError, error) as ending:
            raise Unsplittable("a header cannot be told from the next") from ending
        if place != end:
            raise Unsplittable("the headers do not end where they should")

    def find(self, name: bytes) -> Header | None:
        """Return the first header with this name."""
        if name not in self.data:
            return None
        return next((header for header in self.headers() if header.name == name), None)

    def replace(self, header: Header, kind: int, value: bytes) -> None:
        """Give a header another value. `value` begins with its length, if its kind has one."""
        self._changes.append((header.value_start, header.end, bytes((kind,)) + value))

    def remove(self, header: Header) -> None:
        """Take a header out."""
        self._changes.append((header.start, header.end, b""))

    def add_text(self, name: bytes, text: bytes) -> None:
        """Add a header that is a text, after all others. One that has the name already is taken out."""
        for header in self.headers():
            if header.name == name:
                self.remove(header)
        self._added += bytes((len(name),)) + name + b"S" + _length.pack(len(text)) + text

    def take_out(self, name: str) -> None:
        """Take a property out."""
        if place := self._places.get(name):
            self._changes.append((*place, b""))
            self._cleared |= _FLAG_OF[name]

    def add_short_text(self, name: str, text: bytes) -> None:
        """Add a property that is a short text and that the message does not have."""
        place = self._place_of(name)
        self._changes.append((place, place, bytes((len(text),)) + text))
        self._set |= _FLAG_OF[name]

    def add_persistence(self) -> None:
        """Add the property `delivery_mode`, which the message does not have: it survives a restart of the broker."""
        place = self._place_of("delivery_mode")
        self._changes.append((place, place, b"\x02"))
        self._set |= _FLAG_OF["delivery_mode"]

    def _place_of(self, name: str) -> int:
        """Return the place at which a property begins that the message does not have."""
        before = [end for other, (_, end) in self._places.items() if _FLAG_OF[other] > _FLAG_OF[name]]
        return max(before, default=FLAGS_SIZE)

    def changed(self) -> bytes:
        """Return the bytes with all changes."""
        if not self._changes and not self._added:
            return self.data
        # At one place, what belongs to the table comes before a property that follows it.
        changes = sorted([*self._change_of_table(), *self._changes], key=lambda change: change[0])
        added = self._set | (_FLAG_OF["headers"] if self._added else 0)
        pieces, place = [_flags.pack((self.flags | added) & ~self._cleared)], FLAGS_SIZE
        for start, end, instead in changes:
            pieces += self.data[place:start], instead
            place = end
        return b"".join((*pieces, self.data[place:]))

    def _change_of_table(self) -> list[tuple[int, int, bytes]]:
        """Return the new length of the table of headers, and what is added at its end."""
        if "headers" not in self._places:
            place = self._place_of("headers")
            return [(place, place, _length.pack(len(self._added)) + self._added)] if self._added else []
        start, end = self._places["headers"]
        grown = sum(len(new) - (last - first) for first, last, new in self._changes if start < first < end)
        size = end - start - 4 + grown + len(self._added)
        return [(start, start + 4, _length.pack(size)), (end, end, self._added)]


def read_number(header: Header) -> int | float | Decimal | None:
    """Return the number that a header is, in whatever type it was sent; None if it is none."""
    if header.kind in _NUMBERS:
        number: int | float = _NUMBERS[header.kind].unpack(header.value)[0]
        return number
    if header.kind == ord("D"):
        places, digits = _DECIMAL.unpack(header.value)
        return Decimal(digits).scaleb(-places)
    if header.kind in b"Sx" and len(header.value) <= _MAX_NUMBER_LENGTH:
        return _number_in(header.value)
    return None


def read_timestamp(header: Header) -> int | None:
    """Return the seconds since 1970 of a header that is an AMQP timestamp."""
    return int(_TIMESTAMP.unpack(header.value)[0]) if header.kind == ord("T") else None


_MAX_NUMBER_LENGTH = 40


def _number_in(text: bytes) -> int | Decimal | None:
    try:
        written = text.decode("ascii").strip()
        if "_" in written:
            return None
        number = Decimal(written)
    except (ArithmeticError, ValueError):
        return None
    return number if number.is_finite() else None


def negate(header: Header) -> tuple[int, bytes]:
    """Return kind and value of the negative of a header that is a positive number."""
    kind = header.kind
    if kind in b"Sx":
        text = b"-" + header.value.strip().removeprefix(b"+")
        return kind, _length.pack(len(text)) + text
    if kind == ord("D"):
        number = read_number(header)
        return ord("d"), _NUMBERS[ord("d")].pack(-float(number or 0))
    signed = _SIGNED.get(kind, kind)
    return signed, _NUMBERS[signed].pack(-_NUMBERS[kind].unpack(header.value)[0])
