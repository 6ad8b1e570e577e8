"""How a consumer wakes the producers: NOTIFY, for rows that are due before a producer would look by itself."""

from shared.database import Connection

CHANNEL = "duebell_due_soon"

# A producer looks at least this often, whatever it hears or does not hear.
POLL_SECONDS = 0.5

# Rows that are due later than this are found by a poll in time; NOTIFY serializes commits, so it is not used in vain.
NOTIFY_WITHIN_SECONDS = 2 * POLL_SECONDS


async def notify(connection: Connection) -> None:
    """Heard when the transaction commits."""
    await connection.execute("select pg_notify($1, '')", CHANNEL)
