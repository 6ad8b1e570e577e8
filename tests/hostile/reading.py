"""A case as the consumer meets it: through pamqp's decoder, the inbox and the parser, without a broker in between."""

import struct
from datetime import datetime

from pamqp.commands import Basic
from pamqp.header import ContentHeader

from consumer.commands import Command, read_command
from consumer.handling import _raw
from shared.properties import tolerate_unreadable_properties
from shared.received import Received, put_together
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


def received(case: Case, **more: bytes) -> Received:
    tolerate_unreadable_properties()
    header, delivery = ContentHeader(), Basic.Deliver()
    header.unmarshal(struct.pack(">HHQ", 60, 0, len(case.body)) + properties_of(case, **more))
    delivery.unmarshal(short(b"tag") + struct.pack(">QB", 1, 0) + short(b"schedule.commands") + short(key_of(case)))
    return put_together(delivery, header, case.body)


def read(case: Case, now: datetime) -> Command:
    return read_command(_raw(received(case)), now, LIMIT)
