"""How a consumer wakes the producers: NOTIFY, for rows that are due before a producer would look by itself."""

from collections.abc import Collection

from shared.postgres.pool import Connection

CHANNEL = "duebell_due_soon"

# A producer looks at least this often, whatever it hears or does not hear.
PRODUCER_POLL_SECONDS = 0.5

# Rows that are due later than this are found by a poll in time; NOTIFY serializes commits, so it is not used in vain.
NOTIFY_WITHIN_SECONDS = 2 * PRODUCER_POLL_SECONDS


async def notify(connection: Connection) -> None:
    """Heard when the transaction commits."""
    await connection.execute("select pg_notify($1, '')", CHANNEL)


NOTIFY_IF_HELD_UP = """
select pg_notify($1, '')
 where exists (
    select from jobs
     where id = any($2::text[]) and status = 'pending'
       and coalesce(retry_at, next_run_at) between now() - make_interval(secs => $3)
                                               and clock_timestamp() + make_interval(secs => $3))
"""


async def notify_if_held_up(connection: Connection, ids: Collection[str]) -> None:
    """For jobs that this transaction has locked and left as they were: one that is due about now may have been skipped
    by a claim at its very moment, and nobody would look again before the next poll. What came due long before was not
    held up by us.
    """
    await connection.execute(NOTIFY_IF_HELD_UP, CHANNEL, list(ids), NOTIFY_WITHIN_SECONDS)
