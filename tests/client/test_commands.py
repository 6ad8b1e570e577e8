"""Commands of the installed client against the real consumer and a broker that misbehaves."""

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.runtime.addresses import parse_address
from tests.chaos.proxy import Proxy, ProxyMode
from tests.support.application import Application, an_application
from tests.support.client_program import Installed
from tests.support.eventually import PATIENCE, eventually
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site, Stores

SCRIPTS = Path(__file__).parent / "scripts"
LATER = "2030-01-01T00:00:00Z"


def calls(*each: tuple[str, list[Any], dict[str, Any]]) -> list[str | Path]:
    return [SCRIPTS / "commands.py", json.dumps(each)]


async def test_verdicts_come_back_and_refusals_are_raised_with_their_reasons(installed: Installed, site: Site) -> None:
    async with running_consumer(site):
        reports = await installed.run(
            *calls(
                ("schedule", ["a"], {"at": LATER, "payload": {"n": None}, "revision": 1}),
                ("schedule", ["a"], {"at": LATER, "payload": {"n": None}, "revision": 1}),
                ("reschedule", ["a"], {"cron": "@daily", "revision": 2}),
                ("cancel", ["a"], {}),
                ("schedule", ["b"], {"cron": "61 * * * *"}),
                ("schedule", ["c"], {"at": LATER, "wait": False}),
            )
        )
    assert [report.get("outcome") for report in reports[:4]] == ["accepted", "duplicate", "rescheduled", "cancelled"]
    assert reports[0]["next_run_at"] == LATER
    assert len(reports[2]["upcoming"]) == 3
    assert reports[4]["error"] == "Rejected"
    assert reports[4]["errors"][0].startswith("cron: ")
    assert reports[5] == {"result": None}


async def test_a_bulk_returns_its_numbers(installed: Installed, site: Site) -> None:
    async with running_consumer(site):
        reports = await installed.run(
            *calls(
                ("schedule", ["a"], {"at": LATER, "labels": {"team": "x"}}),
                ("bulk", ["pause", "b-1"], {"labels": {"team": "x"}, "note": "holidays"}),
                ("bulk_status", ["b-1"], {}),
                ("bulk_status", ["a"], {}),
                ("status", ["b-1"], {}),
                ("bulk", ["pause"], {}),
            )
        )
    assert (reports[1]["matched"], reports[1]["changed"]) == (1, 1)
    assert reports[2] == reports[1]
    assert reports[3:5] == [{"result": None}, {"result": None}]
    assert reports[5]["error"] == "InvalidCommand"
    assert "at least one of labels, topic and id_prefix" in reports[5]["text"]


