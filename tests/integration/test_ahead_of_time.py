"""Rows are claimed a little ahead of their moment, so that they ring at it: never before, and none is missed."""

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
# A busy machine may need longer than that to get to its claim.
TRIES = 200


@pytest.fixture
def passed() -> Iterator[dict[Point, list[datetime]]]:
    """When the producer was where, by the clock that it shares with Postgres here."""
    passed: dict[Point, list[datetime]] = {point: [] for point in Point}
    fault_points.listen(lambda point: passed[point].append(datetime.now(UTC)))
    yield passed
    fault_points.listen(None)


async def test_what_is_claimed_ahead_is_published_when_its_moment_has_come(
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
            pytest.fail("not one of them was claimed before its moment")
    assert due_at <= passed[Point.PRODUCER_PUBLISHED][-1]
    event = (await app.hears(number))[-1]
    assert event.content["fired_at"] == event.content["due_at"]


async def test_what_is_due_after_the_moment_is_left_alone_and_looked_forward_to(site: Site, database: Any) -> None:
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


async def test_whoever_has_fired_knows_what_comes_next(site: Site, database: Any) -> None:
    """It need not look again, while the next moment comes near."""
    await insert_due(database, 1, prefix="first-")
    await insert_due(database, 1, prefix="second-", late=-timedelta(seconds=5))
    second = (await read_job(database, "second-000001"))["next_run_at"]
    async with a_firer(site, DUE_NOW) as firer:
        fired = await firer.fire_once()
    assert isinstance(fired, Fired)
    assert fired.next is not None
    assert fired.next.at == second


async def test_whoever_has_fired_a_rule_that_has_more_to_ring_looks_again_at_once(site: Site, database: Any) -> None:
    """What is left of the rule is due before the moment of the claim, and what comes next is looked for after it."""
    rule = minutely(start_at="2020-01-01T00:00:00Z")
    await insert_due(database, 1, late=timedelta(minutes=2 * MAX_TURN_OCCURRENCES + 5), rule=rule)
    async with a_firer(site, OVERDUE) as firer, a_firer(site, RETRY) as turns:
        assert isinstance(await firer.fire_once(), Fired)
        assert isinstance(await firer.fire_once(), Idle), "its turn is over"
        fired = await turns.fire_once()
        assert isinstance(fired, Fired)
        assert fired.next is None
        assert await turns.fire_once() == Fired(1, full=False), "the rest of it"
        assert (await read_job(database, "job-000001"))["retry_at"] is None, "it keeps up"


async def test_a_moment_that_another_producer_fires_is_not_looked_forward_to_again(site: Site, database: Any) -> None:
    """It would ask again and again until the moment comes, and find nothing each time."""
    await insert_due(database, 1, late=-timedelta(seconds=5))
    due_at = (await read_job(database, "job-000001"))["next_run_at"]
    async with database.transaction():
        assert await claim_due(database, DUE_NOW, 1, due_at) is not None
        async with a_firer(site, DUE_NOW) as firer:
            idle = await firer.fire_once(due_at)
    assert isinstance(idle, Idle)
    assert idle.next is None


async def test_a_clock_that_was_set_back_keeps_nobody_waiting_for_a_claimed_row(site: Site, database: Any) -> None:
    """The moment was about to come; now it is an hour away, and a cancel would wait for the row's lock. It still comes
    next.
    """
    await insert_due(database, 1, late=-timedelta(hours=1))
    due_at = (await read_job(database, "job-000001"))["next_run_at"]
    async with a_firer(site, DUE_NOW) as firer:
        too_early = await firer.fire_once(due_at)
    assert isinstance(too_early, TooEarly)
    assert too_early.next.at == due_at
    row = await read_job(database, "job-000001")
    assert (row["status"], row["version"]) == ("pending", 1)


async def test_a_moment_that_has_passed_while_the_broker_was_waited_for_is_judged_by_the_clock(
    site: Site, app: Application, database: Any
) -> None:
    await insert_due(database, 1, prefix="patient-", late=timedelta(seconds=3))
    due_at = (await read_job(database, "patient-000001"))["next_run_at"]
    await insert_due(database, 1, prefix="strict-")
    await database.execute(
        "update jobs set misfire = 'skip', misfire_grace_seconds = 1, next_run_at = $1 where id like 'strict-%'", due_at
    )
    async with a_firer(site, DUE_NOW) as firer:
        assert await firer.fire_once(due_at) == Fired(2, full=False)
    [event] = await app.hears(1)
    assert event.content["id"] == "patient-000001"
    fired_at = datetime.fromisoformat(event.content["fired_at"])
    assert fired_at - due_at >= timedelta(seconds=3), "when it was published, not when it was meant to be"
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
    # What is fired at one moment was claimed together: one after the other, or several if the machine was busy.
    claims = {event["fired_at"]: datetime.fromisoformat(event["due_at"]) for event in sorted(events, key=_due_at)}
    published = passed[Point.PRODUCER_PUBLISHED]
    assert len(published) == len(claims)
    ahead = 0
    for at, due_at in zip(published, sorted(claims.values()), strict=True):
        assert at >= due_at
        ahead += max(claimed for claimed in passed[Point.PRODUCER_CLAIMED] if claimed <= at) < due_at
    assert ahead, "not one was claimed ahead"


def _due_at(event: dict[str, Any]) -> str:
    return str(event["due_at"])
