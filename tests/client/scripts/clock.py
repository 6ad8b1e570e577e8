"""Reports the revisions of a clock that stands still and is put back, and how many of those of four threads differ."""

import json
from concurrent.futures import ThreadPoolExecutor

from duebell.revisions import RevisionClock, next_revision

moments = iter([5_000_900, 5_000_999, 9_000_000, 1_000_000, 10_000_000])
clock = RevisionClock(lambda: next(moments))
print(json.dumps([clock.next() for _ in range(5)]))
with ThreadPoolExecutor(4) as threads:
    taken = list(threads.map(lambda _: next_revision(), range(4000)))
print(json.dumps(len(set(taken))))
