"""Whatever the rule, the zone and the cursor: the engine answers what the walk from DTSTART finds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, reject
from hypothesis import strategies as st

from shared.recurrence import BadRule, Occurrence, Rule, RuleSpec, compile_rule, occurrences
from shared.recurrence.compile import compiled
from tests.unit.recurrence.rules_at_random import long_rules, repeatable, short_rules
from tests.unit.recurrence.slow_walk import SlowRule

REACH = {"YEARLY": 3000, "MONTHLY": 900, "WEEKLY": 220, "DAILY": 80, "HOURLY": 5, "MINUTELY": 4, "SECONDLY": 3}


def spec_of(slow: SlowRule) -> RuleSpec:
    return RuleSpec(
        start_at=slow.start.isoformat(),
        timezone=slow.zone.key,
        rrule=slow.text(),
        dst_gap=slow.gap,  # type: ignore[arg-type]
        dst_fold=slow.fold,  # type: ignore[arg-type]
    )


def both_of(slow: SlowRule) -> tuple[Rule, list[datetime], datetime]:
    """The engine's rule, what the slow walk finds, and up to which instant that is complete."""
    horizon = slow.start + timedelta(days=REACH[slow.freq])
    sure = horizon.replace(tzinfo=UTC) - timedelta(days=2)
    try:
        expected = [at for at in slow.occurrences(horizon) if at < sure]
    except ValueError:
        # dateutil refuses steps that never meet their limits.
        expected = []
    try:
        rule = compile_rule(spec_of(slow))
        rule.first()
    except BadRule:
        assert expected == []
        reject()
    return rule, expected, sure


def walk(rule: Rule, until: datetime) -> list[Occurrence]:
    found = []
    occurrence = rule.first()
    while occurrence is not None and occurrence.at < until:
        found.append(occurrence)
        occurrence = rule.next_after(occurrence)
    return found


@repeatable
@given(st.one_of(long_rules(), short_rules()))
def test_occurrences_are_those_of_the_slow_walk_numbered_from_one(slow: SlowRule) -> None:
    rule, expected, sure = both_of(slow)
    found = walk(rule, sure)
    assert [occurrence.at for occurrence in found] == expected
    assert [occurrence.index for occurrence in found] == list(range(1, len(found) + 1))


@repeatable
@given(st.one_of(long_rules(), short_rules()), st.data())
def test_a_cursor_from_the_database_needs_nothing_but_itself(slow: SlowRule, data: st.DataObject) -> None:
    _, expected, _ = both_of(slow)
    if len(expected) < 2:
        return
    place = data.draw(st.integers(0, len(expected) - 2))
    compiled.cache_clear()
    after = compile_rule(spec_of(slow)).next_after(Occurrence(expected[place], place + 1))
    assert after == Occurrence(expected[place + 1], place + 2)


@repeatable
@given(st.one_of(long_rules(), short_rules()), st.data())
def test_the_latest_before_a_moment_is_the_last_of_the_walk(slow: SlowRule, data: st.DataObject) -> None:
    rule, expected, _ = both_of(slow)
    if not expected:
        return
    place = data.draw(st.integers(0, len(expected) - 1))
    later = data.draw(st.integers(place, len(expected) - 1))
    moment = expected[later] + timedelta(microseconds=data.draw(st.sampled_from([1, 500_000, 1_000_000])))
    wanted = max(at for at in expected if at < moment)
    cursor = Occurrence(expected[place], place + 1)
    latest = rule.latest_before(cursor, moment)
    assert latest.at == wanted
    if slow.count is not None:
        assert latest.index == expected.index(wanted) + 1
    assert (latest.index > cursor.index) == (latest.at > cursor.at)


@repeatable
@given(st.one_of(long_rules(), short_rules()), st.data())
def test_the_preview_is_a_cut_of_the_walk(slow: SlowRule, data: st.DataObject) -> None:
    rule, expected, _ = both_of(slow)
    if len(expected) < 4:
        return
    place = data.draw(st.integers(0, len(expected) - 4))
    assert occurrences(rule, expected[place], 3) == expected[place + 1 : place + 4]
    assert occurrences(rule, expected[place] - timedelta(microseconds=1), 3) == expected[place : place + 3]


@repeatable
@given(st.one_of(long_rules(), short_rules()), st.integers(9 * 365, 20 * 365))
def test_an_old_rule_is_still_on_the_grid_of_its_start(slow: SlowRule, age: int) -> None:
    changed = slow.start
    slow = replace(slow, start=changed - timedelta(days=age), count=None)
    since, horizon = changed - timedelta(days=4), changed + timedelta(days=min(900, REACH[slow.freq]))
    try:
        expected = slow.occurrences(horizon, since)
        rule = compile_rule(spec_of(slow))
        rule.first()
    except (BadRule, ValueError):
        reject()
    begin, end = since.replace(tzinfo=UTC) + timedelta(days=2), horizon.replace(tzinfo=UTC) - timedelta(days=2)
    found = []
    occurrence = rule.next_after(Occurrence(begin - timedelta(seconds=1), 5))
    while occurrence is not None and occurrence.at < end:
        found.append(occurrence.at)
        occurrence = rule.next_after(occurrence)
    assert found == [at for at in expected if begin <= at < end]