async def test_without_a_revision_each_request_replaces_the_one_before(
    installed: Installed, site: Site, database: Any
) -> None:
    async with running_consumer(site):
        reports = await installed.run(
            *calls(
                ("schedule", ["a"], {"at": LATER, "payload": 1}),
                ("schedule", ["a"], {"at": LATER, "payload": 2}),
                ("reschedule", ["a"], {"at": "2031-01-01T00:00:00Z", "payload": 3}),
            )
        )
    assert [report.get("outcome") for report in reports] == ["accepted", "rescheduled", "rescheduled"]
    stored = await database.fetchrow("select payload::text as payload, revision from jobs")
    assert stored["payload"] == "3"
    assert abs(stored["revision"] - time.time_ns() // 1000) < 600_000_000, "the microseconds of the clock"


async def test_a_command_that_is_sent_again_is_a_duplicate(installed: Installed, site: Site) -> None:
    async with running_consumer(site), installed.running(SCRIPTS / "again.py") as program:
        await asyncio.wait_for(program.process.wait(), PATIENCE)
        assert program.process.returncode == 0, program.output
    assert program.lines == ["accepted duplicate", "paused duplicate", "3 3"]


async def test_an_id_lives_again_after_a_cancel_in_whichever_order_the_commands_come(
    installed: Installed, site: Site
) -> None:
    async with running_consumer(site):
        reports = await installed.run(
            *calls(
                ("cancel", ["early"], {"revision": 5, "note": "logged in before the sign-up came"}),
                ("schedule", ["early"], {"at": LATER, "revision": 5}),
                ("schedule", ["early"], {"at": LATER, "revision": 6}),
                ("schedule", ["a"], {"at": LATER}),
                ("cancel", ["a"], {}),
                ("schedule", ["a"], {"at": LATER}),
                ("pause", ["a"], {"note": "holidays"}),
                ("resume", ["a"], {}),
                ("cancel", ["a"], {}),
                ("cancel", ["a"], {}),
                ("cancel", ["typo"], {}),
                ("schedule", ["typo"], {"at": LATER}),
            )
        )
    outcomes = [report.get("outcome", report.get("error")) for report in reports]
    assert outcomes[:3] == ["unknown", "Conflict", "accepted"]
    assert outcomes[3:10] == ["accepted", "cancelled", "accepted", "paused", "resumed", "cancelled", "cancelled"]
    assert outcomes[10:] == ["unknown", "accepted"]
    assert reports[1]["errors"][0].startswith("id: the job is cancelled since ")


async def test_a_duplicate_that_differs_raises_and_a_resend_does_not(
    installed: Installed, site: Site, database: Any
) -> None:
    async with running_consumer(site):
        reports = await installed.run(
            *calls(
                ("schedule", ["a"], {"at": LATER, "payload": 1, "revision": 7}),
                ("schedule", ["a"], {"at": LATER, "payload": 1, "revision": 7}),
                ("schedule", ["a"], {"at": LATER, "payload": 2, "revision": 7}),
                ("cancel", ["a"], {"revision": 6}),
                ("schedule", ["a"], {"at": LATER, "payload": 1, "revision": 7}),
            )
        )
        assert await database.fetchval("select payload::text from jobs") == "1"
    assert [report.get("outcome", report.get("error")) for report in reports] == [
        "accepted", "duplicate", "Conflict", "Conflict", "duplicate",
    ]  # fmt: skip
    assert reports[2]["errors"] == ["revision: 7 is in use with another payload; a higher revision replaces it"]
    assert reports[3]["errors"][0].startswith("revision: the job is at revision 7 already")


async def test_verdicts_of_many_are_gathered(installed: Installed, site: Site, database: Any) -> None:
    async with running_consumer(site), installed.running(SCRIPTS / "many.py") as program:
        await asyncio.wait_for(program.process.wait(), PATIENCE)
        assert program.process.returncode == 0, program.output
        assert await database.fetchval("select count(*) from jobs") == 1100
    assert program.lines == [
        "1000 sent",
        "schedule_many takes requests made by duebell.request, not dict",
        "99 sent, refused: bad, cron: minute: '61' is not understood; it is 0 to 59",
        "1 failed, 99 did not; the first: bad: cron: minute: '61' is not understood; it is 0 to 59",
    ]


async def test_jobs_are_paused_resumed_and_triggered_and_belong_to_their_owner(
    installed: Installed, site: Site, app: Application, stores: Stores
) -> None:
    async with running_consumer(site), running_producer(site):
        reports = await installed.given(OWNER="yes").run(
            *calls(
                ("schedule", ["a"], {"at": LATER, "payload": "its own"}),
                ("pause", ["a"], {}),
                ("resume", ["a"], {}),
                ("trigger", ["a", "now"], {}),
                ("trigger", ["a", "now"], {}),
                ("trigger", ["a"], {"payload": {"n": 1}}),
            )
        )
        heard = await app.hears(2)
        [stranger] = await installed.run(*calls(("cancel", ["a"], {})))
    outcomes = [report.get("outcome") for report in reports]
    assert outcomes == ["accepted", "paused", "resumed", "triggered", "duplicate", "triggered"]
    assert {json.dumps(event.content["payload"]) for event in heard} == {'"its own"', '{"n": 1}'}
    if stores.rabbitmq:
        assert stranger["error"] == "Rejected"


async def test_status_says_how_a_job_stands_and_nothing_of_an_id_without_one(
    installed: Installed, site: Site, app: Application, stores: Stores
) -> None:
    async with running_consumer(site):
        first, unknown, invalid, scheduled, job, ended = await installed.given(OWNER="yes").run(
            *calls(
                ("status", ["a"], {}),
                ("cancel", ["a"], {"revision": 0}),
                ("status", ["a"], {"upcoming": 21}),
                ("schedule", ["a"], {"cron": "0 9 * * *", "topic": "t", "revision": 5}),
                ("status", ["a"], {"upcoming": 2, "history": 0}),
                ("cancel", ["a"], {"revision": 6}),
            )
        )
        assert (first, unknown["outcome"], scheduled["outcome"]) == ({"result": None}, "unknown", "accepted")
        assert (invalid["error"], ended["outcome"]) == ("InvalidCommand", "cancelled")
        assert (job["id"], job["status"], job["revision"], job["topic"], job["sequence"]) == ("a", "pending", 5, "t", 0)
        assert (job["upcoming"][0], len(job["upcoming"]), job["history"]) == (job["next_run_at"], 2, [])
        [told] = await installed.given(OWNER="yes").run(*calls(("status", ["a"], {})))
        assert [(entry["what"], entry["app_id"]) for entry in told["history"]][:2] == [
            ("cancelled", "commands"),
            ("accepted", "commands"),
        ], "the name of the program that sent them"
        [of_a_stranger] = await installed.run(*calls(("status", ["a"], {})))
        if stores.rabbitmq:
            assert of_a_stranger["error"] == "Rejected"
        assert await app.count(app.names.parked) == 0


async def test_a_payload_arrives_as_it_was_given(installed: Installed, site: Site, database: Any) -> None:
    payload = {"none": None, "ü": ["\0", 1.5, {"deep": None}]}
    async with running_consumer(site):
        await installed.run(*calls(("schedule", ["a"], {"at": LATER, "payload": payload})))
    stored = await database.fetchrow("select payload::text as payload, webhook from jobs")
    assert json.loads(stored["payload"]) == payload
    assert stored["webhook"] is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"at": LATER, "cron": "@daily"}, "exactly one of"),
        ({}, "exactly one of"),
        ({"at": LATER, "pay_load": 1}, "pay_load"),
        ({"at": LATER, "topic": "two words"}, "topic"),
        ({"at": LATER, "webhook": "ftp://example.com"}, "webhook"),
        ({"at": LATER, "payload": float("nan")}, "payload"),
        ({"every_seconds": 0}, "every_seconds"),
    ],
)
async def test_what_is_wrong_as_it_stands_is_not_sent(
    installed: Installed, app: Application, fields: dict[str, Any], reason: str
) -> None:
    [report] = await installed.run(*calls(("schedule", ["a"], fields)))
    assert report["error"] == "InvalidCommand"
    assert reason in report["errors"][0]
    assert await app.count(app.names.inbox) == 0


