"""Registers handlers and topics, and reports which of them the client takes. It needs no broker."""

import functools
import json
from collections.abc import Awaitable
from typing import Any

from duebell import ScheduleDue, Scheduler


async def right(due: ScheduleDue) -> None:
    pass


def plain(due: ScheduleDue) -> None:
    pass


@functools.wraps(right)
def wrapped(due: ScheduleDue) -> Awaitable[None]:
    return right(due)


class Callable:
    async def __call__(self, due: ScheduleDue) -> None:
        pass


HANDLERS: dict[str, Any] = {
    "right": right,
    "plain": plain,
    "wrapped": wrapped,
    "callable": Callable(),
    "method": Callable().__call__,
    "partial": functools.partial(right),
    "partial of plain": functools.partial(plain),
}
TOPICS = ("mail.#", "#", "*.late", "due.bills", "due.event.mail.#", "due.*.mail.#", "two words", "")


QUEUES = ("my-app.mails", "q" * 248, "q" * 249, "", "amq.mails")


def register(topic: str, handler: Any, queue: str = "q") -> str:
    try:
        Scheduler("amqp://localhost").on(topic, queue=queue)(handler)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "taken"


print(json.dumps({name: register("#", handler) for name, handler in HANDLERS.items()}))
print(json.dumps({topic: register(topic, right) for topic in TOPICS}))
print(json.dumps({queue: register("#", right, queue) for queue in QUEUES}))
