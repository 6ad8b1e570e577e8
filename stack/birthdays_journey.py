"""The journey that `make birthdays` shows: a user signs up shortly before their birthday, changes their name, is
greeted and leaves. The journal records the answers of the API, the application's log, and the events on Duebell's
exchange.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from zoneinfo import ZoneInfo

import aio_pika
import httpx
from aio_pika.abc import AbstractIncomingMessage
from standardwebhooks import Webhook

LOOK_SECONDS = 0.02
BIRTHDAY_TIMEOUT_SECONDS = 120.0
ZONE = "Asia/Tokyo"
# A sentence for each event of the application's log.
LOG_SENTENCES = {
    "published": "relay: {what} confirmed by the broker, and out of the outbox",
    "accepted": "reply: accepted, rings at {next_run_at}",
    "rescheduled": "reply: rescheduled, revision {revision}",
    "greeted": "receiver: signature verified, {type} greeted, key {idempotency_key:.14}…",
    "no_effect": "receiver: {reason}, nothing to do",
    "signature_refused": "receiver: the signature does not verify",
    "cancelled": "reply: cancelled",
}


@dataclass(frozen=True, slots=True)
class Birthday:
    due_at: datetime

    @classmethod
    def at(cls, moment: datetime) -> Self:
        return cls(moment.replace(microsecond=0))

    @property
    def local(self) -> datetime:
        return self.due_at.astimezone(ZoneInfo(ZONE))

    @property
    def greeting_time(self) -> str:
        return self.local.time().isoformat()

    @property
    def date_of_birth(self) -> str:
        return self.local.date().replace(year=1988).isoformat()  # a leap year, so it has every day


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses that the journey uses."""

    api_url: str
    amqp_url: str
    log: Path
    webhook_secret: str


@dataclass(slots=True)
class Journal:
    """Everything that was seen, for the checks at the end. `note()` shows each step at once."""

    show: Callable[[float, str, str], None]
    began: float = field(default_factory=time.monotonic)
    log: list[dict[str, Any]] = field(default_factory=list)
    rings: list[dict[str, Any]] = field(default_factory=list)
    answered_at: datetime | None = None
    message: str = ""
    greetings: int = 0
    copy: tuple[int, str] = (0, "")
    forged: int = 0

    def note(self, where: str, text: str) -> None:
        self.show(time.monotonic() - self.began, where, text)

    @property
    def rang_as_answered(self) -> bool:
        return [datetime.fromisoformat(ring["due_at"]) for ring in self.rings] == [self.answered_at]

    async def logged(self, event: str) -> None:
        """Wait until the application has logged the event."""
        while all(line["event"] != event for line in self.log):  # noqa: ASYNC110 - looking is all there is to do
            await asyncio.sleep(LOOK_SECONDS)


async def run_journey(addresses: Addresses, birthday: Birthday, journal: Journal) -> None:
    """Run the journey to its end. Raises TimeoutError if that does not come in time."""
    async with (
        asyncio.timeout(BIRTHDAY_TIMEOUT_SECONDS),
        _listening(addresses.amqp_url, journal),
        _reading(addresses.log, journal),
        httpx.AsyncClient(base_url=addresses.api_url, timeout=10) as client,
    ):
        user = await _sign_up(client, birthday, journal)
        await journal.logged("accepted")
        answer = await client.put(user, json={"lastName": "King"})
        journal.note("API", f"PUT {user[:14]}… {{lastName: King}} → {answer.status_code}, at once")
        await journal.logged("rescheduled")
        await journal.logged("greeted")
        await _look_at_the_greeting(client, user, journal)
        await _try_again(client, addresses.webhook_secret, journal)
        answer = await client.delete(user)
        journal.note("API", f"DELETE {user[:14]}… → {answer.status_code}")
        await journal.logged("cancelled")


async def _sign_up(client: httpx.AsyncClient, birthday: Birthday, journal: Journal) -> str:
    """Create a user. Returns the path of the new user."""
    new = {"firstName": "Ada", "lastName": "Lovelace", "dateOfBirth": birthday.date_of_birth, "timezone": ZONE}
    answer = await client.post("/user", json=new)
    journal.note("API", f"POST /user Ada Lovelace, born on {birthday.date_of_birth}, {ZONE} → {answer.status_code}")
    event = answer.json()["nextBirthdayEvent"]
    journal.answered_at = datetime.fromisoformat(event["utcTime"])
    ahead = (journal.answered_at - datetime.now(UTC)).total_seconds()
    journal.note("API", f"next birthday {event['localTime']} there, {event['utcTime']}: in {ahead:.1f} s")
    return f"/user/{answer.json()['user']['id']}"


async def _look_at_the_greeting(client: httpx.AsyncClient, user: str, journal: Journal) -> None:
    greetings = (await client.get(f"{user}/greetings")).json()
    journal.message, journal.greetings = greetings[0]["message"], len(greetings)
    journal.note("API", f"GET {user[:14]}…/greetings → “{journal.message}”")
    event = (await client.get(user)).json()["nextBirthdayEvent"]
    journal.note("API", f"GET {user[:14]}… → next birthday {event['localTime']}, by the same rule")


async def _try_again(client: httpx.AsyncClient, secret: str, journal: Journal) -> None:
    """Call the webhook again, as after a lost answer; then call it with a signature of another secret."""
    ring = journal.rings[0]
    body, now = json.dumps({name: ring[name] for name in ("id", "due_at", "payload")}), datetime.now(UTC)
    headers = {
        "webhook-id": ring["idempotency_key"],
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(ring["idempotency_key"], now, body),
    }
    answer = await client.post("/webhook", content=body, headers=headers)
    journal.copy = (answer.status_code, answer.text.strip())
    journal.note("webhook", f"the same call again → {answer.status_code} {answer.text.strip()}")
    headers["webhook-signature"] = Webhook(b"not the secret").sign(ring["idempotency_key"], now, body)
    journal.forged = (await client.post("/webhook", content=body, headers=headers)).status_code
    journal.note("webhook", f"a call with another secret → {journal.forged}")


@asynccontextmanager
async def _listening(amqp_url: str, journal: Journal) -> AsyncIterator[None]:
    async def on_due(message: AbstractIncomingMessage) -> None:
        ring = json.loads(message.body)
        journal.rings.append(ring)
        late = (datetime.now(UTC) - datetime.fromisoformat(ring["due_at"])).total_seconds() * 1000
        journal.note("Duebell", f"rings, {late:.0f} ms after {ring['due_at']}")

    async with await aio_pika.connect(amqp_url, timeout=10) as connection, connection.channel() as channel:
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind("schedule.events", "due.*.birthdays.#")
        await queue.consume(on_due, no_ack=True)
        yield


@asynccontextmanager
async def _reading(log: Path, journal: Journal) -> AsyncIterator[None]:
    """Read the application's log in the background, until the block ends."""

    async def read() -> None:
        with log.open() as lines:
            unfinished = ""
            while True:
                unfinished += lines.readline()
                if not unfinished.endswith("\n"):
                    await asyncio.sleep(LOOK_SECONDS)
                    continue
                if unfinished.startswith("{"):
                    line = json.loads(unfinished)
                    journal.log.append(line)
                    if line["event"] in LOG_SENTENCES:
                        journal.note("application", LOG_SENTENCES[line["event"]].format(**line))
                unfinished = ""

    reading = asyncio.create_task(read())
    try:
        yield
    finally:
        reading.cancel()
        await asyncio.wait({reading})
