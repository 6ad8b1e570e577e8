"""UNTIL, RDATE, EXDATE and DTSTART: each form in which the text can write them."""

from typing import Any

import pytest

from shared.recurrence import BadRule, RuleSpec, compile_rule, dtstart_in
from tests.unit.recurrence.reading import list_times, short, walk

BERLIN: dict[str, Any] = {"start_at": "2025-03-28T09:00:00", "timezone": "Europe/Berlin"}
NEW_YORK: dict[str, Any] = {"start_at": "2024-11-02T01:30:00", "timezone": "America/New_York"}


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        ("20250330T070000Z", ["2025-03-28 08:00", "2025-03-29 08:00", "2025-03-30 07:00"]),
        ("20250330T065959Z", ["2025-03-28 08:00", "2025-03-29 08:00"]),
        ("20250330T090000", ["2025-03-28 08:00", "2025-03-29 08:00", "2025-03-30 07:00"]),
        ("20250330T085959", ["2025-03-28 08:00", "2025-03-29 08:00"]),
        ("20250330", ["2025-03-28 08:00", "2025-03-29 08:00", "2025-03-30 07:00"]),
        ("20250328", ["2025-03-28 08:00"]),
        ("20250327", []),
    ],
)
def test_until_includes_its_moment_in_utc_in_local_time_or_all_of_its_day(until: str, expected: list[str]) -> None:
    assert list_times(rrule=f"FREQ=DAILY;UNTIL={until}", **BERLIN) == expected


def test_a_local_until_in_a_fold_ends_what_the_clock_shows() -> None:
    rule = "FREQ=DAILY;BYHOUR=1;BYMINUTE=15,30,45;UNTIL=20241103T013000"
    assert list_times(rrule=rule, dst_fold="both", **NEW_YORK) == [
        "2024-11-02 05:30",
        "2024-11-02 05:45",
        "2024-11-03 05:15",
        "2024-11-03 05:30",
        "2024-11-03 06:15",
        "2024-11-03 06:30",
    ]


def test_a_local_until_of_an_hourly_rule_ends_with_the_second_pass() -> None:
    assert list_times(
        rrule="FREQ=HOURLY;UNTIL=20241103T013000", start_at="2024-11-03T00:30:00", timezone="America/New_York"
    ) == [
        "2024-11-03 04:30",
        "2024-11-03 05:30",
        "2024-11-03 06:30",
    ]


def test_an_until_at_the_end_of_time_is_as_good_as_none() -> None:
    assert len(list_times(3, rrule="FREQ=DAILY;UNTIL=99991231T235959Z", **BERLIN)) == 3
    assert len(list_times(3, rrule="FREQ=DAILY;UNTIL=99991231", **BERLIN)) == 3
    assert list_times(3, rrule="FREQ=DAILY;UNTIL=00010101", **BERLIN) == []


def test_rdate_adds_in_every_form() -> None:
    text = (
        "RRULE:FREQ=DAILY;COUNT=1\n"
        "RDATE:20250330T120000\n"
        "RDATE:20250330T110000Z\n"
        "RDATE;TZID=America/New_York:20250331T080000\n"
        "RDATE;VALUE=DATE:20250401,20250402"
    )
    assert list_times(rrule=text, **BERLIN) == [
        "2025-03-28 08:00",
        "2025-03-30 10:00",
        "2025-03-30 11:00",
        "2025-03-31 12:00",
        "2025-04-01 07:00",
        "2025-04-02 07:00",
    ]


def test_exdate_excludes_in_every_form() -> None:
    text = (
        "RRULE:FREQ=DAILY;COUNT=8\n"
        "EXDATE:20250329T090000\n"
        "EXDATE:20250330T070000Z\n"
        "EXDATE;TZID=America/New_York:20250331T030000\n"
        "EXDATE;VALUE=DATE:20250401\n"
        "EXDATE:20250402T090001"
    )
    assert list_times(rrule=text, **BERLIN) == [
        "2025-03-28 08:00",
        "2025-04-02 07:00",
        "2025-04-03 07:00",
        "2025-04-04 07:00",
    ]


def test_rdates_alone_are_a_rule() -> None:
    assert list_times(rrule="RDATE:20250501T000000Z,20250401T000000Z,20250501T000000Z", **BERLIN) == [
        "2025-04-01 00:00",
        "2025-05-01 00:00",
    ]


def test_exdate_excludes_an_rdate_too() -> None:
    assert list_times(rrule="RDATE:20250401T090000,20250402T090000\nEXDATE;VALUE=DATE:20250401", **BERLIN) == [
        "2025-04-02 07:00"
    ]


def test_count_counts_an_excluded_occurrence_but_not_an_rdate() -> None:
    text = "RRULE:FREQ=DAILY;COUNT=4\nEXDATE:20250329T090000\nRDATE:20250327T090000,20250330T120000,20250501T090000"
    assert [(short(occurrence.at), occurrence.index) for occurrence in walk(rrule=text, **BERLIN)] == [
        ("2025-03-27 08:00", 0),
        ("2025-03-28 08:00", 1),
        ("2025-03-30 07:00", 3),
        ("2025-03-30 10:00", 3),
        ("2025-03-31 07:00", 4),
        ("2025-05-01 07:00", 4),
    ]


