"""How one loop wakes another inside a process."""

import asyncio


class Bell:
    """Rung when a loop should look at once. A ring while nobody listens is not lost."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()

    def silence(self) -> None:
        self._event.clear()

    @property
    def rung(self) -> bool:
        return self._event.is_set()

    async def wait(self, timeout: float | None) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            pass
