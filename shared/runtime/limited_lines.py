"""Which occurrences have a log line of their own. After a downtime a process would write a line for each of fifty
thousand late occurrences: it writes the first few, and a summary of the others every ten seconds.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.contract.fields import format_instant
from shared.runtime.loops import Stop, mark_turn

MAX_FULL_LINES = 10
SUMMARY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Summary:
    """The occurrences of some seconds that have no line of their own."""

    count: int
    by_reason: dict[str, int]
    oldest_id: str
    oldest_due_at: str
    late_seconds: float  # at most


@dataclass(slots=True)
class LimitedLines:
    """Counts the occurrences of one kind. The first ones after a quiet time have lines of their own."""

    _full_lines_left: int = MAX_FULL_LINES
    _is_quiet: bool = True  # no occurrence since the last summary
    _by_reason: Counter[str] = field(default_factory=Counter)
    _oldest: tuple[datetime, str] | None = None
    _longest: timedelta = timedelta(0)

    def add(self, id_: str, due_at: datetime, lateness: timedelta, reason: str) -> bool:
        """Return whether this occurrence has a line of its own. If not, it is in the next summary."""
        self._is_quiet = False
        if self._full_lines_left:
            self._full_lines_left -= 1
            return True
        self._by_reason[reason] += 1
        self._longest = max(self._longest, lateness)
        if self._oldest is None or due_at < self._oldest[0]:
            self._oldest = (due_at, id_)
        return False

    def take_summary(self) -> Summary | None:
        """Return the summary of what came since the last call, and begin a new one. None: there is nothing to say."""
        if self._is_quiet:
            self._full_lines_left = MAX_FULL_LINES
        self._is_quiet = True
        if self._oldest is None:
            return None
        due_at, id_ = self._oldest
        late_seconds = round(self._longest.total_seconds(), 1)
        summary = Summary(self._by_reason.total(), dict(self._by_reason), id_, format_instant(due_at), late_seconds)
        self._by_reason, self._oldest, self._longest = Counter(), None, timedelta(0)
        return summary


async def summarize_until_stopped(write_summaries: Callable[[], None], stop: Stop) -> None:
    """Write the summaries every few seconds. After the stop the caller writes the last ones, once all work is done."""
    while not stop.requested:
        mark_turn()
        write_summaries()
        await stop.sleep(SUMMARY_SECONDS)
