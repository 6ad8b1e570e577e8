"""Reads a case as the consumer does, through the decoder of the wire and the parser, without a broker in between."""

import struct
from datetime import datetime
from itertools import starmap

from consumer.commands.parse import Command, read_command
from consumer.commands.webhook import WebhookRules
from consumer.handler import raw_command
from shared.amqp.message import IncomingMessage
from shared.amqp.wire.deliveries import Deliveries
from tests.hostile.case import Case
from tests.hostile.wire import well_behaved
from tests.support.raw_publishing import short

LIMIT = 256 * 1024


def properties_of(case: Case, **more: bytes) -> bytes:
    """On the wire."""
    if case.properties is not None:
        return case.properties
    return well_behaved(**more, **({} if case.type is None else {"type": short(case.type.encode())}))


def key_of(case: Case) -> bytes:
    """On the wire. Bytes that are not UTF-8 are written in the corpus as Python writes them in file names."""
    return case.key.encode(errors="surrogateescape")


def received(case: Case, **more: bytes) -> IncomingMessage:
    """Without the rest of the stream: one message, in as many frames as it needs."""
    header = struct.pack(">HHQ", 60, 0, len(case.body)) + properties_of(case, **more)
    delivery = struct.pack(">HH", 60, 60) + short(b"tag") + struct.pack(">QB", 1, 0)
    delivery += short(b"schedule.commands") + short(key_of(case))
    pieces = [case.body[start : start + LIMIT] for start in range(0, len(case.body), LIMIT)]
    stream = b"".join(starmap(_frame, [(1, delivery), (2, header), *((3, piece) for piece in pieces)]))
    messages: list[IncomingMessage] = []
    deliveries, place = Deliveries(messages.append), 0
    while place < len(stream):
        place = deliveries.take(stream, place) or len(stream)
    [message] = messages
    return message


def _frame(kind: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce"


def read(case: Case, now: datetime) -> Command:
    return read_command(raw_command(received(case)), now, LIMIT, WebhookRules())
