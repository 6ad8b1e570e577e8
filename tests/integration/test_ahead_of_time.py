"""Tests the head start: rows are claimed a little ahead of their moment, published no earlier, and none is missed."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from producer.decisions.plan import MAX_TURN_OCCURRENCES
from producer.firing import MAX_HEAD_START_SECONDS, Fired, Idle, TooEarly
from producer.store.lanes import DUE_NOW, OVERDUE, RETRY, claim_due
from shared.runtime import fault_points
from shared.runtime.fault_points import Point
from tests.support.application import Application
from tests.support.builders import minutely
from tests.support.firer import a_firer
from tests.support.job_rows import insert_due, read_job
from tests.support.services import running_producer
from tests.support.stores import Site

SOON = timedelta(seconds=MAX_HEAD_START_SECONDS / 2)
# A busy machine may need longer than that before it claims.
TRIES = 200


@pytest.fixture
def passed() -> Iterator[dict[Point, list[datetime]]]:
    """When the producer reached each fault point, by the clock that Postgres uses, too, in this test."""
    passed: dict[Point, list[datetime]] = {point: [] for point in Point}
    fault_points.listen(lambda point: passed[point].append(datetime.now(UTC)))
    yield passed
    fault_points.listen(None)


async def test_rows_claimed_ahead_are_published_at_their_moment(
    site: Site, app: Application, database: Any, passed: dict[Point, list[datetime]]
) -> None:
    async with a_firer(site, DUE_NOW) as firer:
        assert isinstance(await firer.fire_once(), Idle)  # connects
        for number in range(1, TRIES + 1):
            await insert_due(database, 1, late=-SOON, prefix=f"{number}-")
            due_at = (await read_job(database, f"{number}-000001"))["next_run_at"]

            assert await firer.fire_once(due_at) == Fired(1, full=False)

            if passed[Point.PRODUCER_CLAIMED][-1] < due_at:
                break
        else:
            pytest.fail("no row was claimed before its moment")
    assert due_at <= passed[Point.PRODUCER_PUBLISHED][-1]
    assert due_at <= (await read_job(database, f"{number}-000001"))["finished_at"]
    event = (await app.hears(number))[-1]
    assert event.content["fired_at"] == event.content["due_at"]


async def test_rows_due_after_the_moment_stay_unchanged_and_come_next(site: Site, database: Any) -> None:
    await insert_due(database, 1, prefix="first-", late=-SOON)
    await insert_due(database, 1, prefix="second-", late=-timedelta(hours=1))
    first, second = [(await read_job(database, f"{name}-000001"))["next_run_at"] for name in ("first", "second")]
    async with a_firer(site, DUE_NOW) as firer:
        assert await firer.fire_once(first) == Fired(1, full=False)
        assert (await read_job(database, "second-000001"))["status"] == "pending"

        idle = await firer.fire_once(first)

        assert isinstance(idle, Idle)
        assert idle.next is not None
        assert idle.next.at == second


async def test_a_fired_claim_knows_the_next_moment(site: Site, database: Any) -> None:
    """The lane then needs no other transaction for a look ahead while the next moment comes near."""
    await insert_due(database, 1, prefix="first-")
    await insert_due(database, 1, prefix="second-", late=-timedelta(seconds=5))
    second = (await read_job(database, "second-000001"))["next_run_at"]
    async with a_firer(site, DUE_NOW) as firer:
        fired = await firer.fire_once()
    assert isinstance(fired, Fired)
    assert fired.next is not None
    assert fired.next.at == second


async def test_after_a_rule_with_more_due_occurrences_the_lane_claims_again_at_once(site: Site, database: Any) -> None:
    """The rule's other occurrences are due before the claim's moment; a look ahead finds only later ones."""
    rule = minutely(start_at="2020-01-01T00:00:00Z")
    await insert_due(database, 1, late=timedelta(minutes=2 * MAX_TURN_OCCURRENCES + 5), rule=rule)
    async with a_firer(site, OVERDUE) as firer, a_firer(site, RETRY) as retries:
        assert isinstance(await firer.fire_once(), Fired)
        assert isinstance(await firer.fire_once(), Idle), "the rule waits in the retry lane"
        fired = await retries.fire_once()
        assert isinstance(fired, Fired)
        assert fired.next is None
        assert await retries.fire_once() == Fired(1, full=False), "the remaining occurrences"
        assert (await read_job(database, "job-000001"))["retry_at"] is None, "the rule has caught up"


async def test_a_moment_that_another_producer_has_claimed_does_not_come_next(site: Site, database: Any) -> None:
    """Otherwise the producer would claim again and again until the moment comes, and find no row each time."""
    await insert_due(database, 1, late=-timedelta(seconds=5))
    due_at = (await read_job(database, "job-000001"))["next_run_at"]
    async with database.transaction():
        assert await claim_due(database, DUE_NOW, 1, due_at) is not None
        async with a_firer(site, DUE_NOW) as firer:
            idle = await firer.fire_once(due_at)
    assert isinstance(idle, Idle)
    assert idle.next is None


async def test_after_a_clock_was_set_back_claimed_rows_are_unlocked_at_once(site: Site, database: Any) -> None:
    """The moment is an hour away since the clock was set back, and a cancel would wait for the row's lock. The moment
    still comes next.
    """
    await insert_due(database, 1, late=-timedelta(hours=1))
    due_at = (await read_job(database, "job-000001"))["next_run_at"]
    async with a_firer(site, DUE_NOW) as firer:
        too_early = await firer.fire_once(due_at)
    assert isinstance(too_early, TooEarly)
    assert too_early.next.at == due_at
    row = await read_job(database, "job-000001")
    assert (row["status"], row["version"]) == ("pending", 1)


async def test_a_moment_that_passed_while_waiting_for_the_broker_counts_as_late(
    site: Site, app: Application, database: Any
) -> None:
    await insert_due(database, 1, prefix="lenient-", late=timedelta(seconds=3))
    due_at = (await read_job(database, "lenient-000001"))["next_run_at"]
    await insert_due(database, 1, prefix="strict-")
    await database.execute(
        "update jobs set misfire = 'skip', misfire_grace_seconds = 1, next_run_at = $1 where id like 'strict-%'", due_at
    )
    async with a_firer(site, DUE_NOW) as firer:
        assert await firer.fire_once(due_at) == Fired(2, full=False)
    [event] = await app.hears(1)
    assert event.content["id"] == "lenient-000001"
    fired_at = datetime.fromisoformat(event.content["fired_at"])
    assert fired_at - due_at >= timedelta(seconds=3), "the time of the publish, not the due moment"
    strict = await read_job(database, "strict-000001")
    assert (strict["status"], strict["sequence"]) == ("done", 0), "late by more than its grace"


async def test_a_producer_claims_ahead_by_itself_and_publishes_nothing_early(
    site: Site, app: Application, database: Any, passed: dict[Point, list[datetime]]
) -> None:
    count = 20
    await insert_due(database, count, late=-timedelta(seconds=1))
    await database.execute(
        "update jobs set next_run_at = next_run_at + right(id, 2)::int * interval '100 milliseconds'"
    )
    async with running_producer(site):
        events = [event.content for event in await app.hears(count)]
    # Events with one fired_at are of one claim. A busy machine may put several jobs into a claim.
    claims = {event["fired_at"]: datetime.fromisoformat(event["due_at"]) for event in sorted(events, key=_due_at)}
    published = passed[Point.PRODUCER_PUBLISHED]
    assert len(published) == len(claims)
    ahead = 0
    for at, due_at in zip(published, sorted(claims.values()), strict=True):
        assert at >= due_at
        ahead += max(claimed for claimed in passed[Point.PRODUCER_CLAIMED] if claimed <= at) < due_at
    assert ahead, "no row was claimed ahead"


def _due_at(event: dict[str, Any]) -> str:
    return str(event["due_at"])
