"""Cancelling delayed messages by message_id or name, and replacing those with a name."""

from datetime import timedelta
from typing import Any

import asyncpg

from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.delayed import DelayedSender, a_delayed_sender
from tests.support.eventually import eventually
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site

HOUR = 3_600_000


async def waiting(database: Any, number: int) -> list[asyncpg.Record]:
    async def look() -> list[asyncpg.Record]:
        rows = await database.fetch("select *, due_at - received_at as delay from delayed_messages order by id")
        assert len(rows) == number, f"{len(rows)} wait, not {number}"
        return list(rows)

    return await eventually(look) or []


async def test_a_cancel_ends_all_that_wait_under_its_id_and_leaves_no_job(
    site: Site, app: Application, database: Any
) -> None:
    async with a_delayed_sender(site) as sender, running_consumer(site):
        for message_id in ("m-1", "m-1", "m-2", "job"):
            await sender.send(message_id.encode(), message_id=message_id, headers={"x-delay": HOUR})
        await sender.send(b"named", headers={"x-delay": HOUR, "duebell-id": "reminder"})
        assert {row["delay"] for row in await waiting(database, 5)} == {timedelta(milliseconds=HOUR)}
        await app.request(a_request(id="job", at=in_seconds(3600)))
        assert (await app.cancel("m-1", note="paid"))["outcome"] == "cancelled"
        assert (await app.cancel("reminder"))["outcome"] == "cancelled"
        assert (await app.cancel("job"))["outcome"] == "cancelled"
        [left] = await waiting(database, 1)
        assert left["body"] == b"m-2"
        assert (await app.cancel("m-1"))["outcome"] == "unknown"
    assert await database.fetch("select id, status from jobs order by id") == [
        ("job", "cancelled"),
        ("m-1", "cancelled"),
    ]
    told = await database.fetch("select what, note from history where job_id = 'm-1' order by at, what")
    assert [tuple(row) for row in told] == [
        ("accepted", None), ("accepted", None), ("cancelled", "paid"), ("cancelled", "paid"), ("closed", None),
    ]  # fmt: skip


async def test_a_name_replaces_the_earlier_message_of_the_same_exchange(
    site: Site, app: Application, database: Any
) -> None:
    async with a_delayed_sender(site) as sender, a_delayed_sender(site) as another, running_consumer(site):
        for to in (sender, another):
            await named(to, b"first", HOUR)
        await waiting(database, 2)
        await named(sender, b"second", 2 * HOUR)
        await named(sender, b"third", 500)
        await named(sender, b"between", 700)

        async def replaced() -> bool:
            assert {row["body"] for row in await waiting(database, 2)} == {b"between", b"first"}
            return True

        await eventually(replaced)
        async with running_producer(site):
            [heard] = await sender.hears(1)
        assert heard.body == b"between"
        assert await database.fetchval("select count(*) from history where what = 'rescheduled'") == 3


async def named(sender: DelayedSender, body: bytes, delay: int) -> None:
    await sender.send(body, headers={"x-delay": delay, "duebell-id": "reminder"})


async def test_a_message_obeys_the_user_who_sent_it(site: Site, app: Application, database: Any) -> None:
    async with a_delayed_sender(site) as sender, running_consumer(site):
        await sender.send(b"mine", message_id="m", headers={"x-delay": HOUR, "duebell-id": "n"})
        await waiting(database, 1)
        await database.execute("update delayed_messages set owner = 'another'")
        refused = await app.cancel("m")
        assert (refused["outcome"], refused["errors"]) == ("rejected", ["user_id: the job belongs to another user"])
        await named_n(sender)
        [parked] = [each for each in await app.parked(2) if each.body == b"another"]
        assert str(parked.headers["duebell-reason"]).startswith("user_id: the message that waits")
        [left] = await waiting(database, 1)
    assert left["body"] == b"mine"


async def named_n(sender: DelayedSender) -> None:
    await sender.send(b"another", headers={"x-delay": HOUR, "duebell-id": "n"})


async def test_one_of_many_is_cancelled_or_published_at_once_by_its_number(
    site: Site, app: Application, database: Any
) -> None:
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        for body in (b"0", b"1", b"2"):
            await sender.send(body, message_id="m", headers={"x-delay": HOUR})
        numbers = [row["id"] for row in await waiting(database, 3)]
        await database.execute("update delayed_messages set owner = 'another' where body = '2'")
        assert (await app.trigger(f"delayed#{numbers[0]}", "t-1"))["outcome"] == "triggered"
        [heard] = await sender.hears(1)
        assert heard.body == b"0"
        refused = await app.trigger("m", "t-2", payload=1)
        assert (refused["outcome"], refused["errors"]) == (
            "rejected",
            ["payload: a delayed message is published as it was sent"],
        )
        assert (await app.cancel(f"delayed#{numbers[1]}"))["outcome"] == "cancelled"
        refused = await app.trigger("m", "t-3")
        assert (refused["outcome"], refused["errors"]) == ("rejected", ["user_id: the job belongs to another user"])
        gone = f"delayed#{numbers[0]}"
        assert (await app.cancel(gone))["outcome"] == "unknown"
        assert (await app.trigger(gone, "t-4"))["errors"][0].startswith("id: no message of this number waits")
        [left] = await waiting(database, 1)
        assert left["body"] == b"2"
    told = await database.fetch("select what from history where job_id = 'm'")
    assert sorted({row["what"] for row in told}) == ["accepted", "cancelled", "fired", "rejected", "triggered"]
    assert await database.fetchval("select count(*) from jobs") == 0, "no mark is left"


async def test_a_message_that_the_broker_refused_is_tried_at_once_when_it_is_released(
    site: Site, app: Application, database: Any
) -> None:
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        queue = await app.channel.get_queue(sender.queue)
        await queue.unbind(sender.exchange, "#")
        await sender.send(b"body", "key", message_id="m", headers={"x-delay": 1})

        async def refused() -> bool:
            return bool(await database.fetchval("select count(*) from delayed_messages where refusals > 0"))

        await eventually(refused)
        await database.execute("update delayed_messages set retry_at = now() + interval '1 hour'")
        await queue.bind(sender.exchange, "#")
        assert (await app.trigger("m", "t-3"))["outcome"] == "triggered"
        [heard] = await sender.hears(1)
    assert heard.body == b"body"
