"""What the broker carries and pamqp cannot decode: a timestamp in the year 292278994, a type or a routing key that is
not UTF-8.

The decoder raises, which ends the whole connection; the message then comes again and ends the next one, and nothing
else is ever read. So the decoder is given a net: the message arrives with the properties that could be read, and a
header that names the one that could not. A routing key arrives with its odd bytes spelled out.

Where the two read the same bytes differently, RabbitMQ is right: it has checked the user_id that *it* has read. Hence
it is one word of flags for us, too, and nothing may follow the last property.
"""

from struct import Struct

from pamqp.base import BasicProperties
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from shared.property_reading import PropertyReader

UNREADABLE_HEADER = "duebell-unreadable"
LONGEST_KEY = 255

FLAGS_SIZE = 2

_flags = Struct(">H").unpack_from
_decode_delivery = Basic.Deliver.unmarshal


class UnreadableProperty(str):
    """What our own net wrote, and no publisher: a header of that name says nothing by itself."""

    __slots__ = ()


def tolerate_unreadable_properties() -> None:
    """Once per process, before connecting."""
    ContentHeader._get_flags = staticmethod(_one_word_of_flags)  # type: ignore[method-assign] # noqa: SLF001
    Basic.Properties.unmarshal = _decode_what_can_be  # type: ignore[method-assign]
    Basic.Deliver.unmarshal = _decode_whatever_the_key  # type: ignore[method-assign,assignment]


def _one_word_of_flags(data: bytes) -> tuple[int, int]:
    """How many bytes they take, and which they are. AMQP has a bit that says that more flags follow, which pamqp
    follows and RabbitMQ ignores: with it a publisher would be anybody.
    """
    return FLAGS_SIZE, _flags(data)[0]


def _decode_what_can_be(self: BasicProperties, flags: int, data: bytes) -> None:
    reader, name = PropertyReader(data), ""
    try:
        for name in self.__slots__:
            if flags & self.flags[name]:
                setattr(self, name, reader.read(self.amqp_type(name)))
        name = "properties"
        reader.end()
    except Exception as error:  # noqa: BLE001 - whatever a hostile byte makes it raise, the message must arrive
        problem = f"{'type' if name == 'message_type' else name}: {error}"[:200]
        headers = getattr(self, "headers", None) or {}
        setattr(self, "headers", {**headers, UNREADABLE_HEADER: UnreadableProperty(problem)})  # noqa: B010 - for mypy


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
