"""SQL that deletes deliveries which ended long ago."""

from datetime import timedelta

from shared.postgres.pool import Connection

DELETE_FINISHED_DELIVERIES = """
delete from deliveries where id in (
    select id from deliveries d
     where status in ('COMPLETED', 'FAILED') and finished_at < now() - $1::interval
       and not exists (select from delivery_announcements a where a.delivery_id = d.id)
     order by finished_at limit $2 for update skip locked)
"""


async def delete_finished(connection: Connection, older_than: timedelta, limit: int) -> int:
    """After the commit: at most `limit` deliveries that ended long ago are deleted, with their attempts. Returns how
    many. A delivery that is still to be announced stays.
    """
    return int((await connection.execute(DELETE_FINISHED_DELIVERIES, older_than, limit)).split()[-1])
