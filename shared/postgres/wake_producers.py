"""How a consumer wakes the producers: by NOTIFY, for rows that are due before the next poll of a producer."""

from collections.abc import Collection

from shared.postgres.pool import Connection

CHANNEL = "duebell_due_soon"

# A producer polls at least this often, with or without notifications.
PRODUCER_POLL_SECONDS = 0.5

# A poll finds rows that are due later than this in time. NOTIFY serializes commits, so it is used only for the others.
NOTIFY_WITHIN_SECONDS = 2 * PRODUCER_POLL_SECONDS


async def notify(connection: Connection) -> None:
    """Wake every producer. After the commit: Postgres delivers the notification."""
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
    """Wake the producers for jobs that this transaction has locked and not changed. A claim skips locked rows: a job
    that came due meanwhile would wait for the next poll. A job that was due long before was not held up by this lock.
    """
    await connection.execute(NOTIFY_IF_HELD_UP, CHANNEL, list(ids), NOTIFY_WITHIN_SECONDS)
