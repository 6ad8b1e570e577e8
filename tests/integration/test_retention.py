"""What retention leaves alone. That it deletes what has ended is shown where producers run."""

from datetime import timedelta
from typing import Any

from producer.store.retention import delete_finished
from tests.support.job_rows import insert_due


async def test_a_job_that_is_open_is_kept_however_old_it_is(database: Any) -> None:
    """Stored and last changed years ago: one waits for a moment that is still to come, one is overdue, one was paused
    and has not been resumed yet.
    """
    await insert_due(database, 1, prefix="waiting-", late=timedelta(days=-3000))
    await insert_due(database, 1, prefix="overdue-", late=timedelta(days=900))
    await insert_due(database, 1, prefix="paused-", late=timedelta(days=900))
    await insert_due(database, 1, prefix="ended-", late=timedelta(days=900))
    await database.execute("update jobs set status = 'paused' where id like 'paused-%'")
    long_ago = "now() - interval '1000 days'"
    await database.execute(
        f"update jobs set status = 'done', next_run_at = null, finished_at = {long_ago} where id like 'ended-%'"
    )
    await database.execute("alter table jobs disable trigger user")  # which would not let an ended row be changed
    await database.execute(f"update jobs set created_at = {long_ago}, updated_at = {long_ago}")
    assert await delete_finished(database, timedelta(days=30), 100) == 1
    kept = await database.fetch("select split_part(id, '-', 1) as kind from jobs order by id")
    assert [row["kind"] for row in kept] == ["overdue", "paused", "waiting"]
