"""Ten thousand messages of every kind arrive byte for byte as they were sent, once, and none before its moment."""

import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from hypothesis import HealthCheck, Phase, given, settings

from tests.support.any_delayed_message import SHORT_MS, AnyMessage, any_message
from tests.support.application import Application
from tests.support.delayed import DelayedSender, a_delayed_sender
from tests.support.eventually import eventually
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site

MADE, MESSAGES, BATCH = 2_000, 10_000, 2_500


@dataclass(frozen=True, slots=True)
class Sent:
    message: AnyMessage
    at: float  # by time.time(), before it was sent

    @property
    def not_before(self) -> float:
        if self.message.due_at is not None:
            return self.message.due_at
        return self.at + float(self.message.delay_ms or 0) / 1000


def messages_of_every_kind(user: str) -> list[AnyMessage]:
    """Hypothesis makes 2,000, because it takes milliseconds for each; the others are made of parts of these."""
    made: list[AnyMessage] = []

    @settings(
        max_examples=MADE,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(any_message(user))
    def make(message: AnyMessage) -> None:
        made.append(message)

    make()
    number = len(made)
    return [
        replace(
            made[place % number],
            properties=made[(place * 7 + place // number) % number].properties,
            body=made[(place * 11 + 5 * (place // number)) % number].body,
        )
        for place in range(MESSAGES)
    ]


async def test_ten_thousand_messages_of_every_kind_arrive_as_they_were_sent_and_never_early(
    site: Site, app: Application, database: Any
) -> None:
    messages = messages_of_every_kind(urlsplit(site.amqp_url).username or "guest")
    sent: list[Sent] = []
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        for first in range(0, MESSAGES, BATCH):
            for number, message in enumerate(messages[first : first + BATCH], first):
                dated = message.at(datetime.now(UTC))
                sent.append(Sent(dated, time.time()))
                await sender.send(dated.body, str(number), header=dated.sent)
            await sender.raw.is_through()
            arriving = sum((each.message.delay_ms or 0) <= SHORT_MS * 2 for each in sent)
            await sender.hears(arriving)
        await release_those_of_years(database, sent, [number for number in range(MESSAGES) if is_long(sent[number])])
        await sender.hears(MESSAGES)
    assert await app.count(site.names.parked) == 0
    check(sender, sent)


def is_long(sent: Sent) -> bool:
    return (sent.message.delay_ms or 0) > SHORT_MS * 2


async def release_those_of_years(database: Any, sent: list[Sent], numbers: list[int]) -> None:
    """They wait for their moment to the millisecond. Then it is brought forward."""

    async def only_these_wait() -> dict[int, Any]:
        found = {int(row["routing_key"]): row for row in await database.fetch("select * from delayed_messages")}
        assert sorted(found) == numbers
        return found

    rows = await eventually(only_these_wait)
    for number in numbers:
        exact = sent[number].message.delay_ms or Decimal(0)
        delay = rows[number]["due_at"] - rows[number]["received_at"]
        assert exact * 1000 <= Decimal(delay // timedelta(microseconds=1)) < exact * 1000 + 1
    await database.execute("update delayed_messages set due_at = now()")


def check(sender: DelayedSender, sent: list[Sent]) -> None:
    assert Counter(int(message.routing_key) for message in sender.heard) == Counter(range(MESSAGES)), "each came once"
    by_name = sender.broker_sorts_headers
    for message, arrived_at in zip(sender.heard, sender.heard_at, strict=True):
        each = sent[int(message.routing_key)]
        assert message.exchange == sender.exchange
        assert message.body == each.message.body
        expected = each.message.arriving(by_name=by_name)
        assert message.header == expected, (each.message.sent, message.header)
        assert is_long(each) or arrived_at >= each.not_before, (each.message, arrived_at - each.at)
