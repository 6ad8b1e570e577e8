"""`job_labels` has the labels of the jobs that are open, and no others, whatever statement changes a job."""

from typing import Any

from tests.support.job_rows import insert_due

ENDS = "next_run_at = null, finished_at = now()"
LIVES_AGAIN = "status = 'pending', next_run_at = now(), finished_at = null, revision = revision + 1, life = life + 1"


async def _labels(database: Any) -> list[tuple[str, str]]:
    rows = await database.fetch("select label, job_id from job_labels order by label, job_id")
    return [(row["label"], row["job_id"]) for row in rows]


async def test_the_rows_of_labels_follow_their_job(database: Any) -> None:
    await insert_due(database, 3)
    assert await _labels(database) == []
    await database.execute("""update jobs set labels = '{"team": "billing"}' where id <> 'job-000003'""")
    both = [("team=billing", "job-000001"), ("team=billing", "job-000002")]
    assert await _labels(database) == both
    one, changed = both[1:], [("env=", "job-000001"), ("team=a=b", "job-000001")]
    for change, expected in (
        ("next_run_at = now() + interval '1 day', sequence = 7", both),
        ("status = 'paused'", both),
        ("""labels = '{"env": "", "team": "a=b"}'""", [*changed, *one]),
        (f"status = 'cancelled', {ENDS}", one),
        (f"{LIVES_AGAIN}, labels = null", one),
        ("""labels = '{"env": "", "team": "a=b"}'""", [*changed, *one]),
        (f"status = 'done', {ENDS}", one),
        (LIVES_AGAIN, [*changed, *one]),
    ):
        await database.execute(f"update jobs set {change} where id = 'job-000001'")
        assert await _labels(database) == sorted(expected), change
    await database.execute("delete from jobs where id = 'job-000001'")
    assert await _labels(database) == one
    await database.execute("delete from jobs")
    assert await _labels(database) == []
