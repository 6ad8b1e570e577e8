"""What the console says of commands when RabbitMQ goes away: nothing that it may have taken is called not sent."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aio_pika.exceptions import DeliveryError
from pamqp.commands import Basic
from prometheus_client import CollectorRegistry

from console.acting import PUBLISHED_TOGETHER, send
from console.commands import Answer, Command, CommandSender
from console.errors import NotSent
from console.metrics import Metrics
from shared.contract.messages import CANCEL_TYPE, Outcome
from shared.contract.names import Names
from shared.runtime.loops import Stop

TWO = [Command(CANCEL_TYPE, {"id": "a"}), Command(CANCEL_TYPE, {"id": "b"})]
NO_QUEUE = DeliveryError(None, Basic.Return())
LOST = ConnectionError("the broker connection was lost")


@dataclass
class Channel:
    """A channel that takes some messages, and then fails."""

    takes: int
    failure: BaseException
    close_callbacks: set[Callable[..., None]] = field(default_factory=set)
    is_closed: bool = False

    async def declare_queue(self, **_: Any) -> Any:
        return SimpleNamespace(name="replies")

    async def consume(self, *_: Any, **__: Any) -> None: ...

    def resume(self) -> None: ...

    async def get_exchange(self, *_: Any, **__: Any) -> "Channel":
        return self

    async def publish(self, *_: Any, **__: Any) -> None:
        if self.takes == 0:
            raise self.failure
        self.takes -= 1


def a_sender(open_channel: Callable[[], Any]) -> CommandSender:
    broker: Any = SimpleNamespace(open_channel=open_channel, is_up=True)
    return CommandSender(broker, Names(""), "amqp://guest@localhost/", 5.0, 1000, Stop())


def failing_after(takes: int, failure: BaseException) -> CommandSender:
    @asynccontextmanager
    async def open_channel() -> AsyncIterator[Channel]:
        yield Channel(takes, failure)

    return a_sender(open_channel)


@pytest.mark.parametrize("failure", [LOST, TimeoutError()])
@pytest.mark.parametrize("takes", [0, 1])
async def test_what_the_broker_may_have_taken_is_in_doubt(takes: int, failure: BaseException) -> None:
    answers = await failing_after(takes, failure).send(TWO, "alice")
    assert [(one.id, one.outcome) for one in answers] == [("a", None), ("b", None)]


@pytest.mark.parametrize("failure", [LOST, TimeoutError()])
async def test_without_a_channel_nothing_was_sent(failure: BaseException | None) -> None:
    @asynccontextmanager
    async def open_channel() -> AsyncIterator[Channel]:
        if failure is not None:
            raise failure
        yield Channel(0, LOST)

    with pytest.raises(NotSent):
        await a_sender(open_channel).send(TWO, "alice")


async def test_a_command_that_no_queue_took_was_not_sent() -> None:
    with pytest.raises(NotSent, match=r"shared\.topology"):
        await failing_after(0, NO_QUEUE).send(TWO, "alice")
    assert [one.outcome for one in await failing_after(1, NO_QUEUE).send(TWO, "alice")] == [None, None]


async def test_a_part_that_is_not_sent_does_not_hide_the_parts_before() -> None:
    async def done(commands: Sequence[Command]) -> list[Answer]:
        return [Answer(str(one.content["id"]), Outcome.CANCELLED) for one in commands]

    async def fail(_: Sequence[Command]) -> list[Answer]:
        raise NotSent("RabbitMQ does not answer")

    def visit(*parts: Callable[[Sequence[Command]], Awaitable[list[Answer]]]) -> Any:
        rest = iter(parts)

        async def send_part(commands: Sequence[Command], _: str) -> list[Answer]:
            return await next(rest)(commands)

        commands, metrics = SimpleNamespace(send=send_part), Metrics(CollectorRegistry())
        return SimpleNamespace(
            console=SimpleNamespace(commands=commands, metrics=metrics), user=SimpleNamespace(name="a")
        )

    many = TWO * (PUBLISHED_TOGETHER // 2) + TWO
    answers = await send(visit(done, fail), many)
    assert [one.outcome for one in answers] == [Outcome.CANCELLED] * PUBLISHED_TOGETHER + [Outcome.REJECTED] * 2
    assert answers[-1].errors == ("not sent: RabbitMQ does not answer",)
    with pytest.raises(NotSent):
        await send(visit(fail), many)
