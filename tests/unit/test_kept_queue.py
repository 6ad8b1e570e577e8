"""A look at a queue of kept messages finds all that have come, however late in its wait."""

import asyncio
from types import SimpleNamespace
from typing import cast

from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage
from shared.amqp.publisher import Publisher
from shared.amqp.wire import WireChannel
from shared.contract.names import Names
from shared.kept.parked import PARKED
from shared.kept.queue import BATCH_WAIT_SECONDS, QUIET_SECONDS, KeptQueue
from tests.support.eventually import eventually

LATE = IncomingMessage(1, b"{}", "", "key", None, None, None, None, None, None, None, None, None, {}, None)


async def test_a_message_that_comes_at_the_end_of_the_wait_is_found() -> None:
    async def is_found() -> bool:
        channel = SimpleNamespace(is_closed=False, pause=lambda: None, resume=lambda: None)
        inbox = Inbox(cast("WireChannel", channel))
        kept = KeptQueue(PARKED, Names(), inbox, cast("Publisher", None))
        asyncio.get_running_loop().call_later(QUIET_SECONDS - 0.8 * BATCH_WAIT_SECONDS, inbox.add, LATE)
        found = await kept.look()
        assert [one.message for one in found.messages] == [LATE]
        return found.all_seen

    assert await eventually(is_found)
