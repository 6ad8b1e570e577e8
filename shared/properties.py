"""AMQP properties that cannot be decoded: a timestamp in the year 292278994, a type that is not UTF-8.

The broker carries them untouched, but pamqp's decoder raises, which ends the whole connection; the message then comes
again and ends the next one, and nothing else is ever read. So the decoder is given a net: the message arrives with the
properties that could be read, and a header that names the one that could not.
"""

from pamqp.base import BasicProperties
from pamqp.commands import Basic

UNREADABLE_HEADER = "duebell-unreadable"

_decode = Basic.Properties.unmarshal


def tolerate_unreadable_properties() -> None:
    """Once per process, before connecting."""
    Basic.Properties.unmarshal = _decode_what_can_be  # type: ignore[method-assign]


def _decode_what_can_be(self: BasicProperties, flags: int, data: bytes) -> None:
    try:
        _decode(self, flags, data)
    except Exception as error:  # noqa: BLE001 - whatever a hostile byte makes it raise, the message must arrive
        present = (name for name in self.__slots__ if flags & self.flags[name])
        name = next((name for name in present if getattr(self, name, None) is None), "properties")
        problem = f"{name.removeprefix('message_')}: {error}"[:200]
        headers = getattr(self, "headers", None) or {}
        setattr(self, "headers", {**headers, UNREADABLE_HEADER: problem})  # noqa: B010 - mypy does not know it
