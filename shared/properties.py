"""What the broker carries and pamqp cannot decode: a timestamp in the year 292278994, a type or a routing key that is
not UTF-8.

The decoder raises, which ends the whole connection; the message then comes again and ends the next one, and nothing
else is ever read. So the decoder is given a net: the message arrives with the properties that could be read, and a
header that names the one that could not. A routing key arrives with its odd bytes spelled out.
"""

from pamqp import decode
from pamqp.base import BasicProperties
from pamqp.commands import Basic

UNREADABLE_HEADER = "duebell-unreadable"
LONGEST_KEY = 255

_decode = Basic.Properties.unmarshal
_decode_delivery = Basic.Deliver.unmarshal


class UnreadableProperty(str):
    """What our own net wrote, and no publisher: a header of that name says nothing by itself."""

    __slots__ = ()


def tolerate_unreadable_properties() -> None:
    """Once per process, before connecting."""
    Basic.Properties.unmarshal = _decode_what_can_be  # type: ignore[method-assign]
    Basic.Deliver.unmarshal = _decode_whatever_the_key  # type: ignore[method-assign,assignment]


def _decode_what_can_be(self: BasicProperties, flags: int, data: bytes) -> None:
    try:
        _decode(self, flags, data)
    except Exception as error:  # noqa: BLE001 - whatever a hostile byte makes it raise, the message must arrive
        problem = f"{_at_fault(self, flags, data)}: {error}"[:200]
        headers = getattr(self, "headers", None) or {}
        setattr(self, "headers", {**headers, UNREADABLE_HEADER: UnreadableProperty(problem)})  # noqa: B010 - for mypy


def _at_fault(properties: BasicProperties, flags: int, data: bytes) -> str:
    """The first property that cannot be decoded, by the name that AMQP has for it."""
    for name in properties.__slots__:
        if flags & properties.flags[name]:
            try:
                consumed, _ = decode.by_type(data, getattr(type(properties), f"_{name}"))
            except Exception:  # noqa: BLE001 - this is the one
                return "type" if name == "message_type" else name
            data = data[consumed:]
    return "properties"


def _decode_whatever_the_key(self: Basic.Deliver, data: bytes) -> None:
    try:
        _decode_delivery(self, data)
    except UnicodeDecodeError:
        # Everything before the routing key is of our own or the broker's making.
        tag = 1 + data[0]
        exchange = tag + 8 + 1  # after the delivery tag and the flag for redelivery
        key = exchange + 1 + data[exchange]
        _decode_delivery(self, data[:key] + b"\0")
        self.routing_key = data[key + 1 :].decode("ascii", "backslashreplace")[:LONGEST_KEY]
