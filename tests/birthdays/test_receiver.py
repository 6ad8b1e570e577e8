"""The webhook refuses calls without a valid signature, and greets once however often it is called."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from examples.birthdays.cleaning import clean_once
from tests.birthdays.application import SECRET, Home, birthdays, born, greetings_of
from tests.birthdays.users import a_user

PARTS = ["api", "receiver"]
DUE = datetime(2026, 12, 10, 9, tzinfo=UTC)


async def a_call(home: Home, **overrides: Any) -> dict[str, Any]:
    """As Duebell calls about the only user there is."""
    [event] = await home.fetch("select id, user_id from events")
    payload = {
        "user_id": str(event["user_id"]),
        "type": "BIRTHDAY",
        "message": "Hey, Ada Lovelace it's your birthday",
        "timezone": "Europe/London",
        "revision": 1,
    }
    return {
        "id": str(event["id"]),
        "topic": "birthdays.birthday",
        "sequence": 1,
        "due_at": DUE.isoformat(),
        "fired_at": DUE.isoformat(),
        "payload": payload,
        **overrides,
    }


async def ring(
    client: httpx.AsyncClient, content: object, key: str = "event-1", secret: str = SECRET, **headers: str
) -> httpx.Response:
    now, body = datetime.now(UTC), json.dumps(content)
    signed = {
        "webhook-id": key,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(key, now, body),
    }
    return await client.post("/webhook", content=body, headers={**signed, **headers})


async def test_each_key_has_one_effect_however_often_and_however_close_it_comes(home: Home) -> None:
    async with birthdays(home, PARTS) as client:
        user = await born(client, a_user())
        call = await a_call(home)
        answers = await asyncio.gather(*(ring(client, call) for _ in range(10)))
        assert [answer.status_code for answer in answers] == [200] * 10
        assert sorted(answer.text for answer in answers) == ["duplicate\n"] * 9 + ["greeted\n"]
        assert len(await greetings_of(client, user)) == 1


async def test_another_occurrence_of_the_same_day_has_no_effect_and_that_of_another_year_has(home: Home) -> None:
    async with birthdays(home, PARTS) as client:
        user = await born(client, a_user())
        assert (await ring(client, await a_call(home))).text == "greeted\n"
        later = await a_call(home, due_at=(DUE + timedelta(hours=3)).isoformat())
        assert (await ring(client, later, "event-2")).text == "greeted_before\n"
        next_year = await a_call(home, due_at=DUE.replace(year=2027).isoformat())
        assert (await ring(client, next_year, "event-3")).text == "greeted\n"
        assert [greeting["occursOn"] for greeting in await greetings_of(client, user)] == ["2027-12-10", "2026-12-10"]


async def test_a_webhook_call_without_a_valid_signature_is_refused(home: Home) -> None:
    old = str(int((datetime.now(UTC) - timedelta(hours=1)).timestamp()))
    async with birthdays(home, PARTS) as client:
        user = await born(client, a_user())
        call = await a_call(home)
        other = "whsec_" + "b3RoZXIg" * 4
        refused = [
            await client.post("/webhook", json=call),
            await ring(client, call, secret=other),
            await ring(client, call, **{"webhook-id": "event-2"}),
            await ring(client, call, **{"webhook-timestamp": old}),
            await ring(client, call, **{"webhook-timestamp": "yesterday"}),
            await ring(client, call, **{"webhook-signature": "nonsense"}),
            await ring(client, call, **{"webhook-signature": "v1,nonsense"}),
            await client.post("/webhook", content=b"\xff", headers={"webhook-id": "a", "webhook-timestamp": old}),
        ]
        assert [answer.status_code for answer in refused] == [401] * len(refused)
        assert await greetings_of(client, user) == []
        assert await home.count("received_keys") == 0


async def test_while_a_secret_is_changed_both_are_good(home: Home) -> None:
    new = "whsec_" + "bmV3IG9uZQ" * 4
    async with birthdays(home, PARTS, webhook_secret=f"{new},{SECRET}") as client:
        await born(client, a_user())
        call = await a_call(home)
        assert (await ring(client, call, secret=new)).text == "greeted\n"
        assert (await ring(client, call)).text == "duplicate\n"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ({"hello": "world"}, 400),
        ([], 400),
        ({"id": "x"}, 400),
        ("x" * 70_000, 413),
    ],
)
async def test_what_is_signed_and_no_birthday_is_refused(home: Home, content: object, status: int) -> None:
    async with birthdays(home, PARTS) as client:
        assert (await ring(client, content)).status_code == status


@pytest.mark.parametrize(
    "wrong", [{"due_at": "2026-12-10T09:00:00"}, {"due_at": "0001-01-01T00:00:00Z"}, {"id": "no-uuid"}]
)
async def test_a_call_about_nonsense_is_refused(home: Home, wrong: dict[str, str]) -> None:
    async with birthdays(home, PARTS) as client:
        await born(client, a_user(timezone="America/New_York"))
        call = await a_call(home, **wrong)
        call["payload"]["timezone"] = "America/New_York"
        assert (await ring(client, call)).status_code == 400


async def test_keys_and_verdicts_are_kept_for_seven_days_and_then_forgotten(home: Home) -> None:
    async with birthdays(home, PARTS) as client:
        user = await born(client, a_user())
        await client.put(f"/user/{user}", json={"lastName": "King"})
        await ring(client, await a_call(home))
        await home.fetch("insert into received_keys values ('old', now() - interval '7 days 1 minute')")
        await home.fetch("insert into received_keys values ('young', now() - interval '6 days 23 hours')")
        await home.fetch("update reschedules set asked_at = now() - interval '6 days 23 hours'")
        assert await clean_once(home.pool) == 1
        assert [row["key"] for row in await home.fetch("select key from received_keys order by 1")] == [
            "event-1",
            "young",
        ]
        await home.fetch("update reschedules set asked_at = now() - interval '7 days 1 minute'")
        assert await clean_once(home.pool) == 1
        assert await home.count("reschedules") == 0
        assert len(await greetings_of(client, user)) == 1
