"""Keeps an answer for a short while, so that any number of open pages asks the stores no more often than one would."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")

MAX_ANSWERS = 64


class Cached(Generic[Answer]):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._answers: dict[str, tuple[float, Answer]] = {}
        self._lock = asyncio.Lock()

    async def get(self, key: str, load: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the kept answer, or load a new one; callers at the same time share it."""
        async with self._lock:
            known = self._answers.get(key)
            if known is not None and time.monotonic() - known[0] < self._seconds:
                return known[1]
            answer = await load()
            if len(self._answers) >= MAX_ANSWERS:
                self._answers.clear()
            self._answers[key] = (time.monotonic(), answer)
            return answer
