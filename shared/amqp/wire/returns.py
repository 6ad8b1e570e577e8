"""Messages that the broker returns because no queue took them: frame by frame, each is put together again. No I/O."""

from struct import Struct
from typing import NamedTuple

from shared.amqp.wire.deliveries import FLAGS, HEADER, read_header_start

_REPLY_CODE_SIZE = Struct(">H").size


class Returned(NamedTuple):
    """A returned message."""

    exchange: bytes
    routing_key: bytes
    header: bytes  # flags and properties
    body: bytes


class Returns:
    """The return that is arriving on one channel. The broker sends its frames one after the other."""

    def __init__(self) -> None:
        self._route = (b"", b"")
        self._header = b""
        self._body: list[bytes] = []
        self._missing = 0

    def begin(self, arguments: bytes) -> None:
        """Take the arguments of Basic.Return."""
        place = _REPLY_CODE_SIZE
        place += 1 + arguments[place]  # the reason
        key = place + 1 + arguments[place]
        self._route = arguments[place + 1 : key], arguments[key + 1 : key + 1 + arguments[key]]

    def add(self, kind: int, payload: bytes) -> Returned | None:
        """Take the next frame of the content. Return the message when it is complete."""
        if kind == HEADER:
            self._missing = read_header_start(payload)[2]
            self._header, self._body = payload[FLAGS:], []
        else:
            self._missing -= len(payload)
            self._body.append(payload)
        return None if self._missing > 0 else Returned(*self._route, self._header, b"".join(self._body))
