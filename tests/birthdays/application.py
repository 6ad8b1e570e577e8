"""The birthday application as the tests run it: with its own users of either store, on a test's own site, its parts as
tasks of the test's loop or as a process.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import aio_pika
import httpx

from examples.birthdays.database import a_pool, database_now
from examples.birthdays.main import PARTS, run
from examples.birthdays.migrate import migrate
from examples.birthdays.provision import ROLE, provision
from examples.birthdays.settings import Settings
from stack.ports import free_port
from tests.support.eventually import PATIENCE, eventually
from tests.support.services import running_consumer, running_delivery, running_producer
from tests.support.stores import Site

if TYPE_CHECKING:
    from examples.birthdays.database import Pool
    from examples.birthdays.profiles import Clock

SECRET = "whsec_" + base64.b64encode(b"the birthdays' own signing key..").decode()
SECRETS = json.dumps({"birthdays": SECRET})


@dataclass(frozen=True, slots=True)
class Logins:
    """The application's passwords, and whether the broker knows its user."""

    password: str
    on_broker: bool


def as_user(url: str, user: str, password: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{user}:{password}@{parts.hostname}:{parts.port}"))


async def settle_in(site: Site, logins: Logins) -> dict[str, str]:
    """What an operator does before the first start; then the application's own environment."""
    await provision(site.database_url, logins.password)
    environment = {
        "DATABASE_URL": as_user(site.database_url, ROLE, logins.password),
        "AMQP_URL": as_user(site.amqp_url, ROLE, logins.password) if logins.on_broker else site.amqp_url,
        "AMQP_PREFIX": site.prefix,
        "WEBHOOK_SECRET": SECRET,
    }
    await migrate(environment["DATABASE_URL"])
    return environment


@dataclass(frozen=True, slots=True)
class Home:
    """The site of the application under test, its environment and its pool."""

    site: Site
    environment: dict[str, str]
    pool: "Pool"

    def settings(self, **overrides: Any) -> Settings:
        given = {name.lower(): value for name, value in self.environment.items()}
        return Settings(**{**given, "http_port": free_port(), **overrides})

    async def fetch(self, statement: str, *arguments: object) -> list[Any]:
        return list(await self.pool.fetch(statement, *arguments, timeout=10))

    async def count(self, table: str) -> int:
        return int(await self.pool.fetchval(f"select count(*) from {table}", timeout=10))

    async def has(self, table: str, number: int, within: float = 30.0) -> None:
        async def look() -> bool:
            count = await self.count(table)
            assert count == number, f"{count} of {number} {table}"
            return True

        await eventually(look, within)


@asynccontextmanager
async def a_home(site: Site, logins: Logins) -> AsyncIterator[Home]:
    environment = await settle_in(site, logins)
    async with a_pool(environment["DATABASE_URL"]) as pool:
        home = Home(site, environment, pool)
        yield home
    async with await aio_pika.connect(site.amqp_url, timeout=PATIENCE) as connection, connection.channel() as channel:
        await channel.queue_delete(home.settings().replies_queue)


@asynccontextmanager
async def birthdays(
    home: Home, parts: Collection[str] = PARTS, *, clock: "Clock" = database_now, **settings: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """Run the application. Yields a client of its API."""
    chosen, stop, ready = home.settings(**settings), asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(run(chosen, stop, parts, ready=ready.set, clock=clock))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, timeout=20, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{chosen.http_port}", timeout=20) as client:
            yield client
        assert not task.done(), "the application ended by itself"
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE)


@asynccontextmanager
async def duebell(site: Site, *names: str) -> AsyncIterator[None]:
    """Run the named services of Duebell, all three by default."""
    async with AsyncExitStack() as running:
        for name in names or ("consumer", "producer", "delivery"):
            match name:
                case "consumer":
                    await running.enter_async_context(running_consumer(site))
                case "producer":
                    await running.enter_async_context(running_producer(site))
                case _:
                    await running.enter_async_context(running_delivery(site, webhook_secrets=SECRETS))
        yield


async def born(client: httpx.AsyncClient, user: dict[str, Any]) -> str:
    """Create a user. Returns their id."""
    answer = await client.post("/user", json=user)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["user"]["id"])


async def greetings_of(client: httpx.AsyncClient, user_id: str) -> list[dict[str, Any]]:
    return list((await client.get(f"/user/{user_id}/greetings")).json())


async def greeted(client: httpx.AsyncClient, user_id: str, times: int = 1) -> list[dict[str, Any]]:
    async def look() -> list[dict[str, Any]]:
        greetings = await greetings_of(client, user_id)
        assert len(greetings) == times, f"{len(greetings)} of {times} greetings so far"
        return greetings

    return await eventually(look, 30)


async def verdicts(client: httpx.AsyncClient, **expected: int) -> None:
    """Wait until GET /verdicts answers with these counts."""
    wanted = {"rescheduled": 0, "skipped": 0, "open": 0, **expected}

    async def look() -> bool:
        seen = (await client.get("/verdicts")).json()
        assert seen == wanted, f"{seen} so far"
        return True

    await eventually(look, 30)
