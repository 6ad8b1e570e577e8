"""AMQP with nothing around it: one blocking socket, frames that were encoded beforehand, confirms read by range. As
fast as a client can be, so what it measures is the broker.
"""

import socket
import struct
from collections.abc import Iterator, Sequence
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pamqp.frame
from pamqp.body import ContentBody
from pamqp.commands import Basic, Channel, Confirm, Connection
from pamqp.header import ContentHeader, ProtocolHeader

from shared.amqp.message import OutgoingMessage

CHANNEL = 1
PATIENCE = 60.0
# Type, channel, size, class 60, method, delivery tag, `multiple`, end: a confirm, and what a confirming channel gets.
_CONFIRM = struct.Struct(">BHIHHQBB")
_BASIC_ACK = (60, 80)


class UnexpectedAnswer(Exception):
    """The broker sent a frame that this small client does not handle."""


class Wire:
    """A connection with a channel that confirms."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self._published = self.confirmed = 0
        credentials = f"\0{unquote(address.username or '')}\0{unquote(address.password or '')}"
        self._socket.sendall(ProtocolHeader().marshal())
        self._expect(Connection.Start)
        self._ask(0, Connection.StartOk(client_properties={}, mechanism="PLAIN", response=credentials), Connection.Tune)
        self._tell(0, Connection.TuneOk(channel_max=10, frame_max=131072, heartbeat=0))
        self._ask(0, Connection.Open(), Connection.OpenOk)
        self._ask(CHANNEL, Channel.Open(), Channel.OpenOk)
        self._ask(CHANNEL, Confirm.Select(), Confirm.SelectOk)

    def publish(self, batch: bytes, messages: int) -> None:
        self._socket.sendall(batch)
        self._published += messages

    def wait_until_at_most(self, in_flight: int) -> None:
        """Return when no more than so many publishes are unconfirmed."""
        while self._published - self.confirmed > in_flight:
            self._buffer += self._socket.recv(65536)
            whole = len(self._buffer) // _CONFIRM.size * _CONFIRM.size
            for _, _, _, *method, tag, multiple, _ in _CONFIRM.iter_unpack(self._buffer[:whole]):
                if tuple(method) != _BASIC_ACK:
                    raise UnexpectedAnswer(f"method {method}")
                # Single confirms may come out of order, but each tag is confirmed once: counting them is enough only
                # because a `multiple` one covers everything before it.
                self.confirmed = max(self.confirmed, tag) if multiple else self.confirmed + 1
            self._buffer = self._buffer[whole:]

    def listen(self, queue: str) -> Iterator[tuple[str, bytes]]:
        """Yield routing key and body of every message, as they come; small messages only, of one frame each."""
        self._ask(CHANNEL, Basic.Consume(queue=queue, no_ack=True), Basic.ConsumeOk)
        while True:
            head, _, body = self._read_frame(), self._read_frame(), self._read_frame()
            if not isinstance(head, Basic.Deliver) or not isinstance(body, ContentBody):
                raise UnexpectedAnswer(f"{head!r}, {body!r}")
            yield head.routing_key or "", body.value or b""

    def close(self) -> None:
        self._socket.close()

    def _ask(self, channel: int, question: pamqp.frame.FrameTypes, answer: type) -> None:
        self._tell(channel, question)
        self._expect(answer)

    def _tell(self, channel: int, frame: pamqp.frame.FrameTypes) -> None:
        self._socket.sendall(pamqp.frame.marshal(frame, channel))

    def _expect(self, answer: type) -> None:
        frame = self._read_frame()
        if not isinstance(frame, answer):
            raise UnexpectedAnswer(repr(frame))

    def _read_frame(self) -> pamqp.frame.FrameTypes:
        head = self._read(7)
        size = struct.unpack(">I", head[3:])[0]
        _, _, frame = pamqp.frame.unmarshal(head + self._read(size + 1))
        return frame

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self._socket.recv(size - len(data))
        return data


def encoded(messages: Sequence[OutgoingMessage]) -> bytes:
    return b"".join(_frames(message) for message in messages)


def _frames(message: OutgoingMessage) -> bytes:
    properties = Basic.Properties(
        message_id=uuid4().hex,
        delivery_mode=2,
        content_type=message.content_type,
        message_type=message.type,
        timestamp=message.timestamp,
        headers=message.headers or None,
    )
    publish = Basic.Publish(exchange=message.exchange, routing_key=message.routing_key, mandatory=message.mandatory)
    header = ContentHeader(body_size=len(message.body), properties=properties)
    return b"".join(pamqp.frame.marshal(frame, CHANNEL) for frame in (publish, header, ContentBody(message.body)))
