"""every_seconds: elapsed time and nothing else."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.recurrence import Occurrence, RuleSpec, compile_rule, occurrences
from tests.unit.recurrence.reading import walk
from tests.unit.recurrence.rules_at_random import repeatable


def test_an_interval_keeps_the_fraction_of_its_start_and_never_drifts() -> None:
    found = walk(3, start_at="2025-01-01T00:00:00.250001Z", every_seconds=90)
    assert [occurrence.at.isoformat() for occurrence in found] == [
        "2025-01-01T00:00:00.250001+00:00",
        "2025-01-01T00:01:30.250001+00:00",
        "2025-01-01T00:03:00.250001+00:00",
    ]
    assert [occurrence.index for occurrence in found] == [1, 2, 3]


def test_a_rule_of_rrule_or_cron_cuts_the_fraction() -> None:
    for rule in ({"rrule": "FREQ=HOURLY"}, {"cron": "* * * * *"}):
        found = compile_rule(RuleSpec(start_at="2025-01-01T00:00:00.9Z", **rule)).first()  # type: ignore[arg-type]
        assert found == Occurrence(datetime(2025, 1, 1, tzinfo=UTC), 1)


def test_an_interval_knows_no_daylight_saving() -> None:
    found = walk(3, start_at="2024-03-10T00:00:00", timezone="America/New_York", every_seconds=86_400)
    assert [occurrence.at.isoformat()[:16] for occurrence in found] == [
        "2024-03-10T05:00",
        "2024-03-11T05:00",
        "2024-03-12T05:00",
    ]


def test_a_cursor_between_two_occurrences_goes_to_the_next_on_the_grid() -> None:
    rule = compile_rule(RuleSpec(start_at="2025-01-01T00:00:00Z", every_seconds=60))
    after = rule.next_after(Occurrence(datetime(2025, 1, 1, 0, 1, 30, tzinfo=UTC), 7))
    assert after == Occurrence(datetime(2025, 1, 1, 0, 2, tzinfo=UTC), 3)
    before = rule.next_after(Occurrence(datetime(2024, 1, 1, tzinfo=UTC), 1))
    assert before == Occurrence(datetime(2025, 1, 1, tzinfo=UTC), 1)


@repeatable
@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**9))
def test_the_latest_before_is_the_last_step_below(every: int, steps: int, microseconds: int) -> None:
    start = datetime(2025, 1, 1, 0, 0, 0, 5, tzinfo=UTC)
    rule = compile_rule(RuleSpec(start_at=start.isoformat(), every_seconds=every))
    cursor = rule.first()
    assert cursor is not None
    instant = start + timedelta(seconds=every) * (steps % 1000) + timedelta(microseconds=microseconds)
    latest = rule.latest_before(cursor, instant)
    assert latest == cursor or latest.at < instant
    after = rule.next_after(latest)
    assert after is not None
    assert after.at >= instant
    assert occurrences(rule, latest.at, 1) == [after.at]
