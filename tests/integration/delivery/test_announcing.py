"""How deliveries ended is told until the broker has confirmed it, and not only until it was sent."""

from datetime import UTC, datetime, timedelta
from typing import Any

from prometheus_client import CollectorRegistry

from delivery.attempt.retry import Answered, Delivered
from delivery.attempt.runner import update_after_call
from delivery.dispatch.local_queue import Room
from delivery.metrics import Metrics
from delivery.results.announcer import Announcer
from delivery.store.claims import claim_oldest
from delivery.store.results import record
from shared.amqp.connection import Broker
from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.publisher import Publisher
from shared.postgres.pool import open_pool
from tests.support.application import Application
from tests.support.delivery_rows import insert_rows
from tests.support.eventually import eventually
from tests.support.proxied_broker import a_proxied_broker
from tests.support.stores import Site

COUNT = "select count(*) from delivery_announcements"
WAITING = """
select d.topic, a.refusals, a.announce_at from delivery_announcements a join deliveries d on d.id = a.delivery_id
"""
IS_DUE_AFTER = "update delivery_announcements set announce_at = now() + $1::interval"


async def test_what_the_broker_gave_no_verdict_on_is_announced_again(
    site: Site, app: Application, database: Any
) -> None:
    outcomes = f"{site.prefix}outcomes"
    await app.binds(outcomes, "delivery.completed.#")
    await insert_rows(database, "a:80", 1)
    [[delivery], _] = await claim_oldest(database, Room(1, 1, {}), 30.0, 10)
    await record(database, [update_after_call(delivery, Answered(200), Delivered(), datetime.now(UTC), timedelta(0))])
    async with (
        open_pool(site.database_url_of("delivery"), "test", 1) as pool,
        a_proxied_broker(site) as proxied,
        Publisher(proxied.broker) as publisher,
    ):
        announcer = Announcer(pool, proxied.broker, publisher, Metrics(CollectorRegistry()), publish_timeout=0.5)
        # The channel is open before answers are lost: so the broker gets the event, and its confirm is what is lost.
        assert await publisher.publish([OutgoingMessage(site.names.parking, "x", b"{}")], 10.0) == [
            PublishResult.CONFIRMED
        ]
        proxied.lose_answers()
        assert await announcer.announce_once() == (False, True), "the broker gave no verdict"
        assert await database.fetchval(COUNT) == 1, "it is still to be announced"
        proxied.pass_answers_on()
        announcer.publish_timeout = 10.0

        async def announced() -> bool:
            await announcer.announce_once()
            return bool(await database.fetchval(COUNT) == 0)

        await eventually(announced)

    async def came_twice() -> bool:
        return await app.count(outcomes) == 2

    await eventually(came_twice)
    await app.channel.queue_delete(outcomes)


async def test_a_refused_outcome_waits_for_a_growing_pause_and_delays_no_other(
    site: Site, app: Application, database: Any
) -> None:
    full = f"{site.prefix}full"
    await app.binds(full, "delivery.completed.full", **{"x-max-length": 1, "x-overflow": "reject-publish"})
    await insert_rows(database, "a:80", 4, topic="full")
    await insert_rows(database, "b:80", 1, topic="other")
    [claimed, _] = await claim_oldest(database, Room(5, 5, {}), 30.0, 10)
    now = datetime.now(UTC)
    await record(database, [update_after_call(one, Answered(200), Delivered(), now, timedelta(0)) for one in claimed])
    async with (
        open_pool(site.database_url_of("delivery"), "test", 1) as pool,
        Broker(site.amqp_url, name="test", names=site.names).connected() as broker,
        Publisher(broker) as publisher,
    ):
        await broker.wait_until_up()
        announcer = Announcer(pool, broker, publisher, Metrics(CollectorRegistry()), publish_timeout=10.0)
        for refusals, pause in enumerate((1, 2, 4), start=1):
            earliest = await database.fetchval("select clock_timestamp()")
            assert await announcer.announce_once() == (False, False)
            latest = await database.fetchval("select clock_timestamp()")
            waiting = await database.fetch(WAITING)
            assert {(row["topic"], row["refusals"]) for row in waiting} == {("full", refusals)}, "no other one waits"
            for row in waiting:
                assert earliest <= row["announce_at"] - timedelta(seconds=pause) <= latest
            await database.execute(IS_DUE_AFTER, timedelta(hours=1))
            await announcer.announce_once()
            assert await database.fetchval(COUNT) == len(waiting), "none is due before its pause is over"
            await database.execute(IS_DUE_AFTER, timedelta(0))
    await app.channel.queue_delete(full)
