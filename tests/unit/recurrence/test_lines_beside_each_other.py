"""Several RRULEs, and RDATE beside them: each line has the occurrences that it has alone, however hard others are."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.recurrence import BadRule, Occurrence, Rule, RuleSpec, compile_rule
from shared.recurrence.compile import compiled
from tests.unit.recurrence.reading import list_times, short, walk
from tests.unit.recurrence.rules_at_random import long_rules, repeatable, short_rules

SECOND = timedelta(seconds=1)
ENOUGH = 60
"""How many occurrences the tests compare."""

DAILY = "RRULE:FREQ=DAILY;BYHOUR=12"
NINE_EVERY_24_HOURS = "RRULE:FREQ=HOURLY;INTERVAL=24;BYHOUR=9"
"""In Sao Paulo, which gave up its summer time in 2019: the clock never shows nine at its steps again."""
LAST_AT_NINE = "2019-02-16 11:00"
MIDNIGHT_IN_40_YEARS = "RRULE:FREQ=SECONDLY;INTERVAL=86399;BYHOUR=0;BYMINUTE=0;BYSECOND=0"
"""A second earlier every day. From four in the morning that is 14,400 days, which is further than a search goes."""

HARD = [
    "FREQ=HOURLY;INTERVAL=24;BYHOUR=9",
    "FREQ=SECONDLY;INTERVAL=7200;BYMINUTE=17",
    "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
    "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=5;BYMINUTE=11;BYDAY=MO",
    "FREQ=HOURLY;INTERVAL=25;BYHOUR=3;BYMONTHDAY=29;BYMONTH=2",
]


def sao_paulo(*lines: str) -> RuleSpec:
    return RuleSpec("2019-01-15T09:00:00", "America/Sao_Paulo", rrule="\n".join(lines))


def walked(spec: RuleSpec, limit: int = ENOUGH) -> list[Occurrence]:
    """Return the occurrences of a rule up to a limit; a rule that is refused has none."""
    try:
        return walk(limit, start_at=spec.start_at, timezone=spec.timezone, rrule=spec.rrule, dst_gap=spec.dst_gap)
    except BadRule:
        return []


def instants(found: Iterable[Occurrence]) -> list[datetime]:
    return [occurrence.at for occurrence in found]


@pytest.mark.parametrize("lines", [(DAILY, NINE_EVERY_24_HOURS), (NINE_EVERY_24_HOURS, DAILY)])
def test_a_line_that_finds_nothing_more_does_not_end_the_one_beside_it(lines: tuple[str, ...]) -> None:
    alone = instants(walked(sao_paulo(DAILY), 400))
    found = instants(walked(sao_paulo(*lines), 433))
    assert len(found) == 433
    assert [at for at in found if at in set(alone)] == alone
    assert short(max(set(found) - set(alone))) == LAST_AT_NINE


def test_a_line_that_finds_nothing_more_does_not_end_the_dates_beside_it() -> None:
    found = walked(sao_paulo(NINE_EVERY_24_HOURS, "RDATE:20250101T120000Z,21500101T120000Z"))
    assert [short(at) for at in instants(found)[-3:]] == [LAST_AT_NINE, "2025-01-01 12:00", "2150-01-01 12:00"]


def test_an_occurrence_out_of_reach_is_found_when_the_others_have_led_there() -> None:
    there = datetime(2025, 1, 1, 4, tzinfo=UTC) + 14_400 * timedelta(seconds=86_399)
    yearly = [datetime(year, 1, 1, 4, tzinfo=UTC) for year in range(2025, 2085)]
    lines = f"{MIDNIGHT_IN_40_YEARS}\nRRULE:FREQ=YEARLY"
    found = walked(RuleSpec("2025-01-01T04:00:00Z", rrule=lines), 61)
    assert instants(found) == sorted([*yearly, there])
    assert [occurrence.index for occurrence in found] == list(range(1, 62))


def test_count_goes_on_from_the_number_it_had_before_the_search_ran_out() -> None:
    lines = [f"{NINE_EVERY_24_HOURS};COUNT=100", "RDATE:21000101T120000Z", "EXDATE:20190216T110000Z"]
    found = walked(sao_paulo(*lines))
    assert [(short(occurrence.at), occurrence.index) for occurrence in found[-2:]] == [
        ("2019-02-15 11:00", 32),
        ("2100-01-01 12:00", 33),
    ]


def test_counting_does_not_skip_occurrences_before_an_rdate() -> None:
    text = "RRULE:FREQ=HOURLY;INTERVAL=25;BYHOUR=9;COUNT=900\nRDATE:20800101T120000Z"
    rule = compile_rule(RuleSpec("2025-01-01T09:00:00Z", rrule=text))
    first = rule.first()
    assert first is not None
    latest = rule.latest_before(first, datetime(2100, 1, 1, tzinfo=UTC))
    assert latest.at < datetime(2080, 1, 1, tzinfo=UTC), "stopped on the way"
    assert latest.at - first.at == (latest.index - 1) * timedelta(days=25)


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ("FREQ=YEARLY", "2025-01-11 00:00:25"),
        ("FREQ=SECONDLY;INTERVAL=1799;BYMINUTE=0;BYSECOND=7", "2025-01-11 00:00:07"),
        ("FREQ=SECONDLY;INTERVAL=7200;BYMINUTE=30", "2025-01-11 00:00:25"),
    ],
)
def test_excluded_days_use_up_the_budget_of_no_line(beside: str, expected: str) -> None:
    days_off = "EXDATE;VALUE=DATE:20250107,20250108,20250109,20250110"
    rule = compile_rule(RuleSpec("2025-01-05T15:04:25Z", rrule=f"RRULE:FREQ=MINUTELY\nRRULE:{beside}\n{days_off}"))
    found = rule.next_after(Occurrence(datetime(2025, 1, 6, 23, 59, 25, tzinfo=UTC), 1))
    assert found is not None
    assert short(found.at) == expected


def test_lines_that_all_run_out_end_the_rule_and_it_can_be_told() -> None:
    rule = compile_rule(sao_paulo(NINE_EVERY_24_HOURS, "RRULE:FREQ=DAILY;UNTIL=20190120T000000Z"))
    last = Occurrence(datetime(2019, 2, 16, 11, tzinfo=UTC), 38)
    assert rule.next_after(last) is None
    assert rule.is_cut_short(last)


@pytest.mark.parametrize("lines", ["FREQ=DAILY;COUNT=3", "FREQ=DAILY;UNTIL=20190117T110000Z", "RDATE:20190117T110000Z"])
def test_a_rule_that_has_ended_is_not_cut_short(lines: str) -> None:
    rule = compile_rule(sao_paulo(lines))
    last = Occurrence(datetime(2019, 1, 17, 11, tzinfo=UTC), 3)
    assert rule.next_after(last) is None
    assert not rule.is_cut_short(last)


def test_a_rule_is_refused_only_if_none_of_its_lines_is_ever_found() -> None:
    found = list_times(2, start_at="2025-01-01T04:00:00Z", rrule=f"{MIDNIGHT_IN_40_YEARS}\nRRULE:FREQ=DAILY")
    assert found == ["2025-01-01 04:00", "2025-01-02 04:00"]
    with pytest.raises(BadRule, match="within reach"):
        list_times(start_at="2025-01-01T04:00:00Z", rrule=f"{MIDNIGHT_IN_40_YEARS}\n{MIDNIGHT_IN_40_YEARS}")


@st.composite
def specs(draw: st.DrawFn, hard: int = 4) -> tuple[RuleSpec, list[RuleSpec]]:
    """A rule of several lines, and each of its lines as a rule of its own."""
    base = draw(st.one_of(long_rules(), short_rules()))
    others = draw(st.lists(st.one_of(long_rules(), short_rules()), max_size=2))
    texts = [replace(one, start=base.start, zone=base.zone, count=None).text() for one in (base, *others)]
    texts += draw(st.lists(st.sampled_from(HARD), max_size=min(hard, 4 - len(texts)), unique=True))
    lines = [f"RRULE:{text}" for text in draw(st.permutations(texts))]
    days = draw(st.lists(st.integers(0, 9000), max_size=3))
    if days:
        lines.append("RDATE:" + ",".join(f"{base.start + timedelta(days=day):%Y%m%dT%H%M%SZ}" for day in days))
    alone = [
        RuleSpec(base.start.isoformat(), base.zone.key, rrule=line, dst_gap=base.gap)  # type: ignore[arg-type]
        for line in lines
    ]
    known = [at for one in alone for at in instants(walked(one, 20))]
    out = draw(st.lists(st.sampled_from(known), max_size=3)) if known else []
    taken_out = "".join(f"\nEXDATE:{at:%Y%m%dT%H%M%SZ}" for at in out)
    alone = [spec_with(one, f"{one.rrule}{taken_out}") for one in alone]
    return spec_with(alone[0], "\n".join(lines) + taken_out), alone


Walk = tuple[RuleSpec, list[Occurrence]]


@st.composite
def walks(draw: st.DrawFn, hard: int = 4) -> Walk:
    """A rule of several lines, and its first occurrences: two at least."""
    spec, _ = draw(specs(hard))
    found = walked(spec)
    assume(len(found) > 1)
    return spec, found


def spec_with(spec: RuleSpec, rrule: str) -> RuleSpec:
    return RuleSpec(spec.start_at, spec.timezone, rrule=rrule, dst_gap=spec.dst_gap)


def rings_at(spec: RuleSpec, at: datetime) -> bool:
    found = compile_rule(spec).next_after(Occurrence(at - SECOND, 1))
    return found is not None and found.at == at


@repeatable
@given(specs())
def test_the_occurrences_of_several_lines_are_those_of_each_line(both: tuple[RuleSpec, list[RuleSpec]]) -> None:
    together, alone = both
    found = instants(walked(together))
    end = found[-1] if len(found) == ENOUGH else datetime.max.replace(tzinfo=UTC)
    expected = {at for one in alone for at in instants(walked(one, ENOUGH + 1)) if at <= end}
    assert expected <= set(found)
    # A line alone ends when its search exceeds the budget; beside others, later occurrences of it may be found.
    for at in set(found) - expected:
        assert any(rings_at(one, at) for one in alone)
    assert found == sorted(set(found))


@repeatable
@given(walks(), st.data())
def test_what_is_next_depends_on_the_cursor_alone(walk: Walk, data: st.DataObject) -> None:
    spec, found = walk
    place = data.draw(st.integers(0, len(found) - 2))
    compiled.cache_clear()
    assert compile_rule(spec).next_after(found[place]) == found[place + 1]


@repeatable
@given(walks(), st.data())
def test_a_late_cursor_comes_to_the_last_of_the_walk(walk: Walk, data: st.DataObject) -> None:
    spec, found = walk
    cursor, latest, moment = a_late_cursor(found, data)
    assert caught_up(compile_rule(spec), cursor, moment).at == latest.at


@repeatable
@given(walks(hard=0), st.data())
def test_the_latest_of_several_lines_is_found_at_once(walk: Walk, data: st.DataObject) -> None:
    spec, found = walk
    cursor, latest, moment = a_late_cursor(found, data)
    assert compile_rule(spec).latest_before(cursor, moment).at == latest.at


def a_late_cursor(found: list[Occurrence], data: st.DataObject) -> tuple[Occurrence, Occurrence, datetime]:
    """An occurrence, a later one or the same, and a moment after that, up to the occurrence that follows."""
    place = data.draw(st.integers(0, len(found) - 2))
    later = data.draw(st.integers(place, len(found) - 2))
    wait = found[later + 1].at - found[later].at
    moment = found[later].at + max(SECOND, wait * data.draw(st.sampled_from([0.0, 0.1, 0.6, 1.0])))
    return found[place], found[later], moment


def caught_up(rule: Rule, cursor: Occurrence, moment: datetime) -> Occurrence:
    """Call `latest_before` as the producer does: again and again while it stops early and still makes progress."""
    while True:
        latest = rule.latest_before(cursor, moment)
        following = rule.next_after(latest)
        if following is None or following.at >= moment:
            return latest
        cursor = latest if latest != cursor else following
