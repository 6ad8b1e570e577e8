"""`duebell why` on a running stack: one situation after the other, and the line that a reader sees first."""

import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from tests.cli.command_line import Operator, an_operator
from tests.support.application import Application, an_application
from tests.support.eventually import eventually
from tests.support.receiver import Call, Receiver, a_receiver
from tests.support.services import running_consumer, running_delivery, running_producer
from tests.support.stores import Site

HEARD, FULL = "due.event.heard", "due.event.full"
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? UTC, (now|in [\d.]+ \w+|[\d.]+ \w+ ago)"
LATE = r"\([\d.e-]+ \w+ late\)"

# An id and what must be told of it, in a line each; below the empty line, what is told when services have stopped.
LINES = Path(__file__).with_name("why_lines.txt")


async def test_why_names_the_cause_and_what_to_do(site: Site) -> None:
    told_now, told_after = (_read(part) for part in LINES.read_text().split("\n\n"))
    environment = {**site.environment, "COLUMNS": "2000", "DUEBELL_OPERATOR": "ana", "DUEBELL_TIMEZONE": "UTC"}
    async with AsyncExitStack() as running:
        app = await running.enter_async_context(an_application(site, listen_to=HEARD))
        duebell = await running.enter_async_context(an_operator(environment))
        receiver = await running.enter_async_context(a_receiver(_answer))
        broken = await running.enter_async_context(a_receiver(_answer))
        place = {"RECEIVER": urlsplit(receiver.url).netloc, "BROKEN": urlsplit(broken.url).netloc, "USER": _user(site)}
        await running.enter_async_context(running_consumer(site, webhook_allow_networks="127.0.0.0/8,10.0.0.0/8"))

        async with running_producer(site):
            delivery = {"retry_base_seconds": 3600, "breaker_failures": 2, "breaker_first_pause_seconds": 3000}
            async with running_delivery(site, **delivery):
                await _make_situations(app, duebell, receiver, broken, place["USER"])
                for job_id, line in told_now.items():
                    await _is_told(duebell, job_id, line, place)
            await app.request({"id": "answered-never", "at": _at(), "webhook": {"url": receiver.url}})
            await _is_told(duebell, "answered-never", told_after["answered-never"], place)
        await app.request({"id": "late", "at": _at(-timedelta(seconds=10)), "topic": "heard"})
        await _is_told(duebell, "late", told_after["late"], place)

        told = await duebell("why", "cancelled", "--json")
        assert told.json["cause"] == "cancelled"
        assert [entry["what"] for entry in told.json["history"]] == ["cancelled", "accepted"]
        assert told.json["history"][0]["note"] == "paid by hand"
        assert (await duebell("why", "never-heard")).status == 1


def _read(part: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in part.splitlines())


async def _make_situations(
    app: Application, duebell: Operator, receiver: Receiver, broken: Receiver, user: str
) -> None:
    async def schedule(job_id: str, at: datetime | None = None, **fields: object) -> None:
        when = {} if "rrule" in fields else {"at": (at or datetime.now(UTC)).isoformat()}
        await app.ask({"id": job_id, "topic": "heard", **when, **fields}, app_id="shop", user_id=user)

    later = datetime.now(UTC) + timedelta(hours=1)
    await app.binds(f"{app.names.prefix}full", FULL, **{"x-max-length": 0, "x-overflow": "reject-publish"})
    await schedule("too-late")
    await app.hears(1)
    await app.ask({"id": "too-late"}, key="schedule.cancel", app_id="shop", user_id=user)
    await schedule("rejected", rrule="FREQ=NEVER")
    await schedule("not-the-owner", later)
    await app.cancel("not-the-owner")
    for job_id in ("overtaken", "closed"):
        await app.ask({"id": job_id}, key="schedule.cancel", app_id="shop", user_id=user)
    await schedule("overtaken", later)
    await schedule("duplicate", later, payload=1)
    await schedule("duplicate", later, payload=2)
    await schedule("cancelled", later)
    assert (await duebell("cancel", "cancelled", "--yes", "--note", "paid by hand")).status == 0
    await schedule("paused", later)
    assert (await duebell("pause", "paused", "--note", "holidays")).status == 0
    await schedule("replaced", later)
    await schedule("replaced", later + timedelta(hours=1), revision=2)
    await schedule("not-yet", later)
    await schedule("rule-ended", rrule="FREQ=DAILY;COUNT=1")
    await schedule("misfire", datetime.now(UTC) - timedelta(hours=1), misfire="skip")
    await schedule("refused", topic="full")
    await schedule("unrouted", topic="misspelt")
    await schedule("fired")
    await schedule("answered", webhook={"url": f"{receiver.url}/200"})
    await schedule("retried", webhook={"url": f"{receiver.url}/503"})
    await schedule("failed", webhook={"url": f"{receiver.url}/404"})
    await schedule("forbidden", webhook={"url": "http://10.0.0.1/hook"})
    await schedule("secret", webhook={"url": receiver.url, "secret": "billing"})
    for job_id in ("breaker", "breaker-2"):
        await schedule(job_id, webhook={"url": f"{broken.url}/503"})


async def _answer(call: Call) -> web.Response:
    said = {"503": "come back later", "404": "no such hook"}
    status = call.path.rpartition("/")[2]
    return web.Response(status=int(status) if status.isdigit() else 200, text=said.get(status, "thanks"))


async def _is_told(duebell: Operator, job_id: str, expected: str, place: Mapping[str, str]) -> None:
    async def look() -> bool:
        told = (await duebell("why", job_id, "--table")).out.partition("\n")[0]
        assert _without_chance(told, place) == expected
        return True

    await eventually(look)


def _without_chance(line: str, place: Mapping[str, str]) -> str:
    """Replace what differs from run to run: times, ports, numbers of rows, the user of this broker."""
    for name, value in place.items():
        before = r"(?<= as )|(?<=AMQP user )" if name == "USER" else ""
        line = re.sub(f"(?:{before}){re.escape(value)}", name, line)
    line = re.sub(LATE, "LATE", re.sub(TIME, "TIME", line))
    line = re.sub(r"rrule: [^.]*\.(?= It came)", "rrule: ….", line)
    line = re.sub(r"\d+ attempts? since", "N since", line)
    return re.sub(r"(?<=Late by )[\d.]+ \w+|(?<=alone for )[\d.]+ \w+|(?<=replay )\d+", "N", line)


def _at(offset: timedelta = timedelta(0)) -> str:
    return (datetime.now(UTC) + offset).isoformat()


def _user(site: Site) -> str:
    return urlsplit(site.amqp_url).username or "guest"
