"""Whether the exchanges to which delayed messages go are there. They are applications' own, and may be deleted.
RabbitMQ closes the channel over a publish to a missing exchange, and the confirms of all messages before it are lost
with the channel: those messages would be published twice. So a producer looks first.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity

from shared.amqp.connection import BROKER_ERRORS, Broker
from shared.amqp.topology import declare_passively
from shared.amqp.wire import lost_connections_as_errors

# An exchange that was there is looked for again after this.
SEEN_FOR_SECONDS = 2.0
# An exchange over which the broker has closed a channel is left alone for this long.
REFUSED_FOR_SECONDS = 10.0
# The look takes place while row locks are held, so this is its limit for all exchanges of a claim together.
MAX_LOOK_SECONDS = 2.0

NOT_THERE = "the exchange is not there"

_CLOSED_OVER = re.compile(r"(?:no|access to|publish to internal) exchange '(?P<name>.*)' in vhost '")


@dataclass(slots=True)
class TargetExchanges:
    """Knows which exchanges were seen lately, and over which of them the broker has closed a channel."""

    broker: Broker
    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, float] = field(default_factory=dict)  # until when it counts as there
    _refused: dict[str, tuple[float, str]] = field(default_factory=dict)  # until when, and why

    async def find_unusable(self, names: Iterable[str]) -> dict[str, str]:
        """Return those of the exchanges that cannot be published to, and why. An exchange about which the broker says
        nothing in time is left out: the publish itself will tell.
        """
        now = self.clock()
        self._refused = {name: (end, why) for name, (end, why) in self._refused.items() if end > now}
        self._seen = {name: end for name, end in self._seen.items() if end > now}
        unusable = {name: self._refused[name][1] for name in names if name in self._refused}
        with suppress(*BROKER_ERRORS):
            async with asyncio.timeout(MAX_LOOK_SECONDS):
                for name in names:
                    if name and name not in unusable and name not in self._seen:
                        if (problem := await self._look(name)) is None:
                            self._seen[name] = self.clock() + SEEN_FOR_SECONDS
                        else:
                            unusable[name] = problem
        return unusable

    def refuse(self, close_reason: str) -> str | None:
        """Remember the exchange over which the broker has closed a channel. Return its name, if the reason names it."""
        found = _CLOSED_OVER.search(close_reason)
        if found is None:
            return None
        name = found["name"]
        self._refused[name] = self.clock() + REFUSED_FOR_SECONDS, close_reason
        self._seen.pop(name, None)
        return name

    async def _look(self, name: str) -> str | None:
        """Return why the exchange cannot be used, or None if it is there. Raises if the broker does not say."""
        try:
            async with self.broker.open_channel() as channel:
                with lost_connections_as_errors():
                    await declare_passively(channel, name, "exchange")
        except ChannelNotFoundEntity:
            return NOT_THERE
        except ChannelAccessRefused as error:
            return str(error)
        return None