def test_an_rdate_that_is_an_occurrence_of_the_rule_is_one_occurrence_and_counts() -> None:
    text = "RRULE:FREQ=DAILY;COUNT=2\nRDATE:20250329T090000"
    assert [(short(r.at), r.index) for r in walk(rrule=text, **BERLIN)] == [
        ("2025-03-28 08:00", 1),
        ("2025-03-29 08:00", 2),
    ]


def test_a_local_exdate_in_a_fold_excludes_both_passes() -> None:
    text = "RRULE:FREQ=DAILY\nEXDATE:20241103T013000"
    assert list_times(2, rrule=text, dst_fold="both", **NEW_YORK) == ["2024-11-02 05:30", "2024-11-04 06:30"]


def test_an_exdate_in_a_gap_excludes_only_the_shifted_occurrence() -> None:
    text = "RRULE:FREQ=DAILY;BYHOUR=2,3;BYMINUTE=30\nEXDATE:20240310T023000"
    spec = {"start_at": "2024-03-10T00:00:00", "timezone": "America/New_York"}
    assert list_times(2, rrule=text, **spec) == ["2024-03-10 07:30", "2024-03-11 06:30"]
    text = "RRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30\nEXDATE:20240310T023000"
    assert list_times(1, rrule=text, **spec) == ["2024-03-11 06:30"]


def test_an_excluded_day_of_a_secondly_rule_is_skipped_at_once() -> None:
    text = "RRULE:FREQ=SECONDLY\nEXDATE;VALUE=DATE:20240310,20240311"
    assert list_times(2, rrule=text, start_at="2024-03-09T23:59:59", timezone="America/New_York") == [
        "2024-03-10 04:59:59",
        "2024-03-12 04:00",
    ]


def test_a_shifted_friday_stays_though_the_saturday_it_moved_to_is_excluded() -> None:
    text = "RRULE:FREQ=WEEKLY;BYDAY=FR;BYHOUR=12\nRRULE:FREQ=WEEKLY;BYDAY=SA;BYHOUR=0,12\nEXDATE;VALUE=DATE:20111231"
    assert list_times(3, start_at="2011-12-28T00:00:00", timezone="Pacific/Apia", rrule=text) == [
        "2011-12-30 22:00",
        "2012-01-05 22:00",
        "2012-01-06 10:00",
    ]


def test_several_rrules_are_merged() -> None:
    text = "RRULE:FREQ=DAILY;BYHOUR=9\nRRULE:FREQ=WEEKLY;BYDAY=SA;BYHOUR=9,10"
    assert list_times(4, rrule=text, **BERLIN) == [
        "2025-03-28 08:00",
        "2025-03-29 08:00",
        "2025-03-29 09:00",
        "2025-03-30 07:00",
    ]


@pytest.mark.parametrize(
    ("dtstart", "first"),
    [
        ("DTSTART:20250401T090000", "2025-04-01 07:00"),
        ("DTSTART:20250401T090000Z", "2025-04-01 09:00"),
        ("DTSTART;TZID=Europe/Berlin:20250401T090000", "2025-04-01 07:00"),
        ('dtstart;tzid="Europe/Berlin":20250401t090000', "2025-04-01 07:00"),
        ("DTSTART;VALUE=DATE:20250401", "2025-03-31 22:00"),
        ("DTSTART;TZID=Europe/Berlin;VALUE=DATE:20250401", "2025-03-31 22:00"),
        ("DTSTART;VALUE=DATE-TIME:20250401T090000", "2025-04-01 07:00"),
    ],
)
def test_a_dtstart_in_the_text_stands_in_place_of_start_at(dtstart: str, first: str) -> None:
    text = f"{dtstart}\nRRULE:FREQ=DAILY"
    assert dtstart_in(text)
    assert list_times(1, rrule=text, **BERLIN) == [first]


def test_the_tzid_of_dtstart_is_the_zone_of_the_rule() -> None:
    text = "DTSTART;TZID=America/New_York:20240309T023000\nRRULE:FREQ=DAILY"
    assert list_times(2, start_at="2020-01-01T00:00:00Z", rrule=text) == ["2024-03-09 07:30", "2024-03-10 07:30"]


def test_two_zones_that_disagree_are_refused() -> None:
    text = "DTSTART;TZID=America/New_York:20240309T023000\nRRULE:FREQ=DAILY"
    with pytest.raises(BadRule, match="Europe/Berlin is not America/New_York") as refused:
        compile_rule(RuleSpec(start_at="2020-01-01T00:00:00Z", timezone="Europe/Berlin", rrule=text))
    assert refused.value.field == "timezone"


def test_a_text_without_dtstart_says_so() -> None:
    assert not dtstart_in("FREQ=DAILY")
    assert not dtstart_in("RRULE:FREQ=DAILY\nEXDATE:20250101T000000")
    assert dtstart_in("RRULE:FREQ=DAILY\r\n  dtstart :20250101T000000") is False
    assert dtstart_in("RRULE:FREQ=DAILY\r\nDTSTART\r\n :20250101T000000")
