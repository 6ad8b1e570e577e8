"""The hostile corpus as real messages, properties and all, through a real broker and a real consumer process: each ends
stored or parked with a reason that names the field, once; its neighbours are stored; the process never notices.
"""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from aio_pika.abc import AbstractIncomingMessage

from consumer.commands.schedule import Schedule
from stack.ports import free_port
from tests.hostile.case import Case, stored
from tests.hostile.corpus import load
from tests.hostile.reading import key_of, properties_of, read
from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.eventually import eventually
from tests.support.metrics import Metrics
from tests.support.raw_publishing import a_raw_publisher, short
from tests.support.services import ServiceProcess, service_process
from tests.support.stores import Site
from tests.unit.recurrence.test_bombs import ANSWERED

# Events in a log by which a message would have delayed or failed its batch.
TROUBLE = {"broker_not_ready", "inbox_lost", "batch_waits", "batch_split", "command_unreadable", "claim_failed"}


async def send_all(app: Application, site: Site, cases: list[Case], *, neighbours: bool) -> None:
    """Publish each case. A case asks for a reply, unless it has properties of its own. With `neighbours`, a valid
    request follows it, so that every batch has both.
    """
    reply_to = short(app.reply_queue.encode())
    async with a_raw_publisher(site.amqp_url) as publisher:
        for number, case in enumerate(cases):
            given = properties_of(case, reply_to=reply_to, correlation_id=short(b"%d" % number))
            await publisher.send(site.names.commands, key_of(case), given, case.body)
            if neighbours:
                good = orjson.dumps(a_request(id=f"neighbour-{number}"))
                await publisher.send(site.names.commands, b"schedule.request", properties_of(stored("", {})), good)


def assert_untroubled(service: ServiceProcess, name: str) -> None:
    events = Counter(line["event"] for line in service.lines())
    assert service.is_running
    assert not TROUBLE & set(events), events
    assert [line["connection"] for line in service.said("broker_connected")].count(f"duebell-{name}") == 1


async def test_the_whole_corpus_is_stored_or_parked_and_harms_no_other_command(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    corpus = load()
    refused = [case for case in corpus if case.field is not None and case.is_parked]
    taken = {orjson.loads(case.body)["id"] for case in corpus if case.field is None}
    parked: list[AbstractIncomingMessage] = []
    parking = await app.channel.get_queue(site.names.parked)

    async def keep(message: AbstractIncomingMessage) -> None:
        parked.append(message)

    await parking.consume(keep, no_ack=True)
    await send_all(app, site, corpus, neighbours=True)
    port = free_port()
    with service_process("consumer", site, tmp_path, METRICS_PORT=str(port), LOG_LEVEL="info") as consumer:

        async def all_are_through() -> bool:
            handled = await handled_commands(Metrics(port))
            assert handled >= 2 * len(corpus), f"{handled} of {2 * len(corpus)}"
            assert len(parked) >= len(refused), f"{len(parked)} of {len(refused)} parked"
            return True

        await eventually(all_are_through, within=200.0)
        # Each was handled once: no message was redelivered, and no batch was retried.
        assert await handled_commands(Metrics(port)) == 2 * len(corpus)
        assert_untroubled(consumer, "consumer")
        assert [line["queue"] for line in consumer.said("consuming")].count(site.names.inbox) == 1
    assert await app.count(site.names.inbox) == 0
    for number, case in enumerate(corpus):
        if case.properties is None:
            reply = app.replies[str(number)]
            if case.field is None:
                assert reply["outcome"] in {"accepted", "unknown"}, (case.name, reply)
            else:
                assert (reply["outcome"], reply["errors"][0].startswith(f"{case.field}:")) == ("rejected", True), (
                    case.name
                )
    assert len(parked) == len(refused)
    for case, message in zip(refused, parked, strict=True):  # one queue, one consumer: in the order in which they came
        assert message.body == case.body, case.name
        assert str(message.headers["duebell-reason"]).startswith(f"{case.field}:"), case.name
    rows = {row["id"] for row in await database.fetch("select id from jobs")}
    assert rows == taken | {f"neighbour-{number}" for number in range(len(corpus))}


async def handled_commands(metrics: Metrics) -> float:
    return sum(value for (name, _), value in (await metrics.values()).items() if name == "commands_total")


async def test_unusual_jobs_that_are_due_fire_and_the_producer_goes_on(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    due = [
        case
        for case in load()
        if case.field is None and isinstance(command := read(case, now), Schedule) and command.next_run_at < now
    ]
    due += [
        stored(f"due: {what}, {misfire}", {"rrule": text, "start_at": "1971-01-01T09:00:00", "misfire": misfire,
                                           "timezone": "America/New_York"})
        for what, text in ANSWERED.items()
        if "COUNT" not in text  # the rule counts its occurrences since 1971 one by one, a thousand in each pass
        for misfire in ("latest", "skip")
    ]  # fmt: skip
    assert len(due) > 40
    await send_all(app, site, due, neighbours=False)
    with service_process("consumer", site, tmp_path), service_process("producer", site, tmp_path) as producer:
        for number in range(20):
            assert (await app.request(a_request(id=f"good-{number}", at=in_seconds(0.5))))["outcome"] == "accepted"
            await asyncio.sleep(0.05)

        async def all_good_jobs_fired() -> bool:
            fired = {event.content["id"] for event in app.heard}
            assert {f"good-{number}" for number in range(20)} <= fired
            return True

        async def nothing_is_left_behind() -> bool:
            late = await database.fetch(
                "select id from jobs where status = 'pending' and next_run_at < now() - interval '10 seconds'"
            )
            assert not late, [row["id"] for row in late]
            return bool(await database.fetchval("select count(*) from jobs") == len(due) + 20)

        await eventually(all_good_jobs_fired, within=60.0)
        await eventually(nothing_is_left_behind, within=60.0)
        assert_untroubled(producer, "producer")
        assert not [line for line in producer.lines() if line["level"] in {"error", "critical"}]