async def test_a_command_that_no_queue_takes_is_an_error_and_so_is_a_missing_exchange(
    installed: Installed, site: Site
) -> None:
    async with an_application(site, listen_to=None) as app:
        await app.channel.queue_delete(site.names.inbox)
    [report] = await installed.run(*calls(("schedule", ["a"], {"at": LATER})))
    assert report["error"] == "Unroutable"
    [report] = await installed.given(AMQP_PREFIX="test_0.").run(*calls(("schedule", ["a"], {"at": LATER})))
    assert report["error"] == "Unroutable"


async def test_a_command_to_an_exchange_that_is_not_for_this_user_is_not_allowed(
    installed: Installed, stores: Stores
) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker, which has no roles")
    [report] = await installed.given(AMQP_PREFIX="other.").run(*calls(("cancel", ["a"], {})))
    assert report["error"] == "NotAllowed"


async def test_without_a_consumer_the_command_is_safe_and_the_verdict_missing(
    installed: Installed, app: Application
) -> None:
    reports = await installed.run(*calls(("schedule", ["a"], {"at": LATER, "timeout": 1.5})))
    assert reports[0]["error"] == "NoReply"
    assert await app.count(app.names.inbox) == 1


async def test_messages_carry_what_the_contract_asks_for(
    installed: Installed, app: Application, stores: Stores
) -> None:
    await installed.given(OWNER="yes").run(
        *calls(("schedule", ["a"], {"at": LATER, "revision": 7, "topic": "t", "misfire": "skip", "wait": False}))
    )
    queue = await app.channel.get_queue(app.names.inbox)
    message = await queue.get(no_ack=True)
    assert message is not None
    assert json.loads(message.body) == {"id": "a", "at": LATER, "revision": 7, "topic": "t", "misfire": "skip"}
    assert (message.type, message.content_type, message.delivery_mode) == ("ScheduleRequest", "application/json", 2)
    assert message.message_id
    assert message.timestamp
    if stores.rabbitmq:
        assert message.user_id == "my-app"


