"""Deletes, after 7 days, the keys of webhook calls and the verdicts on changes, in small batches, each a short
transaction.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from examples.birthdays.database import transaction
from examples.birthdays.running import Stop, sleep

if TYPE_CHECKING:
    from examples.birthdays.database import Pool

KEPT_FOR = timedelta(days=7)
BATCH = 1000
EVERY_SECONDS = 600.0

FORGET_KEYS = """
delete from received_keys where key in (
    select key from received_keys where received_at < now() - $1::interval order by received_at limit $2)
"""
FORGET_VERDICTS = """
delete from reschedules where (event_id, revision) in (
    select event_id, revision from reschedules where asked_at < now() - $1::interval order by asked_at limit $2)
"""


async def clean(pool: "Pool", stop: Stop) -> None:
    while not stop.is_set():
        if not await clean_once(pool):
            await sleep(stop, EVERY_SECONDS)


async def clean_once(pool: "Pool") -> int:
    """Delete one batch of old rows of each table. Return how many rows are gone."""
    gone = 0
    for statement in (FORGET_KEYS, FORGET_VERDICTS):
        async with transaction(pool) as connection:
            gone += int((await connection.execute(statement, KEPT_FOR, BATCH)).split()[-1])
    if gone:
        structlog.get_logger().info("forgotten", rows=gone)
    return gone
