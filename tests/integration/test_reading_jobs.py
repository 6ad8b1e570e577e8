"""Lists, searches and counts of jobs: all of them once, in their order, at a cost that does not grow with the table."""

import json
from datetime import timedelta
from typing import Any

import pytest

from shared.postgres.labels import choose_label
from shared.reading import jobs
from shared.reading.job_walks import (
    COUNT_JOBS,
    COUNT_LABELED,
    COUNT_OF_TOPIC,
    LIST_JOBS,
    LIST_LABELED,
    LIST_OF_TOPIC,
)
from shared.reading.jobs import (
    Count,
    Cursor,
    JobState,
    Wanted,
    count_jobs,
    find_by_beginning,
    list_jobs,
    read_job,
)
from tests.support.job_rows import insert_due

IN_ORDER = {
    JobState.ALL: ["job-0", "job-1", "job-2", "job-3", "job-4", "job-5", "job-6", "job-7"],
    JobState.PENDING: ["job-3", "job-1", "job-2", "job-0"],
    JobState.REFUSED: ["job-1"],
    JobState.PAUSED: ["job-5", "job-4"],
    JobState.DONE: ["job-7"],
    JobState.CANCELLED: ["job-6"],
}


async def eight_jobs(database: Any) -> None:
    """Insert jobs in all states. Job 1 was refused and is tried again in 5 minutes; 2 waits for its turn."""
    await database.execute("""
        insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at,
                          finished_at, retry_at, refusals, webhook)
        values ('job-0', 'pending', 1, 'a', '1', 'all', 60, now() + interval '1 day', null, null, 0, null),
               ('job-1', 'pending', 1, 'a.b', '1', 'all', 60, now() - interval '1 day', null,
                now() + interval '5 min', 3, null),
               ('job-2', 'pending', 1, 'ab', '1', 'all', 60, now() - interval '1 day', null,
                now() + interval '6 min', 0, null),
               ('job-3', 'pending', 1, 'b', '1', 'all', 60, now() - interval '1 s', null, null, 0, null),
               ('job-4', 'paused', 1, 'a', '1', 'all', 60, now() + interval '1 day', null, null, 0, null),
               ('job-5', 'paused', 1, 'b', '1', 'all', 60, now() + interval '1 h', null, null, 0, null),
               ('job-6', 'cancelled', 1, 'a', '1', 'all', 60, null, now() - interval '1 h', null, 0, null),
               ('job-7', 'done', 1, 'a', '1', 'all', 60, null, now() - interval '1 day', null, 0,
                '{"url": "https://example.com", "headers": {"Authorization": "Bearer canary"}}')
    """)


async def ids(database: Any, wanted: Wanted, page_size: int = 100) -> list[str]:
    """Return the ids of all pages, with cursors as texts, as a person or a browser gives them back."""
    found: list[str] = []
    after: Cursor | None = None
    while True:
        page = await list_jobs(database, wanted, page_size, after)
        found += [job.id for job in page.jobs]
        if page.next is None:
            return found
        after = Cursor.parse(str(page.next))


