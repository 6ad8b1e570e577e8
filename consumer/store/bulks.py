"""The consumer's SQL for the rows of `bulks`, from the command to the deletion long after its end."""

from collections.abc import Sequence
from datetime import timedelta

import asyncpg

from consumer.commands.bulk import RunningBulk, is_same
from consumer.commands.merge import StoredBulk, may_command
from consumer.commands.parse import Bulk
from consumer.store.bulk_walk import Walked
from shared.contract.history import Origin
from shared.contract.labels import read_labels
from shared.contract.messages import BulkAction
from shared.postgres.labels import choose_label
from shared.postgres.pool import Connection

INSERT_BULK = """
insert into bulks (id, action, dry_run, labels, topic, id_prefix, by_user, of_operator, app_id, operator, note,
                   traceparent, reply_to, correlation_id, walk_label)
values ($1, $2, $3, $4::text::jsonb, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
on conflict (id) do nothing
returning id
"""
_STORED = "id, action, dry_run, labels::text, topic, id_prefix, by_user, matched, changed, requested_at, finished_at"
LOCK_BULK = f"select {_STORED} from bulks where id = $1 for no key update"  # noqa: S608 - put together from constants
ANSWER_ELSEWHERE = "update bulks set reply_to = $2, correlation_id = $3 where id = $1 and finished_at is null"


async def store_bulk(connection: Connection, bulk: Bulk, operators: Sequence[str]) -> StoredBulk | None:
    """Store a bulk, and return None; or return the one that has its id already. Call it inside a transaction.

    After the commit: it is carried on by any consumer. A bulk that is the same as one that is not finished has the
    answer sent to where the newest of them wants it.
    """
    labels = read_labels(bulk.labels)
    new = await connection.fetchval(
        INSERT_BULK,
        bulk.id,
        bulk.action,
        bulk.dry_run,
        bulk.labels,
        bulk.topic,
        bulk.id_prefix,
        bulk.user,
        bulk.user is not None and bulk.user in operators,
        bulk.origin.app_id,
        bulk.origin.operator,
        bulk.origin.note,
        bulk.traceparent,
        bulk.reply_to,
        bulk.correlation_id,
        await choose_label(connection, labels) if labels else None,
    )
    if new is not None:
        return None
    known = _stored(await connection.fetchrow(LOCK_BULK, bulk.id))
    if known.finished_at is None and may_command(bulk.user, known.user, operators) and is_same(bulk, known):
        await connection.execute(ANSWER_ELSEWHERE, bulk.id, bulk.reply_to, bulk.correlation_id)
    return known


FIND_BULKS = f"select {_STORED} from bulks where id = any($1::text[])"  # noqa: S608


async def find_bulks(connection: Connection, ids: Sequence[str]) -> dict[str, StoredBulk]:
    """Return the bulks that have these ids."""
    return {row["id"]: _stored(row) for row in await connection.fetch(FIND_BULKS, ids)}


# Other consumers skip the row until the transaction ends. Bulks take turns: the one whose step was longest ago is next.
CLAIM_BULK = f"""
select {_STORED}, of_operator, app_id, operator, note, traceparent, reply_to, correlation_id, walk_label, after_topic,
       after_id
  from bulks
 where answered_at is null and step_at <= clock_timestamp()
 order by step_at, id
 limit 1
   for no key update skip locked
"""  # noqa: S608


async def claim_bulk(connection: Connection) -> RunningBulk | None:
    """Lock a bulk that is not finished, or whose answer is still to be sent. None: there is none."""
    row = await connection.fetchrow(CLAIM_BULK)
    if row is None:
        return None
    return RunningBulk(
        stored=_stored(row),
        of_operator=row["of_operator"],
        origin=Origin(row["app_id"], row["operator"], row["note"]),
        traceparent=row["traceparent"],
        reply_to=row["reply_to"],
        correlation_id=row["correlation_id"],
        walk_label=row["walk_label"],
        after_topic=row["after_topic"],
        after_id=row["after_id"],
    )


STORE_STEP = """
update bulks
   set after_topic = $2,
       after_id = $3,
       matched = matched + $4,
       changed = changed + $5,
       steps = steps + 1,
       step_at = clock_timestamp(),
       finished_at = case when $6 then clock_timestamp() end,
       answered_at = case when $6 and reply_to is null then clock_timestamp() end
 where id = $1 and finished_at is null
"""


async def store_step(connection: Connection, bulk_id: str, part: Walked, changed: int) -> None:
    """After the commit: the next step begins behind this part of the walk, or there is none."""
    await connection.execute(STORE_STEP, bulk_id, *part.place, len(part.jobs), changed, part.is_last)


STORE_ANSWERED = """
update bulks set answered_at = clock_timestamp() where id = $1 and finished_at is not null and answered_at is null
"""


async def store_answered(connection: Connection, bulk_id: str) -> None:
    """After the commit: no consumer claims the bulk again."""
    await connection.execute(STORE_ANSWERED, bulk_id)


DELETE_BULKS = """
delete from bulks where id in (
    select id from bulks where answered_at < now() - $1::interval order by answered_at limit $2 for update skip locked)
"""


async def delete_bulks(connection: Connection, older_than: timedelta, limit: int) -> int:
    """Delete bulks that were answered long ago. Return how many."""
    return int((await connection.execute(DELETE_BULKS, older_than, limit)).split()[-1])


def _stored(row: asyncpg.Record | None) -> StoredBulk:
    if row is None:
        raise LookupError("the bulk was deleted while its id was in use")
    return StoredBulk(
        id=row["id"],
        action=BulkAction(row["action"]),
        dry_run=row["dry_run"],
        labels=row["labels"],
        topic=row["topic"],
        id_prefix=row["id_prefix"],
        user=row["by_user"],
        matched=row["matched"],
        changed=row["changed"],
        requested_at=row["requested_at"],
        finished_at=row["finished_at"],
    )