async def test_the_synchronous_client_does_the_same(installed: Installed, site: Site, database: Any) -> None:
    async with running_consumer(site), installed.running(SCRIPTS / "blocking.py") as program:
        await asyncio.wait_for(program.process.wait(), PATIENCE)
        assert program.process.returncode == 0, program.output
        assert program.lines[:4] == ["accepted", "rescheduled", "50", "cancelled"]
        assert program.lines[4].startswith("id='job' status=<JobStatus.CANCELLED: 'cancelled'>")
        assert program.lines[4].endswith(" None")
        assert program.lines[5].startswith("refused cron:")
        assert program.lines[6] == "sent 1 failed worse", "one that fails stops no other"

        async def all_stored() -> bool:
            return bool(await database.fetchval("select count(*) from jobs") == 72)

        await eventually(all_stored)


@pytest.mark.own_stores
async def test_commands_survive_a_restart_of_the_broker(
    installed: Installed, stores: Stores, site: Site, database: Any
) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    await asyncio.to_thread(stores.rabbitmq.sync_queue_register)
    async with running_consumer(site), installed.running(SCRIPTS / "steady.py", "150") as program:
        await program.says("20 accepted")
        await asyncio.to_thread(stores.rabbitmq.restart)
        await program.says("finished", within=90)
        assert program.process.returncode in {0, None}, program.output

        async def all_stored() -> bool:
            return bool(await database.fetchval("select count(*) from jobs") == 150)

        await eventually(all_stored)


async def test_a_host_that_freezes_is_left_for_the_next(installed: Installed, site: Site, database: Any) -> None:
    address = parse_address(site.amqp_url)
    host, _, port = address.hosts[0].partition(":")
    async with Proxy(host, int(port or 5672)).running() as first, Proxy(host, int(port or 5672)).running() as second:
        hosts = (f"127.0.0.1:{first.port}", f"127.0.0.1:{second.port}")
        several = installed.given(AMQP_URL=str(replace(address, hosts=hosts, query="heartbeat=1")))
        async with running_consumer(site), several.running(SCRIPTS / "steady.py", "60") as program:
            await program.says("20 accepted")
            first.set_mode(ProxyMode.ONE_WAY)  # for good
            await program.says("finished")

        async def all_stored() -> bool:
            return bool(await database.fetchval("select count(*) from jobs") == 60)

        await eventually(all_stored)


@pytest.mark.own_stores
async def test_a_broker_that_does_not_answer_costs_no_more_than_the_deadline(
    installed: Installed, stores: Stores, site: Site
) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the tests did not start the broker")
    async with installed.running(SCRIPTS / "frozen.py") as program:
        await program.says("connected")
        stores.rabbitmq.pause()
        try:
            await program.says("Unconfirmed after", within=30)
        finally:
            stores.rabbitmq.resume()
        await program.says("sent again", within=60)


@pytest.mark.own_stores
async def test_a_host_that_blocks_publishers_for_long_is_left_for_the_next(
    installed: Installed, stores: Stores, site: Site
) -> None:
    if stores.rabbitmq is None:
        pytest.skip("the broker does not belong to this run, which would alarm it")
    here = parse_address(site.amqp_url).hosts[0]
    several = installed.given(AMQP_URL=site.amqp_url.replace(here, f"{here},{here}"))
    async with several.running(SCRIPTS / "blocked.py") as program:
        await program.says("connected")
        await asyncio.to_thread(stores.rabbitmq.ctl, "set_vm_memory_high_watermark", "0.00001")
        try:
            await program.says("the broker blocks publishers", within=30)
        finally:
            await asyncio.to_thread(stores.rabbitmq.ctl, "set_vm_memory_high_watermark", "0.4")
