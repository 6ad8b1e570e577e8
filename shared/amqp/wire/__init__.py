"""All code of Duebell that knows AMQP frames. Other packages import from this module only.

aiormq handles the handshake, heartbeats, channels and declarations. `connection.py` takes deliveries and confirms out
of the byte stream before aiormq sees them, through aiormq's public `transport_factory`. `deliveries.py` and
`properties.py` decode them, whatever bytes a message has; `publishing.py` writes publishes in batches. No library is
patched, and no private name of a library is used.
"""

from shared.amqp.wire.connection import WireChannel, WireConnection, connect, lost_connections_as_errors
from shared.amqp.wire.properties import read_properties
from shared.amqp.wire.publishing import NO_LIMIT, Confirms, PublishBatch, fits, size_of_headers

__all__ = [
    "NO_LIMIT",
    "Confirms",
    "PublishBatch",
    "WireChannel",
    "WireConnection",
    "connect",
    "fits",
    "lost_connections_as_errors",
    "read_properties",
    "size_of_headers",
]
