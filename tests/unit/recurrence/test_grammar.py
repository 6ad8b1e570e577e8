"""How a rule may be written, and that an error names the part that is wrong."""

from typing import Any

import pytest

from shared.recurrence import BadRule, RuleSpec, compile_rule
from tests.unit.recurrence.reading import list_times

START = "2025-01-01T09:00:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=WEEKLY;BYDAY=MO,FR;COUNT=3",
        "RRULE:FREQ=WEEKLY;BYDAY=MO,FR;COUNT=3",
        "rrule:freq=weekly;byday=mo,fr;count=3",
        "COUNT=3;BYDAY=FR,MO,FR;FREQ=WEEKLY",
        "  RRULE:FREQ=WEEKLY;BYDAY=MO,FR;COUNT=3  \n\n",
        "RRULE:FREQ=WEEKLY;BYD\r\n AY=MO,F\n\tR;COUNT=3",
        "FREQ = WEEKLY ; BYDAY = MO, FR ; COUNT = 3",
        "FREQ=WEEKLY;INTERVAL=01;BYDAY=MO,FR;COUNT=+3",
    ],
)
def test_the_same_rule_written_differently(text: str) -> None:
    assert list_times(start_at=START, rrule=text) == ["2025-01-03 09:00", "2025-01-06 09:00", "2025-01-10 09:00"]


def test_a_leap_second_is_read_as_the_one_before() -> None:
    assert list_times(2, start_at=START, rrule="FREQ=MINUTELY;BYSECOND=60,59,0") == [
        "2025-01-01 09:00",
        "2025-01-01 09:00:59",
    ]


def test_new_year_is_in_the_last_week_of_the_year_before() -> None:
    # 1 January 2011 is a Saturday in week 52 of 2010; dateutil alone would say 53.
    rule = "FREQ=YEARLY;BYWEEKNO=52;BYDAY=SA;BYMONTH=1"
    assert list_times(1, start_at="2010-06-01T09:00:00Z", rrule=rule) == ["2011-01-01 09:00"]


def test_plain_and_counted_weekdays_in_one_list_are_both_meant() -> None:
    assert list_times(6, start_at=START, rrule="FREQ=MONTHLY;BYDAY=MO,1TU,-1WE") == [
        f"2025-01-{day} 09:00" for day in ("06", "07", "13", "20", "27", "29")
    ]


def test_positions_in_a_week_count_from_its_beginning_even_in_the_first_one() -> None:
    # 1 January 2025 is a Wednesday: the second workday of that week is already over.
    rule = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=2,-1"
    assert list_times(3, start_at=START, rrule=rule) == ["2025-01-03 09:00", "2025-01-07 09:00", "2025-01-10 09:00"]


