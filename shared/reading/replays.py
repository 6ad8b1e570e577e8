"""Finds failed deliveries that are to be tried again, and tells which of them are."""

from collections.abc import Sequence

from shared.postgres.pool import Connection
from shared.reading.deliveries import DeliveriesWanted, list_deliveries

BATCH_DELIVERIES = 1000
# A page of rows that do not match is followed by another; not for ever.
MAX_PAGES = 50


async def find_to_replay(connection: Connection, wanted: DeliveriesWanted, limit: int) -> list[int]:
    """Return the numbers of failed deliveries that match and have no replay, the last to end first."""
    found: list[int] = []
    after = None
    for _ in range(MAX_PAGES):
        page = await list_deliveries(connection, wanted, BATCH_DELIVERIES, after)
        found += [one.id for one in page.deliveries if one.status == "FAILED" and one.replayed_as is None]
        after = page.next
        if after is None or len(found) >= limit:
            break
    return found[:limit]


COUNT_REPLAYS = "select count(*) from deliveries where replay_of = any($1::bigint[])"


async def count_replays(connection: Connection, delivery_ids: Sequence[int]) -> int:
    """Return how many of the deliveries have a replay."""
    replays: int = await connection.fetchval(COUNT_REPLAYS, list(delivery_ids))
    return replays
