"""Revisions from the clock. Duebell orders the commands for one id by their revision, and the highest wins. A command
without a revision of its own gets the microseconds of the clock, so that a later command replaces an earlier one.
"""

import threading
import time
from collections.abc import Callable


class RevisionClock:
    """The microseconds since 1970, strictly increasing: two calls never get the same number, and a clock that is put
    back does not take the numbers back. Any thread may call.
    """

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        self._last = 0
        self._lock = threading.Lock()

    def next(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, self._now_ns() // 1000)
            return self._last


# One for the process, because two schedulers may command the same id.
next_revision = RevisionClock().next