def test_positions_look_at_days_and_times_together() -> None:
    rule = "FREQ=MONTHLY;BYDAY=MO;BYHOUR=8,18;BYMINUTE=0;BYSETPOS=2,-2"
    assert list_times(4, start_at=START, rrule=rule) == [
        "2025-01-06 18:00",
        "2025-01-27 08:00",
        "2025-02-03 18:00",
        "2025-02-24 08:00",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY: 32 is not between 1 and 31"),
        ("FREQ=MONTHLY;BYMONTHDAY=-32", "BYMONTHDAY: -32 is not between -31 and -1"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY: 0 is not between 1 and 31"),
        ("FREQ=MONTHLY;BYMONTHDAY=x", "BYMONTHDAY: 'X' is not a whole number"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR: 24 is not between 0 and 23"),
        ("FREQ=DAILY;BYHOUR=-1", "BYHOUR: -1 is not between 0 and 23"),
        ("FREQ=DAILY;BYMINUTE=60", "BYMINUTE: 60 is not between 0 and 59"),
        ("FREQ=DAILY;BYSECOND=61", "BYSECOND: 61 is not between 0 and 60"),
        ("FREQ=YEARLY;BYYEARDAY=367", "BYYEARDAY: 367 is not between 1 and 366"),
        ("FREQ=YEARLY;BYWEEKNO=54", "BYWEEKNO: 54 is not between 1 and 53"),
        ("FREQ=YEARLY;BYMONTH=13", "BYMONTH: 13 is not between 1 and 12"),
        ("FREQ=YEARLY;BYMONTH=", "BYMONTH: expected NAME=VALUE, found 'BYMONTH='"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=367", "BYSETPOS: 367 is not between 1 and 366"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL: 0 is not between 1 and 1000000000"),
        ("FREQ=DAILY;INTERVAL=-1", "INTERVAL: -1 is not between 1 and 1000000000"),
        ("FREQ=DAILY;COUNT=0", "COUNT: 0 is not between 1 and 1000000000"),
        ("FREQ=DAILY;COUNT=٣", "COUNT: '٣' is not a whole number"),
        ("FREQ=FORTNIGHTLY", "FREQ: FORTNIGHTLY is not one of YEARLY, MONTHLY"),
        ("INTERVAL=2", "FREQ: missing"),
        ("", "RRULE: missing"),
        ("FREQ=DAILY;FREQ=DAILY", "FREQ: given twice"),
        ("FREQ=DAILY;BYEASTER=1", "BYEASTER: not a part of a recurrence rule"),
        ("FREQ=DAILY;", "RRULE: expected NAME=VALUE, found ''"),
        ("FREQ=DAILY;COUNT", "COUNT: expected NAME=VALUE, found 'COUNT'"),
        ("FREQ=WEEKLY;BYDAY=XX", "BYDAY: 'XX' is not a weekday like MO, 1MO or -1FR"),
        ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY: 1MO counts weekdays, only with FREQ=MONTHLY or YEARLY"),
        ("FREQ=YEARLY;BYDAY=54MO", "BYDAY: 54 is not between 1 and 53"),
        ("FREQ=YEARLY;BYDAY=0MO", "BYDAY: 0 is not between 1 and 53"),
        ("FREQ=MONTHLY;BYDAY=6MO", "BYDAY: 6MO, but a month has at most five of a weekday"),
        ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO", "BYDAY: 1MO counts weekdays, not together with BYWEEKNO"),
        ("FREQ=WEEKLY;WKST=XX", "WKST: XX is not one of MO, TU, WE, TH, FR, SA, SU"),
        ("FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO: only with FREQ=YEARLY, not MONTHLY"),
        ("FREQ=MONTHLY;BYYEARDAY=1", "BYYEARDAY: not with FREQ=MONTHLY"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY: not with FREQ=WEEKLY"),
        ("FREQ=DAILY;COUNT=1;UNTIL=20250101", "UNTIL: not together with COUNT"),
        ("FREQ=DAILY;UNTIL=20250230", "UNTIL: '20250230' is not a date or date-time"),
        ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL: 'TOMORROW' is not a date or date-time"),
        ("FREQ=DAILY;BYSETPOS=1", "BYSETPOS: only together with another BY part"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=366", "BYSETPOS: 366, but MONTHLY has at most 5 to choose from"),
        ("FREQ=WEEKLY;BYMONTH=2;BYSETPOS=2", "BYSETPOS: 2, but WEEKLY has at most 1 to choose from"),
        ("FREQ=HOURLY;BYMINUTE=1,2;BYSETPOS=3", "BYSETPOS: 3, but HOURLY has at most 2 to choose from"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "BYMONTHDAY: no month of BYMONTH has a day 30"),
        ("FREQ=YEARLY;SKIP=SIDEWAYS", "SKIP: SIDEWAYS is not one of OMIT, BACKWARD, FORWARD"),
        ("FREQ=YEARLY;RSCALE=HEBREW", "RSCALE: HEBREW is not one of GREGORIAN"),
        ("FREQ=MONTHLY;BYMONTHDAY=31;BYDAY=1MO;SKIP=FORWARD", "SKIP: not together with BYDAY=1MO"),
        ("RRULE:FREQ=DAILY\nEXRULE:FREQ=WEEKLY", "EXRULE: not supported"),
        ("RRULE:FREQ=DAILY\nSUMMARY:Tea", "SUMMARY: not one of DTSTART, RRULE, RDATE, EXDATE"),
        ("RRULE;X-A=1:FREQ=DAILY", "RRULE: has no parameter X-A=1"),
        ("RRULE:FREQ=DAILY\nRDATE;VALUE=PERIOD:20250101T000000Z/PT1H", "RDATE: VALUE=PERIOD is not supported"),
        ("RRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:20250101T000000Z", "EXDATE: VALUE=DATE, but a time is given"),
        ("DTSTART;TZID=Europe/Berlin:20250101T000000Z\nRRULE:FREQ=DAILY", "DTSTART: a time in UTC has no TZID"),
        ("RRULE:FREQ=DAILY\nEXDATE:", "EXDATE: '' is not a date or date-time"),
        ("RRULE:FREQ=DAILY\nEXDATE;TZID=Mars/Base:20250101T000000", "'Mars/Base' is not an IANA time zone"),
        ("DTSTART:20250101T000000\nDTSTART:20250101T000000\nRRULE:FREQ=DAILY", "DTSTART: given more than once"),
        ("DTSTART:25000101T000000\nRRULE:FREQ=DAILY", "DTSTART: 2500 is not between 1900 and 2199"),
        ("RRULE:FREQ=DAILY;COUNT=2\nRRULE:FREQ=WEEKLY", "COUNT: only where there is a single RRULE"),
        ("DTSTART:20250101T000000Z", "RRULE: missing"),
    ],
)
def test_an_error_in_the_text_names_the_part(text: str, message: str) -> None:
    with pytest.raises(BadRule) as refused:
        compile_rule(RuleSpec(start_at=START, rrule=text))
    assert str(refused.value).startswith(message) or message in str(refused.value)
    assert refused.value.field == "rrule"


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"rrule": "FREQ=DAILY", "start_at": "yesterday"}, "start_at", "start_at: 'yesterday' is not a date and time"),
        ({"rrule": "FREQ=DAILY", "start_at": "2025-02-30T00:00:00Z"}, "start_at", "is not a real date and time"),
        ({"rrule": "FREQ=DAILY", "start_at": "2025-W01-1"}, "start_at", "is not a date and time"),
        (
            {"rrule": "FREQ=DAILY", "start_at": "1899-12-31T00:00:00Z"},
            "start_at",
            "year 1899 is out of range, 1900 to 2199",
        ),
        (
            {"rrule": "FREQ=DAILY", "start_at": "2200-01-01T00:00:00Z"},
            "start_at",
            "year 2200 is out of range, 1900 to 2199",
        ),
        ({"rrule": "FREQ=DAILY", "start_at": "0001-01-01T00:00:00+14:00"}, "start_at", "year 1 is out of range"),
        ({"rrule": "FREQ=DAILY", "timezone": "Mars/Olympus"}, "timezone", "'Mars/Olympus' is not an IANA time zone"),
        ({"rrule": "FREQ=DAILY", "timezone": "Berlin"}, "timezone", "time zone; did you mean Europe/Berlin?"),
        ({"rrule": "FREQ=DAILY", "timezone": "Europe/Berln"}, "timezone", "time zone; did you mean Europe/Berlin?"),
        ({"rrule": "FREQ=DAILY", "timezone": "New York"}, "timezone", "time zone; did you mean America/New_York?"),
        ({"rrule": "FREQ=DAILY", "timezone": "../../etc/passwd"}, "timezone", "is not an IANA time zone"),
        ({"rrule": "FREQ=DAILY", "timezone": "America"}, "timezone", "is not an IANA time zone"),
        ({"rrule": "FREQ=DAILY", "timezone": ""}, "timezone", "is not an IANA time zone"),
        ({"rrule": "FREQ=DAILY", "timezone": "right/UTC"}, "timezone", "is not an IANA time zone"),
        ({"rrule": "FREQ=DAILY", "dst_gap": "jump"}, "dst_gap", "dst_gap: 'jump' is not one of shift, skip"),
        ({"rrule": "FREQ=DAILY", "dst_fold": "twice"}, "dst_fold", "dst_fold: 'twice' is not one of first, last, both"),
        ({"every_seconds": 60, "dst_fold": "both"}, "dst_fold", "neither gaps nor folds"),
        ({"every_seconds": 0}, "every_seconds", "every_seconds: 0 is not between 1 and"),
        ({"every_seconds": True}, "every_seconds", "every_seconds: True is not between"),
        ({"every_seconds": 10**12}, "every_seconds", "is not between 1 and"),
        ({"cron": "* * * *"}, "cron", "expected the five fields"),
        ({}, "rrule", "exactly one of rrule, cron and every_seconds"),
        ({"rrule": "FREQ=DAILY", "cron": "* * * * *"}, "cron", "exactly one of"),
    ],
)
def test_an_error_outside_the_text_names_its_field(spec: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(BadRule) as refused:
        compile_rule(RuleSpec(**({"start_at": START} | spec)))
    assert message in str(refused.value)
    assert refused.value.field == field


def test_a_spec_survives_json() -> None:
    spec = RuleSpec(start_at=START, timezone="Europe/Berlin", cron="0 9 * * *", dst_fold="last")
    assert spec.to_json() == (
        '{"start_at":"2025-01-01T09:00:00Z","timezone":"Europe/Berlin","cron":"0 9 * * *","dst_fold":"last"}'
    )
    assert RuleSpec.from_json(spec.to_json()) == spec
    assert hash(RuleSpec.from_json(spec.to_json())) == hash(spec)


def test_the_same_spec_is_compiled_once() -> None:
    spec = RuleSpec(start_at=START, rrule="FREQ=DAILY")
    assert compile_rule(spec) is compile_rule(RuleSpec.from_json(spec.to_json()))


def test_a_rule_ends_with_the_year_2199() -> None:
    assert list_times(5, start_at="2199-12-30T09:00:00Z", rrule="FREQ=DAILY") == [
        "2199-12-30 09:00",
        "2199-12-31 09:00",
    ]
    assert list_times(5, start_at="2199-12-30T09:00:00Z", cron="0 9 * * *") == ["2199-12-30 09:00", "2199-12-31 09:00"]
    assert list_times(5, start_at="2199-12-31T22:00:00Z", rrule="FREQ=HOURLY") == [
        "2199-12-31 22:00",
        "2199-12-31 23:00",
    ]
    assert list_times(5, start_at="2199-12-31T22:00:00Z", every_seconds=3600) == [
        "2199-12-31 22:00",
        "2199-12-31 23:00",
    ]


def test_a_rule_can_begin_in_1900() -> None:
    assert list_times(2, start_at="1900-01-01T00:00:00Z", rrule="FREQ=YEARLY") == [
        "1900-01-01 00:00",
        "1901-01-01 00:00",
    ]
