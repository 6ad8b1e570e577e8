"""The wire: all that Duebell knows of AMQP frames, behind one door.

aiormq keeps the handshake, heartbeats, channels and declarations. Deliveries and confirms are taken out of the byte
stream before aiormq sees them (`connection.py`, through aiormq's public `transport_factory`), read by a decoder that no
message can break (`deliveries.py`, `properties.py`), and publishes are written in batches (`publishing.py`). No library
is patched, and no private name of one is used.
"""

from shared.amqp.wire.compat import find_untested_version
from shared.amqp.wire.connection import WireChannel, WireConnection, connect, lost_connections_as_errors
from shared.amqp.wire.publishing import Confirms, size_of_headers

__all__ = [
    "Confirms",
    "WireChannel",
    "WireConnection",
    "connect",
    "find_untested_version",
    "lost_connections_as_errors",
    "size_of_headers",
]
