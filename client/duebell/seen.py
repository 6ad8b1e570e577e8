"""Remembers which occurrences have been handled.

An event can come more than once with the same idempotency key. A store says, for each key, whether this copy is the one
to handle, and notes the key when the handler has succeeded.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol


class Seen(Protocol):
    def once(self, key: str) -> AbstractAsyncContextManager[bool]:
        """Yield True if this copy of the event is to be handled, inside the block. The key is noted when the block
        ends, and not noted if the block raises. While one copy is inside, others with its key wait.
        """
        ...


@dataclass(slots=True)
class _UnderWay:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    copies: int = 0


class InMemorySeen:
    """Keeps the newest keys in the memory of this process. It is good enough where it does no harm if an event is
    handled again after a restart.
    """

    def __init__(self, size: int = 100_000) -> None:
        self._size = size
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._under_way: dict[str, _UnderWay] = {}

    @asynccontextmanager
    async def once(self, key: str) -> AsyncIterator[bool]:
        mine = self._under_way.setdefault(key, _UnderWay())
        mine.copies += 1
        try:
            async with mine.lock:
                yield key not in self._keys
                self._keys[key] = None
                self._keys.move_to_end(key)
                if len(self._keys) > self._size:
                    self._keys.popitem(last=False)
        finally:
            mine.copies -= 1
            if mine.copies == 0:
                del self._under_way[key]
