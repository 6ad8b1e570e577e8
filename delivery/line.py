"""Rows that are ours and wait for their call, host by host, the oldest first. What waits for too long is handed back by
whoever looks: its host is slower than it was thought to be. Pure: time is given.
"""

from collections import deque
from dataclasses import dataclass, field

import msgspec

from delivery.model import Delivery


class Held(msgspec.Struct, frozen=True, gc=False):
    delivery: Delivery
    since: float  # when its lease began, by this process's own clock; no later than Postgres thinks
    ready_at: float  # when it was here to be called: later than that, if the database took its time


@dataclass(slots=True)
class Line:
    _of_host: dict[str, deque[Held]] = field(default_factory=dict)

    def put(self, held: Held) -> None:
        self._of_host.setdefault(held.delivery.host, deque()).append(held)

    def next_of(self, host: str) -> Held | None:
        waiting = self._of_host.get(host)
        if waiting is None:
            return None
        held = waiting.popleft()
        if not waiting:
            del self._of_host[host]
        return held

    def hosts(self) -> list[str]:
        return list(self._of_host)

    def take_host(self, host: str) -> list[Held]:
        return list(self._of_host.pop(host, ()))

    def take_all(self) -> list[Held]:
        return [held for host in self.hosts() for held in self.take_host(host)]

    def take_ready_before(self, moment: float) -> list[Held]:
        taken = []
        for host, waiting in list(self._of_host.items()):
            while waiting and waiting[0].ready_at < moment:
                taken.append(waiting.popleft())
            if not waiting:
                del self._of_host[host]
        return taken
