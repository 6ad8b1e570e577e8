"""The header of a message, as it usually is: properties that are texts, numbers or a moment, and headers that are
texts. pamqp decodes each by name and type, which takes four times as long; whatever is unusual is left to it.
"""

from datetime import UTC, datetime
from functools import lru_cache
from struct import Struct, error

from pamqp.commands import Basic
from pamqp.header import ContentHeader

# Class, weight, size of the body, flags.
_start = Struct(">HHQH").unpack_from
_START_SIZE = 14
_length = Struct(">I").unpack_from
_seconds = Struct(">Q").unpack_from
_TEXT = ord("S")
# Beyond it pamqp takes a timestamp for milliseconds.
_LAST_SECOND = 0xFFFFFFFF

_SHORT_STRING, _TABLE, _OCTET, _TIMESTAMP = range(4)
_OTHER_KINDS = {"headers": _TABLE, "delivery_mode": _OCTET, "priority": _OCTET, "timestamp": _TIMESTAMP}
# In the order of the wire. The cluster_id means nothing any more; nobody sends it.
_LAYOUT = [
    (flag, name, _OTHER_KINDS.get(name, _SHORT_STRING))
    for name, flag in Basic.Properties.flags.items()
    if name != "cluster_id"
]
_KNOWN_FLAGS = sum(flag for flag, _, _ in _LAYOUT)


class Unusual(ValueError):
    """Not to be read here."""


def read_content_header(frame: bytes, place: int) -> ContentHeader:
    """Of a whole frame, end byte included; its own bytes begin at `place`. ValueError if it is unusual."""
    try:
        _, weight, body_size, flags = _start(frame, place)
        properties = _read_properties(frame, place + _START_SIZE, flags)
    except (IndexError, error) as ending:
        raise Unusual from ending
    return ContentHeader(weight, body_size, properties)


def _read_properties(frame: bytes, place: int, flags: int) -> Basic.Properties:
    if flags & ~_KNOWN_FLAGS:
        raise Unusual
    values: dict[str, object] = {}
    for flag, name, kind in _LAYOUT:
        if not flags & flag:
            continue
        if kind == _SHORT_STRING:
            end = place + 1 + frame[place]
            values[name] = frame[place + 1 : end].decode()
            place = end
        elif kind == _OCTET:
            values[name] = frame[place]
            place += 1
        elif kind == _TIMESTAMP:
            values[name] = _moment(_seconds(frame, place)[0])
            place += 8
        else:
            values[name], place = _read_texts(frame, place)
    if place != len(frame) - 1:  # or a text was shorter than it said
        raise Unusual
    return Basic.Properties(**values)  # type: ignore[arg-type]


# All events of a claim have the same.
@lru_cache(maxsize=256)
def _moment(seconds: int) -> datetime:
    if seconds > _LAST_SECOND:
        raise Unusual
    return datetime.fromtimestamp(seconds, UTC)


def _read_texts(frame: bytes, place: int) -> tuple[dict[str, str], int]:
    """A table of nothing but texts, and where it ends."""
    end = place + 4 + _length(frame, place)[0]
    place += 4
    texts: dict[str, str] = {}
    while place < end:
        value = place + 1 + frame[place]
        if frame[value] != _TEXT:
            raise Unusual
        after = value + 5 + _length(frame, value + 1)[0]
        texts[frame[place + 1 : value].decode()] = frame[value + 5 : after].decode()
        place = after
    if place != end:
        raise Unusual
    return texts, end
