"""How one loop of a process wakes another one."""

import asyncio


class Wakeup:
    """Tells a loop to look for work at once. It stays set until the loop clears it, so a busy loop misses none."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self, timeout: float | None) -> None:
        """Return when the wakeup is set, or when the timeout (in seconds) is over."""
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            pass