async def test_each_state_has_its_order_and_pages_leave_no_job_out(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await eight_jobs(database)
    for rows_read in (jobs.MAX_ROWS_A_WALK, 1):
        monkeypatch.setattr(jobs, "MAX_ROWS_A_WALK", rows_read)
        for state, expected in IN_ORDER.items():
            for page_size in (1, 2, 100):
                assert await ids(database, Wanted(state), page_size) == expected, (state, page_size)
            assert await count_jobs(database, Wanted(state)) == Count(len(expected), more=False)


async def test_jobs_are_found_by_part_of_the_id_topic_and_moment(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await eight_jobs(database)
    now = await database.fetchval("select now()")
    everything = JobState.ALL
    for rows_read in (jobs.MAX_ROWS_A_WALK, 1):
        monkeypatch.setattr(jobs, "MAX_ROWS_A_WALK", rows_read)
        monkeypatch.setattr(jobs, "MAX_WALKS", rows_read)
        # Three open jobs are of the topic or of one below it.
        monkeypatch.setattr(jobs, "MAX_ROWS_OF_TOPIC", 3 if rows_read > 1 else 2)
        assert await ids(database, Wanted(everything, search="B-6")) == ["job-6"]
        assert await ids(database, Wanted(everything, search="%")) == []
        assert await ids(database, Wanted(JobState.PENDING, search="job-3")) == ["job-3"]
        assert await ids(database, Wanted(everything, topic="a")) == ["job-0", "job-1", "job-4", "job-6", "job-7"]
        for size in (1, 100):
            assert await ids(database, Wanted(JobState.PENDING, topic="a"), size) == ["job-1", "job-0"]
            assert await ids(database, Wanted(JobState.REFUSED, topic="a"), size) == ["job-1"]
            assert await ids(database, Wanted(JobState.PAUSED, topic="a"), size) == ["job-4"]
        assert await count_jobs(database, Wanted(JobState.PENDING, topic="a")) == Count(2, more=False)
        assert await ids(database, Wanted(JobState.PENDING, search="1", topic="a", until=now)) == []
        soon = now + timedelta(minutes=10)
        assert await ids(database, Wanted(JobState.PENDING, since=now, until=soon)) == ["job-1", "job-2"]
        assert await ids(database, Wanted(everything, since=now, until=soon)) == ["job-1", "job-2"]
        assert await ids(database, Wanted(JobState.DONE, until=now - timedelta(hours=2))) == ["job-7"]
        assert await ids(database, Wanted(JobState.CANCELLED, since=now - timedelta(minutes=1))) == []
        assert await ids(database, Wanted(JobState.PAUSED, until=now + timedelta(hours=2))) == ["job-5"]
    assert await count_jobs(database, Wanted(everything, topic="a")) == Count(5, more=False)


async def test_jobs_are_listed_by_their_owner(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await eight_jobs(database)
    await database.execute("update jobs set owner = 'shop' where id in ('job-1', 'job-2', 'job-5')")
    await database.execute("update jobs set owner = 'shop-2' where id = 'job-0'")
    for rows_read in (jobs.MAX_ROWS_A_WALK, 1):
        monkeypatch.setattr(jobs, "MAX_ROWS_A_WALK", rows_read)
        monkeypatch.setattr(jobs, "MAX_WALKS", rows_read)
        assert await ids(database, Wanted(JobState.ALL, owner="shop")) == ["job-1", "job-2", "job-5"]
        assert await ids(database, Wanted(JobState.PENDING, owner="shop")) == ["job-1", "job-2"]
        assert await ids(database, Wanted(JobState.PENDING, topic="a", owner="shop")) == ["job-1"]
        assert await ids(database, Wanted(JobState.PENDING, owner="sho")) == []
    assert await count_jobs(database, Wanted(JobState.PENDING, owner="shop")) == Count(2, more=False)


async def test_ids_that_begin_with_a_text_are_found_in_their_order_at_once(database: Any) -> None:
    await eight_jobs(database)
    assert [job.id for job in await find_by_beginning(database, "job-", 3)] == ["job-0", "job-1", "job-2"]
    assert [job.id for job in await find_by_beginning(database, "job-6", 3)] == ["job-6"]
    assert await find_by_beginning(database, "ob-6", 3) == []
    assert await find_by_beginning(database, "job-%", 3) == []


async def test_jobs_of_a_rare_topic_are_read_by_that_topic(database: Any) -> None:
    await insert_due(database, 20_000)
    await database.execute("update jobs set topic = 'rare' where id like '%777'")
    await database.execute("update jobs set topic = 'rare.below' where id like '%778'")
    await database.execute("vacuum analyze jobs")
    bounds = ("null", "'rare'", "null", "null", "null", "null", "20000", "'pending'", "null", "null")
    for statement, further in ((LIST_OF_TOPIC, ("50",)), (COUNT_OF_TOPIC, ())):
        plan = await explain(database, statement, *bounds, *further)
        assert {node.get("Index Name") for node in nodes(plan)} - {None, "jobs_pkey"} == {"jobs_by_topic"}
        assert [node for node in nodes(plan) if node["Node Type"] == "Seq Scan"] == []


async def test_a_count_stops_at_its_limit_and_says_so(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await eight_jobs(database)
    monkeypatch.setattr(jobs, "MAX_COUNT", 3)
    assert await count_jobs(database, Wanted(JobState.PENDING)) == Count(3, more=True)
    assert await count_jobs(database, Wanted(JobState.PAUSED)) == Count(2, more=False)
    monkeypatch.setattr(jobs, "MAX_ROWS_COUNTED", 7)
    assert await count_jobs(database, Wanted(JobState.ALL, topic="b")) == Count(2, more=True)


async def test_jobs_are_listed_by_the_labels_that_they_have(database: Any) -> None:
    await insert_due(database, 30)
    await database.execute("""update jobs set labels = '{"team": "a"}'""")
    await database.execute("""update jobs set labels = '{"team": "a", "env": "b"}' where id like '%2'""")
    await database.execute("update jobs set status = 'paused' where id = 'job-000012'")
    await database.execute("update jobs set refusals = 1, retry_at = now() where id = 'job-000022'")
    await database.execute(
        "update jobs set status = 'done', finished_at = now(), next_run_at = null where id = 'job-000002'"
    )
    both, one = {"env": "b", "team": "a"}, {"team": "a"}
    for size in (1, 100):
        assert len(await ids(database, Wanted(JobState.PENDING, labels=one), size)) == 28
        assert await ids(database, Wanted(JobState.PENDING, labels=both), size) == ["job-000022"]
        assert await ids(database, Wanted(JobState.PENDING, "x", labels=both), size) == []
        assert await ids(database, Wanted(JobState.REFUSED, labels=one), size) == ["job-000022"]
        assert await ids(database, Wanted(JobState.PAUSED, labels=both), size) == ["job-000012"]
        assert await ids(database, Wanted(JobState.DONE, labels=both), size) == ["job-000002"]
        assert len(await ids(database, Wanted(JobState.ALL, labels=both), size)) == 3
        assert await ids(database, Wanted(JobState.PENDING, labels={"team": "b"}), size) == []
    assert await count_jobs(database, Wanted(JobState.PENDING, labels=one)) == Count(28, more=False)
    assert (await list_jobs(database, Wanted(JobState.PAUSED, labels=both), 5)).jobs[0].labels == both
    assert await choose_label(database, both) == "env=b"


async def test_a_list_by_label_walks_the_label_and_reads_jobs_by_their_key(database: Any) -> None:
    await insert_due(database, 5_000)
    await database.execute("update jobs set labels = jsonb_build_object('team', (payload #>> '{}')::int % 10)")
    await database.execute("vacuum analyze jobs, job_labels")
    bounds = ("null", "null", "null", "null", "null", "'job-000100'", "500", "'pending'", "'{}'", "null", "'team=1'")
    for statement, further in ((LIST_LABELED, ("50",)), (COUNT_LABELED, ())):
        plan = await explain(database, statement, *bounds, *further)
        assert {node.get("Index Name") for node in nodes(plan)} - {None} == {"job_labels_pkey", "jobs_pkey"}
        assert [node for node in nodes(plan) if node["Node Type"] == "Seq Scan"] == []


async def test_a_job_is_read_without_the_values_of_its_webhook_headers(database: Any) -> None:
    await eight_jobs(database)
    job = await read_job(database, "job-7")
    assert job is not None
    assert job.webhook == {"url": "https://example.com", "headers": {"Authorization": "…"}}
    assert job.payload == "1"
    assert await read_job(database, "nope") is None


def test_what_is_no_cursor_is_refused() -> None:
    for text in ("", "tea", "yesterday/tea", "2030-01-01T00:00:00Z/"):
        with pytest.raises(ValueError, match=r"cursor|instant|date"):
            Cursor.parse(text)
    assert str(Cursor.parse("2030-01-01T00:00:00.000001Z/a/b")) == "2030-01-01T00:00:00.000001Z/a/b"


INDEXES = {
    JobState.ALL: {"jobs_pkey"},
    JobState.PENDING: {"jobs_due", "jobs_refused"},
    JobState.REFUSED: {"jobs_refused"},
    JobState.PAUSED: {"jobs_paused"},
    JobState.DONE: {"jobs_finished"},
    JobState.CANCELLED: {"jobs_cancelled"},
}


async def test_every_list_and_count_walks_an_index_from_where_it_begins(database: Any) -> None:
    for prefix, count in (("done-", 10_000), ("later-", 10_000), ("paused-", 200), ("refused-", 2_000)):
        await insert_due(database, count, prefix=prefix)
    await database.execute("update jobs set next_run_at = now() + random() * interval '30 days'")
    await database.execute("update jobs set retry_at = next_run_at, refusals = 1 where id like 'refused-%'")
    await database.execute("update jobs set status = 'paused' where id like 'paused-%'")
    await database.execute("update jobs set status='done', finished_at=next_run_at, next_run_at=null where id ~ 'done'")
    await database.execute("vacuum analyze jobs")
    for state in JobState:
        after = ("null", "'later-'") if state is JobState.ALL else ("now()", "'later-'")
        for search in ("null", "'abc'"):
            bounds = (search, "null", "null", "null", *after, "500", f"'{state}'", "null", "null")
            for statement, further in ((LIST_JOBS[state], ("50",)), (COUNT_JOBS[state], ())):
                plan = await explain(database, statement, *bounds, *further)
                scans = [node for node in nodes(plan) if node.get("Relation Name") == "jobs"]
                used = {node.get("Index Name") for node in nodes(plan)} - {None}
                assert used - {"jobs_pkey"} == INDEXES[state] - {"jobs_pkey"}, (state, plan)
                assert all("Index Cond" in node or "Recheck Cond" in node for node in scans), (state, scans)


async def explain(database: Any, statement: str, *parameters: str) -> dict[str, Any]:
    for number in range(len(parameters), 0, -1):
        statement = statement.replace(f"${number}", parameters[number - 1])
    explained = json.loads(await database.fetchval(f"explain (format json) {statement}"))
    root: dict[str, Any] = explained[0]["Plan"]
    return root


def nodes(plan: dict[str, Any]) -> Any:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)
