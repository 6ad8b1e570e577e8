"""A search has a bound; reaching it must not end a rule that is alive, stand still, or raise anything but BadRule."""

from datetime import UTC, datetime, timedelta

import pytest

from producer.decisions.plan import plan
from shared.contract.messages import Misfire
from shared.recurrence import BadRule, Occurrence, RuleSpec, compile_rule
from tests.support.builders import a_due_job
from tests.unit.recurrence.reading import list_times, walk

FRIDAY = "EXDATE;VALUE=DATE:20250418"


@pytest.mark.parametrize("part", ["BYDAY=MO", "BYMONTH=3", "BYMONTHDAY=30", "BYYEARDAY=89"])
def test_an_interval_beyond_the_calendar_ends_the_rule(part: str) -> None:
    found = walk(start_at="2026-03-30T00:00:00Z", rrule=f"FREQ=HOURLY;INTERVAL=999999999;{part}")
    assert [occurrence.at for occurrence in found] == [datetime(2026, 3, 30, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("lines", "day_off", "occurrences_a_day"),
    [
        ("RRULE:FREQ=MINUTELY;BYDAY=MO,TU,WE,TH,FR\nRRULE:FREQ=HOURLY;BYDAY=SA,SU", FRIDAY, 1440),
        ("RRULE:FREQ=MINUTELY\nRRULE:FREQ=YEARLY", FRIDAY, 1440),
        ("RRULE:FREQ=MINUTELY;INTERVAL=15\nRRULE:FREQ=YEARLY", f"{FRIDAY},20250419,20250420,20250421", 96),
        ("RRULE:FREQ=MINUTELY;COUNT=100000", f"{FRIDAY},20250419,20250420,20250421", 1440),
    ],
)
def test_days_off_do_not_end_a_rule(lines: str, day_off: str, occurrences_a_day: int) -> None:
    found = list_times(occurrences_a_day + 1, start_at="2025-04-17T00:00:00Z", rrule=f"{lines}\n{day_off}")
    days_off = len(day_off.split(","))
    back = datetime(2025, 4, 18, tzinfo=UTC) + timedelta(days=days_off)
    assert len(found) == occurrences_a_day + 1
    assert found[-1] == back.strftime("%Y-%m-%d %H:%M")


def test_more_days_off_than_can_be_searched_is_said_and_not_taken_for_the_end() -> None:
    days = ",".join(f"202504{day}" for day in range(18, 30))
    rule = compile_rule(
        RuleSpec("2025-04-17T00:00:00Z", rrule=f"RRULE:FREQ=MINUTELY;COUNT=100000\nEXDATE;VALUE=DATE:{days}")
    )
    with pytest.raises(BadRule, match="EXDATE"):
        rule.next_after(Occurrence(datetime(2025, 4, 17, 23, 59, tzinfo=UTC), 1440))


@pytest.mark.parametrize(
    ("rrule", "start"),
    [
        (
            "RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0,1;BYSECOND=0\nRRULE:FREQ=MONTHLY;BYMONTHDAY=22;BYDAY=2SA;BYSETPOS=1",
            "2026-11-10T00:00:00Z",
        ),
        ("FREQ=SECONDLY;INTERVAL=86399;BYHOUR=0;BYMINUTE=0", "1910-01-01T00:00:00Z"),
    ],
)
def test_a_late_job_gets_on_with_every_claim(rrule: str, start: str) -> None:
    spec = RuleSpec(start, rrule=rrule)
    occurrence = compile_rule(spec).first()
    assert occurrence is not None
    now = datetime(2026, 11, 16, 12, tzinfo=UTC)
    for _ in range(200):
        planned = plan(a_due_job(rule=spec.to_json(), misfire=Misfire.LATEST, occurrence=occurrence), now)
        if planned.publish_now or planned.next is None:
            break
        assert planned.next.at > occurrence.at, "stands still"
        occurrence = planned.next


def test_sunday_to_sunday_is_sunday() -> None:
    found = list_times(2, start_at="2025-01-01T00:00:00Z", cron="0 0 * * SUN-SUN")
    assert found == ["2025-01-05 00:00", "2025-01-12 00:00"]
