"""From a ScheduleDue in the queue to the receiver and back to the application: each way in which a delivery can go."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.application import Application, an_application
from tests.support.delivery_rows import attempts_of, delivery_of, wait_for_deliveries, wait_for_delivery
from tests.support.due_events import a_due, publish_due
from tests.support.eventually import eventually
from tests.support.receiver import Call, a_receiver, answering
from tests.support.services import running_consumer, running_delivery, running_producer
from tests.support.stores import Site

SECRETS = {"billing": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "old": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}


async def test_a_webhook_is_called_once_and_the_application_hears_that_it_was(site: Site, database: Any) -> None:
    async with (
        an_application(site, listen_to="delivery.#") as app,
        a_receiver() as receiver,
        running_delivery(site),
    ):
        due = a_due("tea", receiver.url, topic="kitchen.tea", webhook={"headers": {"X-Own": "mine"}})
        await publish_due(app, due)
        [event] = await app.hears(1)
        [call] = receiver.calls
        assert (call.request.method, call.path) == ("POST", "/hook")
        assert call.content == {key: due[key] for key in ("id", "topic", "sequence", "due_at", "fired_at", "payload")}
        assert call.headers["X-Own"] == "mine"
        assert call.headers["X-Idempotency-Key"] == due["idempotency_key"]
        assert call.headers["Content-Type"] == "application/json"
        assert call.headers["User-Agent"].startswith("Duebell/")
        assert "webhook-signature" not in call.headers

        assert event.routing_key == "delivery.completed.kitchen.tea"
        assert event.raw.type == "DeliveryCompleted"
        assert event.content == {
            **{key: due[key] for key in ("id", "topic", "sequence", "due_at", "idempotency_key")},
            "status": "COMPLETED",
            "attempts": 1,
            "reason": None,
        }
        row = await delivery_of(database, "tea")
        assert (row["status"], row["retry_count"], row["host"]) == ("COMPLETED", 0, receiver.host)
        [attempt] = await attempts_of(database, "tea")
        assert (attempt["status_code"], attempt["error"], attempt["answer"]) == (200, None, b"status 200")


async def test_the_whole_way_from_a_request_to_the_webhook(site: Site, app: Application, database: Any) -> None:
    """The payload arrives as the application wrote it, down to the last byte."""
    payload = '{"a": 1.10,  "big":123456789012345678901, "e": "\\u00e9\\u0000é", "n": -0.0}'
    async with a_receiver() as receiver, running_consumer(site), running_producer(site), running_delivery(site):
        at = datetime.now(UTC).isoformat()
        body = f'{{"id": "x", "at": "{at}", "webhook": {{"url": "{receiver.url}"}}, "payload": {payload}}}'
        await app.send(body.encode())
        [call] = await receiver.called(1)
        assert call.body.endswith(b'"payload":' + payload.encode() + b"}")
        await wait_for_delivery(database, "x", "COMPLETED")


async def test_three_retries_carry_one_key_and_then_it_has_failed(site: Site, database: Any) -> None:
    async with (
        an_application(site, listen_to="delivery.#") as app,
        a_receiver(answering(503)) as receiver,
        running_delivery(site),
    ):
        due = a_due("tea", receiver.url)
        await publish_due(app, due)
        [event] = await app.hears(1)
        assert [call.key for call in receiver.calls] == [due["idempotency_key"]] * 4
        assert len({call.body for call in receiver.calls}) == 1
        assert (event.routing_key, event.raw.type) == ("delivery.failed.hooks", "DeliveryFailed")
        assert (event.content["status"], event.content["attempts"], event.content["reason"]) == (
            "FAILED",
            4,
            "http_503",
        )
        row = await delivery_of(database, "tea")
        assert (row["status"], row["retry_count"], row["failure_reason"]) == ("FAILED", 3, "http_503")
        assert [a["number"] for a in await attempts_of(database, "tea")] == [1, 2, 3, 4]


async def test_a_retry_that_succeeds_completes(site: Site, app: Application, database: Any) -> None:
    expected = {"a": [500, 200], "b": [429, 502, 201], "c": [408, 425, 204]}
    async with running_delivery(site):
        for job_id, statuses in expected.items():
            async with a_receiver(answering(*statuses)) as receiver:
                await publish_due(app, a_due(job_id, receiver.url))
                row = await wait_for_delivery(database, job_id, "COMPLETED")
                assert row["retry_count"] == len(statuses) - 1
                assert [a["status_code"] for a in await attempts_of(database, job_id)] == statuses


async def test_other_4xx_and_redirects_fail_at_once(site: Site, app: Application, database: Any) -> None:
    reasons = {400: "http_400", 404: "http_404", 302: "http_302", 410: "http_410_gone"}
    async with running_delivery(site):
        for status, reason in reasons.items():
            async with a_receiver(answering(status, headers={"Location": "http://127.0.0.1:1/"})) as receiver:
                await publish_due(app, a_due(f"job-{status}", receiver.url))
                assert (await wait_for_delivery(database, f"job-{status}", "FAILED"))["failure_reason"] == reason
                assert len(receiver.calls) == 1


async def test_an_address_inside_fails_at_once_and_is_never_called(site: Site, app: Application, database: Any) -> None:
    async with a_receiver() as receiver, running_delivery(site, webhook_allow_networks=""):
        await publish_due(app, a_due("tea", receiver.url), a_due("pot", "http://169.254.169.254/latest/meta-data"))
        for job_id in ("tea", "pot"):
            assert (await wait_for_delivery(database, job_id, "FAILED"))["failure_reason"] == "forbidden_address"
        answers = await database.fetch("select answer from delivery_attempts order by 1")
        assert [row["answer"] for row in answers] == [
            f"{address} is not a public address".encode() for address in ("127.0.0.1", "169.254.169.254")
        ]
        assert not receiver.calls


async def test_a_port_that_is_not_open_fails_at_once(site: Site, app: Application, database: Any) -> None:
    async with a_receiver() as receiver, running_delivery(site, webhook_allow_ports="80,443"):
        await publish_due(app, a_due("tea", receiver.url))
        assert (await wait_for_delivery(database, "tea", "FAILED"))["failure_reason"] == "forbidden_port"
        assert not receiver.calls


async def test_no_answer_in_time_is_retried(site: Site, app: Application, database: Any) -> None:
    seen = 0

    async def slow_at_first(_: Call) -> web.Response:
        nonlocal seen
        seen += 1
        if seen == 1:
            await asyncio.sleep(3600)
        return web.Response()

    async with a_receiver(slow_at_first) as receiver, running_delivery(site):
        await publish_due(app, a_due("tea", receiver.url, webhook={"timeout_seconds": 0.3}))
        await wait_for_delivery(database, "tea", "COMPLETED")
        [first, second] = await attempts_of(database, "tea")
        assert (first["error"], first["status_code"], first["answer"]) == ("timeout", None, None)
        assert 0.3 <= first["duration_seconds"] < 3600
        assert second["status_code"] == 200


async def test_retry_after_is_honoured(site: Site, app: Application, database: Any) -> None:
    async with a_receiver(answering(503, headers={"Retry-After": "3600"})) as receiver, running_delivery(site):
        await publish_due(app, a_due("tea", receiver.url))

        async def waits() -> Any:
            row = await delivery_of(database, "tea")
            return row if row and row["retry_count"] == 1 else None

        row = await eventually(waits)
        wait = row["next_attempt_at"] - datetime.now(UTC)
        assert timedelta(minutes=59) < wait <= timedelta(minutes=60)
        assert row["status"] == "PROCESSING"


async def test_signatures_verify_with_the_new_and_the_old_secret(site: Site, app: Application, database: Any) -> None:
    both = json.dumps({"billing": list(SECRETS.values())})
    async with a_receiver() as receiver, running_delivery(site, webhook_secrets=both):
        await publish_due(
            app, a_due("tea", receiver.url, webhook={"secret": "billing"}, payload={"snow": "☃", "n": 1.5})
        )
        [call] = await receiver.called(1)
        assert call.headers["webhook-id"] == call.key
        headers = {name: value for name, value in call.headers.items() if name.lower().startswith("webhook-")}
        for secret in SECRETS.values():
            assert Webhook(secret).verify(call.body, headers) == call.content
            with pytest.raises(WebhookVerificationError):
                Webhook(secret).verify(call.body.replace(b"1.5", b"2.5"), headers)
            with pytest.raises(WebhookVerificationError):
                Webhook(secret).verify(call.body, {**headers, "webhook-timestamp": "1614265330"})
        await wait_for_delivery(database, "tea", "COMPLETED")


async def test_an_unknown_secret_is_waited_for_and_no_call_is_made(site: Site, app: Application, database: Any) -> None:
    async with a_receiver() as receiver, running_delivery(site):
        await publish_due(app, a_due("tea", receiver.url, webhook={"secret": "billing"}))

        async def waits() -> Any:
            attempts = await attempts_of(database, "tea")
            return attempts and attempts[0]["error"] == "secret_missing"

        await eventually(waits)
        row = await delivery_of(database, "tea")
        assert row["next_attempt_at"] - datetime.now(UTC) > timedelta(minutes=4)
        assert not receiver.calls


async def test_duplicates_in_one_batch_and_across_batches_are_dropped(
    site: Site, app: Application, database: Any
) -> None:
    async with a_receiver() as receiver:
        due = a_due("tea", receiver.url)
        await publish_due(app, due, due, due, a_due("pot", receiver.url))
        with structlog.testing.capture_logs() as logs:
            async with running_delivery(site):
                await wait_for_deliveries(database, 2)
                await publish_due(app, due, a_due("cup", receiver.url))
                await wait_for_deliveries(database, 3)
        dropped = [log["idempotency_key"] for log in logs if log["event"] == "duplicate_dropped"]
        assert dropped == [due["idempotency_key"]] * 3
        assert sorted(receiver.keys.values()) == [1, 1, 1]


async def test_what_cannot_be_understood_is_parked_and_its_neighbours_are_not(site: Site, database: Any) -> None:
    async with an_application(site, listen_to=None) as app, a_receiver() as receiver:
        bad = a_due("bad", receiver.url) | {"sequence": "first"}
        await publish_due(app, b"{not json", a_due("tea", receiver.url), bad, a_due("pot", receiver.url))
        async with running_delivery(site):
            parked = await app.parked(2)
            assert [message.body[:9] for message in parked] == [b"{not json", b'{"id": "b']
            reasons = [str(message.headers["duebell-reason"]) for message in parked]
            assert reasons[0].startswith("body: ")
            assert reasons[1].startswith("sequence: ")
            assert {message.headers["duebell-parked-by"] for message in parked} == {"delivery"}
            await wait_for_deliveries(database, 2)
        assert await app.count(site.names.deliveries) == 0


async def test_a_row_that_the_database_refuses_is_parked_alone(site: Site, app: Application, database: Any) -> None:
    await database.execute(
        """create function refuse_bad() returns trigger language plpgsql as $$
           begin
               raise exception 'not this one' using errcode = 'data_exception', detail = 'the row, secrets and all';
           end $$;
           create trigger refuse_bad before insert on deliveries
               for each row when (new.job_id = 'bad') execute function refuse_bad()"""
    )
    async with a_receiver() as receiver:
        await publish_due(app, *(a_due(job_id, receiver.url) for job_id in ("tea", "bad", "pot")))
        async with running_delivery(site):
            [message] = await app.parked(1)
            assert "not this one" in str(message.headers["duebell-reason"])
            assert "secrets" not in str(message.headers)
            await wait_for_deliveries(database, 2)


async def test_an_application_whose_queue_is_full_hears_later_and_delays_no_other(site: Site, database: Any) -> None:
    async with an_application(site, listen_to="delivery.completed.others") as app, a_receiver() as receiver:
        full = {"x-max-length": 1, "x-overflow": "reject-publish"}
        await app.binds(f"{site.prefix}full", "delivery.completed.full", **full)
        async with running_delivery(site):
            await publish_due(app, *(a_due(f"full-{n}", receiver.url, topic="full") for n in range(3)))
            await wait_for_deliveries(database, 3)
            await publish_due(app, *(a_due(f"other-{n}", receiver.url, topic="others") for n in range(3)))
            await app.hears(3)
            queue = await app.channel.get_queue(f"{site.prefix}full")
            heard: list[Any] = []

            async def look() -> bool:
                while message := await queue.get(no_ack=True, fail=False):
                    heard.append(json.loads(message.body)["id"])
                return len(set(heard)) == 3

            await eventually(look)
        await app.channel.queue_delete(f"{site.prefix}full")
    assert await database.fetchval("select count(*) from delivery_announcements") == 0


async def test_an_outcome_is_announced_without_waiting_for_a_poll(
    site: Site, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delivery.results.announcer.ANNOUNCE_POLL_SECONDS", 3600.0)
    async with (
        an_application(site, listen_to="delivery.#") as app,
        a_receiver() as receiver,
        running_delivery(site),
    ):
        for number in range(3):
            await publish_due(app, a_due(f"tea-{number}", receiver.url))
            await app.hears(number + 1)
    assert await database.fetchval("select count(*) from delivery_announcements") == 0


async def test_outcomes_of_another_process_are_announced_too(site: Site, database: Any) -> None:
    """The next claim of an announcer finds what a crash left between the record and the announcement."""
    async with an_application(site, listen_to="delivery.#") as app, a_receiver() as receiver:
        async with running_delivery(site):
            await publish_due(app, a_due("tea", receiver.url))
            await app.hears(1)
        await database.execute("insert into delivery_announcements select id from deliveries")
        async with running_delivery(site):
            events = await app.hears(2)
        assert events[0].content == events[1].content
        assert events[0].raw.message_id != events[1].raw.message_id


async def test_a_late_delivery_is_logged_with_its_minutes_and_its_reason(
    site: Site, app: Application, database: Any
) -> None:
    async with a_receiver() as receiver:
        with structlog.testing.capture_logs() as logs:
            async with running_delivery(site):
                due = a_due("tea", receiver.url, due_at=datetime.now(UTC) - timedelta(hours=2))
                await publish_due(app, due, a_due("pot", receiver.url))
                await wait_for_deliveries(database, 2)
    [late] = [log for log in logs if log["event"] == "delivered_late"]
    assert late["idempotency_key"] == due["idempotency_key"]
    assert late["late_minutes"] == 120
    assert late["reason"] == "recovery from downtime"


async def test_a_burst_of_events_is_stored_in_few_transactions(site: Site, app: Application, database: Any) -> None:
    async with a_receiver() as receiver:
        await publish_due(app, *(a_due(f"j{n}", receiver.url) for n in range(300)))
        async with running_delivery(site):
            await wait_for_deliveries(database, 300)
    transactions = await database.fetchval("select count(distinct created_at) from deliveries")
    assert transactions <= 20
    assert sorted(set(receiver.keys.values())) == [1]
