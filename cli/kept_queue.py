"""Opens a queue of kept messages, `scheduler.parked` or `scheduler.unrouted`, and finds messages in it by their ids."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from cli.errors import BadUsage, Failure
from cli.store_errors import broker_failure
from cli.stores import STORE_CONNECT_TIMEOUT, Stores
from shared.amqp.connection import BROKER_ERRORS, Broker
from shared.amqp.consuming import Inbox
from shared.amqp.publisher import Publisher
from shared.kept.message import KeptMessage, Kind
from shared.kept.queue import MAX_KEPT_MESSAGES, Found, KeptQueue


@asynccontextmanager
async def kept_queue(stores: Stores, kind: Kind, *, sends: bool = False) -> AsyncIterator[KeptQueue]:
    """Take messages without acknowledging them. `sends` says that copies of them are to be published, too."""
    url, queue = stores.amqp_address.get(), kind.queue_of(stores.names)
    needs = f"to read {queue}" + (", and to publish to any exchange" if sends else "")
    async with stores.broker(needs):
        pass  # Broker below tries again and again; this says at once, and in words, what is wrong
    # Two connections: one whose inbox is full reads nothing more, and no confirms either.
    async with (
        Broker(url, name="duebell-cli", names=stores.names).connected() as broker,
        Broker(url, name="duebell-cli-back", names=stores.names).connected() as outbound,
    ):
        try:
            async with asyncio.timeout(STORE_CONNECT_TIMEOUT):
                await broker.wait_until_up()
            async with (
                broker.open_channel(prefetch=MAX_KEPT_MESSAGES) as channel,
                Inbox.consuming(channel, queue) as inbox,
                Publisher(outbound) as publisher,
            ):
                yield KeptQueue(kind, stores.names, inbox, publisher)
        except BROKER_ERRORS as error:
            raise broker_failure(error, url, needs) from None


def choose(found: Found, kind: Kind, wanted: Sequence[str]) -> list[KeptMessage]:
    """Find messages by the beginnings of their ids. Raises Failure if one matches no message, BadUsage if several."""
    chosen: dict[str, KeptMessage] = {}
    for beginning in wanted:
        fitting = [one for one in found.messages if one.id.startswith(beginning)]
        if not fitting:
            seen = "" if found.all_seen else f" the oldest {len(found.messages):,} of"
            raise Failure(
                f"{beginning!r} is not among{seen} the {kind.command} messages: see `duebell {kind.command} list`"
            )
        if len(fitting) > 1:
            raise BadUsage(f"{beginning!r} names {len(fitting)} {kind.command} messages: write more of the id")
        chosen[fitting[0].id] = fitting[0]
    return list(chosen.values())
