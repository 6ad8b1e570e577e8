"""The broker numbers what is published on a channel, and its confirms name the numbers: Duebell must count the same."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiormq.channel import Channel
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.commands import Channel as ChannelClass
from pamqp.header import ContentHeader

from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.wire.connection import SplittingReader
from shared.amqp.wire.publishing import BatchWithIds, Confirms
from tests.unit.wire.test_splitter import read_all, wire

CHANNEL = 3
PLAIN = OutgoingMessage("", "queue", b"{}")
CONFIRMED, RETURNED, NACKED, UNKNOWN = (
    PublishResult.CONFIRMED,
    PublishResult.RETURNED,
    PublishResult.NACKED,
    PublishResult.UNKNOWN,
)


class PublishingChannel:
    """A publishing channel, and the answers of a broker to it."""

    def __init__(self) -> None:
        self.written: asyncio.Queue[Any] = asyncio.Queue()
        channel = SimpleNamespace(number=CHANNEL, max_content_size=1000, write_queue=self.written)
        self.confirms = Confirms(cast("Channel", channel))
        self.reader = SplittingReader()
        self.reader.divert(CHANNEL, self.confirms)

    async def publishes(self, *message_ids: str | None) -> BatchWithIds:
        return await self.confirms.publish([OutgoingMessage("", "q", b"{}", message_id=each) for each in message_ids])

    def answers(self, *frames: Any) -> None:
        for frame in frames:
            self.reader.feed_data(wire(frame, CHANNEL))


def a_return(properties: Basic.Properties, body: bytes = b"{}") -> list[Any]:
    content = [ContentHeader(0, len(body), properties), *([ContentBody(body)] if body else [])]
    return [Basic.Return(312, "NO_ROUTE", "", "q"), *content]


def a_return_of(message_id: str) -> list[Any]:
    return a_return(Basic.Properties(message_id=message_id, headers={"a": 1}, delivery_mode=2))


async def test_numbers_go_on_from_batch_to_batch() -> None:
    channel = PublishingChannel()
    first = await channel.publishes(None, None, None)
    channel.answers(Basic.Ack(3, True))
    second = await channel.publishes(None, None)
    channel.answers(Basic.Nack(5), Basic.Ack(4))
    assert (first.results, second.results) == ([CONFIRMED] * 3, [CONFIRMED, NACKED])
    assert first.answered.done()
    assert second.answered.done()


async def test_what_cannot_be_written_is_not_counted() -> None:
    channel = PublishingChannel()
    with pytest.raises(ValueError, match="range"):
        await channel.confirms.publish([PLAIN, OutgoingMessage("", "queue", b"{}", priority=1000)])
    assert channel.written.empty()
    batch = await channel.publishes(None)
    channel.answers(Basic.Ack(1))
    assert batch.results == [CONFIRMED]


async def test_a_confirm_of_an_earlier_batch_says_nothing_of_this_one() -> None:
    channel = PublishingChannel()
    await channel.publishes(None, None)
    batch = await channel.publishes(None, None)
    channel.answers(Basic.Ack(1), Basic.Ack(2, True))
    assert batch.results == [UNKNOWN] * 2
    channel.answers(Basic.Ack(3, True))
    assert batch.results == [CONFIRMED, UNKNOWN]
    assert not batch.answered.done()


@pytest.mark.parametrize("body", [b"", b"{}"])
async def test_a_return_is_known_by_its_message_id_and_its_confirm_changes_nothing(body: bytes) -> None:
    channel = PublishingChannel()
    batch = await channel.publishes("a", "b", "c")
    channel.answers(*a_return(Basic.Properties(message_id="b"), body), Basic.Ack(3, True))
    assert batch.results == [CONFIRMED, RETURNED, CONFIRMED]
    assert batch.answered.done()


async def test_what_has_no_message_id_gets_one_of_its_own() -> None:
    channel = PublishingChannel()
    batch, later = await channel.publishes(None, "mine", None), await channel.publishes(None)
    assert batch.message_ids[1] == "mine"
    assert len({*batch.message_ids, *later.message_ids}) == 4
    written = (await channel.written.get()).payload
    assert all(message_id.encode() in written for message_id in batch.message_ids)


async def test_two_with_one_message_id_cannot_hide_a_loss() -> None:
    channel = PublishingChannel()
    batch = await channel.publishes("same", "other", "same")
    channel.answers(*a_return_of("same"), Basic.Ack(3, True))
    assert batch.results == [RETURNED, CONFIRMED, RETURNED]


async def test_a_return_that_names_no_message_of_the_batch_may_be_any() -> None:
    channel = PublishingChannel()
    for properties in (Basic.Properties(message_id="not-of-the-batch"), Basic.Properties()):
        batch = await channel.publishes("a", "b", "c")
        first = batch._first_tag
        channel.answers(Basic.Ack(first), *a_return(properties), Basic.Ack(first + 2, True))
        assert batch.results == [CONFIRMED, RETURNED, RETURNED]


async def test_answers_to_aiormq_are_left_to_it() -> None:
    channel = PublishingChannel()
    await channel.publishes(None)
    channel.answers(Basic.Ack(1), *a_return_of("x"), ChannelClass.CloseOk())
    channel.reader.feed_eof()
    assert [name for _, _, name, _ in await read_all(channel.reader) if name != "Heartbeat"] == ["CloseOk"]
