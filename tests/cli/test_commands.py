"""Each command against running services, as a process."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any

import aio_pika
import orjson
import pytest

from cli.kept_queue import kept_queue
from cli.stores import Stores
from shared.kept.unrouted import UNROUTED
from tests.cli.command_line import Operator, an_operator
from tests.support.application import Application, an_application
from tests.support.delivery_rows import wait_for_delivery
from tests.support.eventually import eventually
from tests.support.receiver import a_receiver, answering
from tests.support.services import running_consumer, running_delivery, running_producer
from tests.support.stores import Site


@asynccontextmanager
async def all_services(site: Site) -> AsyncIterator[None]:
    async with running_consumer(site), running_producer(site), running_delivery(site):
        yield


async def test_a_job_is_scheduled_shown_and_cancelled(site: Site, app: Application, duebell: Operator) -> None:
    async with running_consumer(site):
        payload = '{"big": 12345678901234567890123, "nul": "\\u0000"}'
        given = await duebell("schedule", "tea", "--in", "1h", "--payload", payload, "--topic", "kitchen")
        assert given.json["outcome"] == "accepted"
        another = await duebell("schedule", "tea", "--in", "1h")
        assert another.status == 1
        assert "nothing was changed for tea: revision: 1 is in use with another topic" in another.err

        shown = (await duebell("show", "tea")).json
        assert shown["job"]["status"] == "pending"
        assert shown["job"]["topic"] == "kitchen"
        assert shown["upcoming"][0]["at"] == given.json["next_run_at"]
        [listed] = (await duebell("list", "--topic", "kitchen", "--from", "now", "--to", "+2h")).json
        assert listed["id"] == "tea"
        assert (await duebell("list", "--to", "+30m")).json == []
        assert (await duebell("list", "--topic", "kit")).json == []

        refused = await duebell("cancel", "tea")
        assert refused.status == 1
        assert "--yes" in refused.err
        assert (await duebell("cancel", "tea", "--yes")).json["outcome"] == "cancelled"
        [ended] = (await duebell("list", "--state", "cancelled", "--from", "-1h")).json
        assert ended["id"] == "tea"


async def test_a_payload_is_sent_as_it_was_typed(
    site: Site, app: Application, database: Any, duebell: Operator
) -> None:
    async with running_consumer(site):
        payload = '{"big": 12345678901234567890123,  "nul": "\\u0000"}'
        assert (await duebell("schedule", "tea", "--in", "1h", "--payload", payload)).status == 0
        piped = await duebell("schedule", "cake", "--in", "1h", "--payload", "@-", stdin="[1, 2.50]")
        assert piped.status == 0
    assert await database.fetchval("select payload::text from jobs where id = 'tea'") == payload
    assert await database.fetchval("select payload::text from jobs where id = 'cake'") == "[1, 2.50]"


async def test_a_job_is_paused_resumed_and_triggered(site: Site, app: Application, duebell: Operator) -> None:
    async with running_consumer(site), running_producer(site):
        await duebell("schedule", "standup", "--cron", "30 9 * * 1-5", "--timezone", "Europe/Berlin")
        assert (await duebell("pause", "standup")).json["outcome"] == "paused"
        [listed] = (await duebell("list", "--state", "paused")).json
        assert listed["id"] == "standup"
        assert (await duebell("resume", "standup")).json["outcome"] == "resumed"
        first = await duebell("trigger", "standup", "--trigger-id", "try-1", "--payload", '"hello"')
        assert first.json["outcome"] == "triggered"
        again = await duebell("trigger", "standup", "--trigger-id", "try-1")
        assert (again.status, again.json["outcome"]) == (0, "duplicate"), "it says what is known already"
        [event] = await app.hears(1)
        assert event.content["trigger_id"] == "try-1"
        assert event.content["payload"] == "hello"


async def test_a_refusal_names_the_field_and_exits_with_1(site: Site, app: Application, duebell: Operator) -> None:
    async with running_consumer(site):
        refused = await duebell("schedule", "tea", "--rrule", "FREQ=NEVER")
        assert refused.status == 1
        assert "rrule:" in refused.err
        assert orjson.loads(refused.out)["outcome"] == "rejected"


async def test_without_a_consumer_the_command_is_sent_and_the_status_is_4(
    site: Site, app: Application, duebell: Operator
) -> None:
    unanswered = await duebell("schedule", "tea", "--in", "1h", "--wait", "0.3")
    assert unanswered.status == 4
    assert "safe in" in unanswered.err
    assert await app.count(site.names.inbox) == 1


async def test_wrong_usage_is_status_2_and_says_what_is_wrong() -> None:
    async with an_operator(None) as duebell:
        for arguments, says in {
            ("list",): "DATABASE_URL: is not set",
            ("cancel", "tea", "--yes"): "AMQP_URL: is not set",
            ("parked", "list"): "AMQP_URL: is not set",
            ("schedule", "tea", "--in", "soon"): "--in",
            ("schedule", "tea", "--in", "1h", "--payload", "{"): "--payload: is not JSON",
            ("schedule", "tea", "--in", "1h", "--payload", "@/no/such/file"): "--payload: cannot read",
            ("list", "--from", "yesterday"): "--from",
            ("deliveries", "replay"): "say which",
            ("parked", "drop"): "say which",
            ("no-such-command",): "no-such-command",
        }.items():
            ended = await duebell(*arguments)
            assert ended.status == 2, (arguments, ended)
            assert says in ended.err


async def test_failed_deliveries_are_listed_shown_and_replayed(
    site: Site, app: Application, database: Any, duebell: Operator
) -> None:
    async with all_services(site), a_receiver(answering(404, 200)) as receiver:
        hook = ("--webhook", receiver.url, "--header", "Authorization: Bearer canary")
        assert (await duebell("schedule", "invoice", "--in", "0s", "--topic", "money", *hook)).status == 0
        await wait_for_delivery(database, "invoice", "FAILED")
        [failed] = (await duebell("deliveries", "list", "--topic", "money")).json
        assert failed["failure_reason"] == "http_404"

        shown = await duebell("show", "invoice")
        assert shown.json["deliveries"][0]["attempts"][0]["status_code"] == 404
        assert shown.json["deliveries"][0]["attempts"][0]["answer"] == "status 404"
        assert "canary" not in shown.out
        one = await duebell("deliveries", "show", str(failed["id"]))
        assert one.json["attempts"][0]["number"] == 1

        dry = await duebell("deliveries", "replay", "--job", "invoice", "--dry-run")
        assert dry.json["deliveries"][0]["replayed_as"] is None
        assert (await duebell("deliveries", "replay", str(failed["id"]))).status == 1, "the question was not answered"
        replayed = await duebell("deliveries", "replay", str(failed["id"]), "--yes")
        assert replayed.json["deliveries"][0]["replayed_as"] is not None
        await wait_for_delivery(database, "invoice", "COMPLETED")
        assert (await duebell("deliveries", "list", "--state", "completed", "--job", "invoice")).json
        again = await duebell("deliveries", "replay", str(failed["id"]), "--yes")
        assert again.status == 1
        assert "replayed already" in again.err


async def test_parked_messages_are_shown_sent_again_and_dropped(
    site: Site, app: Application, database: Any, duebell: Operator
) -> None:
    async with running_consumer(site):
        for number in range(3):
            await app.send({"id": f"bad-{number}"}, headers={"mine": number})

        async def all_parked() -> bool:
            assert await app.count(site.names.parked) == 3
            return True

        await eventually(all_parked)
    listed = (await duebell("parked", "list")).json
    assert {one["job"] for one in listed} == {"bad-0", "bad-1", "bad-2"}
    assert all(one["reason"].startswith("at: exactly one of") for one in listed)
    assert [one["job"] for one in listed] == ["bad-2", "bad-1", "bad-0"], "the newest first"
    [newest] = (await duebell("parked", "list", "--limit", "1")).json
    assert newest["job"] == "bad-2"
    [of_job] = (await duebell("parked", "list", "--job", "bad-1")).json
    assert of_job["job"] == "bad-1"
    assert await eventually_count(app, site.names.parked, 3), "a look takes nothing away"

    ids = {one["job"]: one["id"] for one in listed}
    shown = (await duebell("parked", "show", ids["bad-1"])).json
    assert orjson.loads(shown["body"]) == {"id": "bad-1"}
    assert shown["headers"]["mine"] == 1

    assert (await duebell("parked", "drop", ids["bad-0"])).status == 1, "the question was not answered"
    assert (await duebell("parked", "drop", ids["bad-0"][:12], "--yes")).status == 0
    assert await eventually_count(app, site.names.parked, 2)
    assert (await duebell("parked", "resend", ids["bad-1"], "--yes")).status == 0
    assert await eventually_count(app, site.names.inbox, 1)
    queue = await app.channel.get_queue(site.names.inbox)
    back = await queue.get(no_ack=True)
    assert back is not None
    assert (back.body, back.routing_key) == (b'{"id": "bad-1"}', "schedule.request")
    assert back.headers["mine"] == 1
    assert not [name for name in back.headers if name.startswith("duebell-")]
    assert (await duebell("parked", "drop", "--job", "bad-2", "--yes")).status == 0
    gone = await duebell("parked", "show", ids["bad-2"])
    assert gone.status == 1
    assert "is not among the parked messages" in gone.err
    assert await eventually_count(app, site.names.parked, 0)


async def eventually_count(app: Application, queue: str, number: int) -> bool:
    async def look() -> bool:
        count = await app.count(queue)
        assert count == number, f"{count} of {number} in {queue}"
        return True

    return await eventually(look)


async def test_status_tells_a_well_installation_from_one_that_needs_attention(
    site: Site, app: Application, database: Any, duebell: Operator
) -> None:
    alone = await duebell("status")
    assert alone.status == 1
    assert "no consumer process is running: python -m consumer" in alone.err
    async with all_services(site):

        async def all_seen() -> bool:
            seen = await duebell("status")
            assert seen.status == 0, seen.err
            assert seen.json["services"] == {"consumer": 1, "producer": 1, "delivery": 1}
            return True

        await eventually(all_seen)
        await app.request({"id": "tea", "at": "2020-01-01T00:00:00Z"})
        await app.hears(1)

        async def lateness_seen() -> bool:
            assert (await duebell("status")).json["lateness"]["rings"] == 1
            return True

        await eventually(lateness_seen)
        lateness = (await duebell("status")).json["lateness"]
        assert 0 <= lateness["p50"] < 3600, "a request for a moment in the past counts from when it came"
        await app.request({"id": "standup", "cron": "30 9 * * 1-5", "timezone": "UTC"})
        await app.pause("standup")
        table = await duebell("status", "--table")
        assert table.status == 0, "a paused job is no problem"
        assert "All well." in table.out
        assert "duebell list --state paused" in table.out
        assert site.names.inbox in table.out
        await app.ask({"id": "bad"})
        parked = await duebell("status", "--table")
        assert parked.status == 1
        assert "! 1 message is parked" in parked.out
        assert "duebell parked list" in parked.out
    for service in ("consumer", "producer", "delivery"):
        assert f"no {service} process is running: the last one, on host" in (await duebell("status")).err


async def test_unrouted_events_are_listed_sent_again_and_none_is_lost(
    site: Site, database: Any, duebell: Operator
) -> None:
    async with an_application(site, listen_to=None) as app, running_consumer(site), running_producer(site):
        for job, topic in (("tea", "kitchen"), ("cake", "kitchen"), ("bill", "biling")):
            await app.request({"id": job, "at": "2020-01-01T00:00:00Z", "topic": topic})
        await eventually_count(app, site.names.unrouted, 3)
        listed = (await duebell("unrouted", "list")).json
        assert {one["job"]: one["routing_key"] for one in listed} == {
            "tea": "due.event.kitchen", "cake": "due.event.kitchen", "bill": "due.event.biling",
        }  # fmt: skip
        assert (await duebell("unrouted", "list", "--job", "nope")).json == []
        [bill] = [one for one in listed if one["job"] == "bill"]
        shown = (await duebell("unrouted", "show", bill["id"][:8])).json
        assert orjson.loads(shown["body"])["topic"] == "biling"
        table = await duebell("unrouted", "list", "--table")
        assert "No queue was bound for due.event.kitchen (2), due.event.biling (1)" in table.out

        done = await duebell("show", "bill", "--table")
        assert done.out.startswith("Fired "), "a green `done` alone would mislead"
        assert "no queue was bound for its routing key due.event.biling" in done.out
        assert (await duebell("show", "bill")).json["cause"] == "unrouted"

        assert (await duebell("unrouted", "resend")).status == 2
        assert (await duebell("unrouted", "resend", "--job", "bill")).status == 1, "the question was not answered"
        unbound = await duebell("unrouted", "resend", "--job", "bill", "--yes")
        assert unbound.status == 1
        assert "1 stay unrouted: still no queue is bound for due.event.biling" in unbound.err
        await eventually_count(app, site.names.unrouted, 3)

        heard = await app.channel.declare_queue(exclusive=True)
        await heard.bind(site.names.events, "due.event.kitchen")
        sent = await duebell("unrouted", "resend", "--all", "--yes")
        assert (sent.status, sent.out.splitlines()[-1]) == (1, "2 sent again"), sent
        await eventually_count(app, site.names.unrouted, 1)
        for job in ("tea", "cake"):
            event = await heard.get(no_ack=True)
            assert event is not None
            assert (orjson.loads(event.body)["id"], event.routing_key) == (job, "due.event.kitchen")
            assert event.headers["idempotency-key"] == event.message_id
            assert "duebell-routing-key" not in event.headers
        assert (await duebell("unrouted", "drop", bill["id"], "--yes")).status == 0
        await eventually_count(app, site.names.unrouted, 0)
        nothing = await duebell("unrouted", "resend", "--all", "--yes")
        assert (nothing.status, nothing.err) == (1, "duebell: nothing is unrouted\n")


class CrashingInbox:
    """Stands for a command line that is killed after the broker has confirmed the copies."""

    async def acknowledge_only(self, messages: object) -> None:
        raise ConnectionAbortedError("killed")


async def test_a_crash_before_the_acknowledgement_sends_twice_and_loses_nothing(
    site: Site, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    copies = await app.channel.get_exchange(site.names.unrouted_copies)
    headers: Any = {"duebell-routing-key": "due.event.a"}
    await copies.publish(aio_pika.Message(b'{"id": "tea"}', headers=headers, message_id="m"), "due.event.a")
    for heard, ending in ((1, pytest.raises(ExceptionGroup)), (2, nullcontext())):
        await eventually_count(app, site.names.unrouted, 1)
        with ending:
            async with kept_queue(Stores.from_environment(), UNROUTED, sends=True) as queue:
                found = await queue.look()
                inbox: Any = queue.inbox if heard == 2 else CrashingInbox()
                assert await replace(queue, inbox=inbox).send_again(found.messages) == []
        events = await app.hears(heard)
        assert {event.raw.message_id for event in events} == {"m"}
    await eventually_count(app, site.names.unrouted, 0)


async def test_an_operator_at_a_terminal_gets_a_table_and_a_question(site: Site, app: Application) -> None:
    """`script` lends a terminal: what is a table there is JSON in a pipe."""
    async with running_consumer(site):
        await app.request({"id": "tea", "at": "2030-01-01T00:00:00Z"})
        listed = await at_a_terminal(site, "list")
        assert "rings" in listed
        assert "1 pending" in listed
        refused = await at_a_terminal(site, "cancel tea", answer="n\n")
        assert "This cancels tea. Go on? [y/N]" in refused
        assert "nothing was changed" in refused
        accepted = await at_a_terminal(site, "cancel tea", answer="y\n")
        assert "cancelled" in accepted


async def at_a_terminal(site: Site, command: str, answer: str = "") -> str:
    process = await asyncio.create_subprocess_exec(
        "script",
        "-qec",
        f"{sys.executable} -m cli {command}",
        "/dev/null",
        env={**os.environ, **site.environment, "COLUMNS": "160"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate(answer.encode())
    return out.decode()
