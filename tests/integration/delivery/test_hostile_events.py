"""Hostile events through a real broker and a real delivery process: each is stored or parked with a reason that names
the field, once, and every neighbour is delivered.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aio_pika.abc import AbstractIncomingMessage

from tests.hostile.events import TYPE, load
from tests.hostile.reading import key_of, properties_of
from tests.hostile.wire import well_behaved
from tests.support.application import Application, an_application
from tests.support.due_events import a_due
from tests.support.eventually import eventually
from tests.support.raw_publishing import a_raw_publisher, short
from tests.support.receiver import a_receiver
from tests.support.services import service_process
from tests.support.stores import Site


@pytest.fixture
async def deaf_app(site: Site) -> AsyncIterator[Application]:
    """It does not listen to events: some would end the connection of any client without a net."""
    async with an_application(site, listen_to=None) as application:
        yield application


async def test_the_whole_corpus_ends_stored_or_parked_and_every_neighbour_is_delivered(
    site: Site, deaf_app: Application, database: Any, tmp_path: Path
) -> None:
    corpus = load()
    unreadable = [case for case in corpus if case.field is not None]
    taken = {orjson.loads(case.body)["id"] for case in corpus if case.field is None}
    parked: list[AbstractIncomingMessage] = []

    async def keep(message: AbstractIncomingMessage) -> None:
        parked.append(message)

    await (await deaf_app.channel.get_queue(site.names.parked)).consume(keep, no_ack=True)
    async with a_receiver() as receiver:
        async with a_raw_publisher(site.amqp_url) as publisher:
            for number, case in enumerate(corpus):
                good = orjson.dumps(a_due(f"neighbour-{number}", receiver.url))
                await publisher.send(site.names.events, key_of(case), properties_of(case), case.body)
                given = well_behaved(type=short(TYPE.encode()))
                await publisher.send(site.names.events, b"due.webhook.hooks", given, good)
        with service_process(
            "delivery", site, tmp_path, WEBHOOK_ALLOW_NETWORKS="127.0.0.0/8", MAX_IN_FLIGHT_PER_HOST="64"
        ) as delivery:

            async def all_are_through() -> bool:
                assert len(parked) >= len(unreadable), f"{len(parked)} of {len(unreadable)} parked"
                assert len(receiver.effects) == len(corpus), f"{len(receiver.effects)} of {len(corpus)} delivered"
                return True

            await eventually(all_are_through, within=200.0)
            assert delivery.is_running
            assert len(delivery.said("consuming")) == 1
            for trouble in ("inbox_lost", "batch_waits", "batch_split", "event_unreadable", "broker_not_ready"):
                assert not delivery.said(trouble)
    assert await deaf_app.count(site.names.deliveries) == 0
    assert len(parked) == len(unreadable)
    for case, message in zip(unreadable, parked, strict=True):
        assert message.body == case.body, case.name
        assert str(message.headers["duebell-reason"]).startswith(f"{case.field}:"), case.name
    rows = {row["job_id"] for row in await database.fetch("select job_id from deliveries")}
    assert rows == taken | {f"neighbour-{number}" for number in range(len(corpus))}
