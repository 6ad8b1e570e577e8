"""What a small company might have scheduled: enough of everything for the console to show."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import aio_pika

from shared.contract.names import Names
from tests.support.eventually import PATIENCE

QUEUE = "sample-application"
BOUND_TOPICS = ("billing.#", "team.#", "reports.#")


def soon(**ahead: float) -> str:
    return (datetime.now(UTC) + timedelta(**ahead)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def requests(receiver: str) -> list[dict[str, Any]]:
    """Jobs that wait, that fire, whose event no queue hears, and whose webhook fails."""
    called = {"url": f"{receiver}/hooks/billing", "secret": "demo"}
    wrong = {"url": "http://127.0.0.1:1/hooks/ledger", "max_retries": 0}
    waiting: list[dict[str, Any]] = [
        {"id": "standup-platform", "cron": "30 9 * * 1-5", "timezone": "Europe/Berlin", "topic": "team.standup"},
        {
            "id": "report-weekly-revenue",
            "rrule": "FREQ=WEEKLY;BYDAY=MO;BYHOUR=7;BYMINUTE=0;BYSECOND=0",
            "timezone": "Europe/Berlin",
            "topic": "reports.weekly",
            "payload": {"account": 12345678901234567890123, "rate": 0.10, "recipients": ["finance@example.com"]},
            "webhook": called,
        },
        {"id": "month-end-closing", "rrule": "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=2;BYMINUTE=30;BYSECOND=0",
         "timezone": "America/New_York", "topic": "billing.closing"},
        {"id": "cache-warmer", "every_seconds": 900, "topic": "team.cache", "misfire": "latest"},
        {"id": "licence-renewal-acme", "at": "2027-03-31T09:00:00", "timezone": "Europe/Paris",
         "topic": "billing.renewal"},
        {"id": "nightly-backup-check", "cron": "15 2 * * *", "timezone": "Europe/Berlin", "topic": "team.backup"},
        *(
            {"id": f"invoice-{number}-reminder", "at": soon(minutes=3 + 11 * (number % 17), seconds=number % 60),
             "topic": "billing.reminder", "payload": {"invoice": number, "customer": f"C-{number % 97:03}"},
             "webhook": called}
            for number in range(4200, 4260)
        ),
    ]  # fmt: skip
    firing: list[dict[str, Any]] = [
        *({"id": f"welcome-{n}", "at": soon(), "topic": "team.welcome", "payload": {"user": n}} for n in range(12)),
        *({"id": f"receipt-{n}", "at": soon(), "topic": "billing.receipt", "payload": {"receipt": n}, "webhook": called}
          for n in range(8)),
        *({"id": f"ledger-export-{n}", "at": soon(), "topic": "billing.ledger", "webhook": wrong} for n in range(3)),
        {"id": "newsletter-november", "at": soon(), "topic": "biling.newsletter", "payload": {"issue": 11}},
    ]  # fmt: skip
    return [*waiting, *firing]


WRONG = [
    {"id": "digest-paris", "cron": "0 8 * * *", "timezone": "Europe/Pariss", "topic": "team.digest"},
    {"id": "cleanup-tmp", "cron": "61 * * * *", "topic": "team.cleanup"},
]
COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("schedule.pause", {"id": "cache-warmer", "note": "the cluster moves this week"}),
    ("schedule.cancel", {"id": "invoice-4203-reminder", "note": "paid by hand"}),
    ("schedule.trigger", {"id": "report-weekly-revenue", "trigger_id": "asked-by-finance"}),
    ("schedule.request", {"id": "invoice-4204-reminder", "at": "2027-01-04T09:00:00Z", "topic": "billing.reminder",
                          "revision": 2}),
]  # fmt: skip


async def schedule_samples(amqp_url: str, names: Names, receiver: str) -> None:
    """Send everything, as an application that wants replies would. Return when the last has been answered."""
    async with await aio_pika.connect(amqp_url, timeout=PATIENCE) as connection, connection.channel() as channel:
        events = await channel.get_exchange(names.events, ensure=False)
        queue = await channel.declare_queue(names.prefix + QUEUE, durable=True)
        for topic in BOUND_TOPICS:
            await queue.bind(events, f"due.*.{topic}")
        messages = [("schedule.request", one) for one in [*requests(receiver), *WRONG]]
        await send_commands(channel, names, messages)
        await send_commands(channel, names, COMMANDS)


async def send_commands(
    channel: aio_pika.abc.AbstractChannel, names: Names, commands: list[tuple[str, dict[str, Any]]]
) -> None:
    exchange = await channel.get_exchange(names.commands, ensure=False)
    replies = await channel.declare_queue(exclusive=True)
    for key, content in commands:
        body = json.dumps(content).encode()
        message = aio_pika.Message(
            body, reply_to=replies.name, correlation_id=uuid4().hex, message_id=uuid4().hex, app_id="shop-backend"
        )
        await exchange.publish(message, key)
    async with asyncio.timeout(PATIENCE), replies.iterator(no_ack=True) as answers:
        left = len(commands)
        async for _ in answers:
            left -= 1
            if not left:
                return
