"""DeliveryReplay asks the delivery service to try failed deliveries again. The console publishes it straight to the
queue of due events, to which applications cannot write. Pure.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

REPLAY_TYPE = "DeliveryReplay"
MAX_REPLAYED_TOGETHER = 500


class DeliveryReplay(msgspec.Struct, frozen=True):
    """`deliveries` are numbers of failed deliveries. One that has not failed, or has a replay, is left as it is."""

    deliveries: Annotated[
        tuple[Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)], ...],
        msgspec.Meta(min_length=1, max_length=MAX_REPLAYED_TOGETHER),
    ]


_decoder = msgspec.json.Decoder(DeliveryReplay)


def write_replay(delivery_ids: Sequence[int]) -> bytes:
    return msgspec.json.encode(DeliveryReplay(tuple(delivery_ids)))


def read_replay(body: bytes) -> DeliveryReplay:
    """Read the body of a message. Raises ValueError, which names the field."""
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise ValueError(f"deliveries: {error}") from None
