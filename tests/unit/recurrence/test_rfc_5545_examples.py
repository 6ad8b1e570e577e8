"""Every worked example of RFC 5545 §3.8.5.3, in New York, with the dates the RFC lists."""

import pytest

from shared.recurrence import RuleSpec, compile_rule
from tests.unit.recurrence.reading import list_times, listed

ALL_DAYS = "BYDAY=SU,MO,TU,WE,TH,FR,SA"
WORKDAYS = "BYDAY=MO,TU,WE,TH,FR"

EXAMPLES = {
    "daily for 10 occurrences": ("19970902", "FREQ=DAILY;COUNT=10", "1997 EDT: Sep 2-11"),
    "daily until December 24, 1997": (
        "19970902",
        "FREQ=DAILY;UNTIL=19971224T000000Z",
        "1997 EDT: Sep 2-30; Oct 1-25 | 1997 EST: Oct 26-31; Nov 1-30; Dec 1-23",
    ),
    "every other day": (
        "19970902",
        "FREQ=DAILY;INTERVAL=2",
        "1997 EDT: Sep 2,4,6,8,10,12,14,16,18,20,22,24,26,28,30; Oct 2,4,6,8,10,12,14,16,18,20,22,24"
        "| 1997 EST: Oct 26,28,30; Nov 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29; Dec 1,3",
    ),
    "every 10 days, 5 occurrences": ("19970902", "FREQ=DAILY;INTERVAL=10;COUNT=5", "1997 EDT: Sep 2,12,22; Oct 2,12"),
    "every day in January, for 3 years": (
        "19980101",
        f"FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;{ALL_DAYS}",
        "1998 EST: Jan 1-31 | 1999 EST: Jan 1-31 | 2000 EST: Jan 1-31",
    ),
    "every day in January, for 3 years, daily": (
        "19980101",
        "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1",
        "1998 EST: Jan 1-31 | 1999 EST: Jan 1-31 | 2000 EST: Jan 1-31",
    ),
    "weekly for 10 occurrences": (
        "19970902",
        "FREQ=WEEKLY;COUNT=10",
        "1997 EDT: Sep 2,9,16,23,30; Oct 7,14,21 | 1997 EST: Oct 28; Nov 4",
    ),
    "weekly until December 24, 1997": (
        "19970902",
        "FREQ=WEEKLY;UNTIL=19971224T000000Z",
        "1997 EDT: Sep 2,9,16,23,30; Oct 7,14,21 | 1997 EST: Oct 28; Nov 4,11,18,25; Dec 2,9,16,23",
    ),
    "every other week": (
        "19970902",
        "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
        "1997 EDT: Sep 2,16,30; Oct 14 | 1997 EST: Oct 28; Nov 11,25; Dec 9,23 | 1998 EST: Jan 6,20; Feb 3,17",
    ),
    "weekly on Tuesday and Thursday for five weeks, until": (
        "19970902",
        "FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH",
        "1997 EDT: Sep 2,4,9,11,16,18,23,25,30; Oct 2",
    ),
    "weekly on Tuesday and Thursday for five weeks, count": (
        "19970902",
        "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH",
        "1997 EDT: Sep 2,4,9,11,16,18,23,25,30; Oct 2",
    ),
    "every other week on Monday, Wednesday and Friday until December 24, 1997": (
        "19970901",
        "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
        "1997 EDT: Sep 1,3,5,15,17,19,29; Oct 1,3,13,15,17"
        "| 1997 EST: Oct 27,29,31; Nov 10,12,14,24,26,28; Dec 8,10,12,22",
    ),
    "every other week on Tuesday and Thursday, for 8 occurrences": (
        "19970902",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
        "1997 EDT: Sep 2,4,16,18,30; Oct 2,14,16",
    ),
    "monthly on the first Friday for 10 occurrences": (
        "19970905",
        "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
        "1997 EDT: Sep 5; Oct 3 | 1997 EST: Nov 7; Dec 5 | 1998 EST: Jan 2; Feb 6; Mar 6; Apr 3"
        "| 1998 EDT: May 1; Jun 5",
    ),
    "monthly on the first Friday until December 24, 1997": (
        "19970905",
        "FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR",
        "1997 EDT: Sep 5; Oct 3 | 1997 EST: Nov 7; Dec 5",
    ),
    "every other month on the first and last Sunday for 10 occurrences": (
        "19970907",
        "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
        "1997 EDT: Sep 7,28 | 1997 EST: Nov 2,30 | 1998 EST: Jan 4,25; Mar 1,29 | 1998 EDT: May 3,31",
    ),
    "monthly on the second-to-last Monday for 6 months": (
        "19970922",
        "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
        "1997 EDT: Sep 22; Oct 20 | 1997 EST: Nov 17; Dec 22 | 1998 EST: Jan 19; Feb 16",
    ),
    "monthly on the third-to-the-last day": (
        "19970928",
        "FREQ=MONTHLY;BYMONTHDAY=-3",
        "1997 EDT: Sep 28 | 1997 EST: Oct 29; Nov 28; Dec 29 | 1998 EST: Jan 29; Feb 26",
    ),
    "monthly on the 2nd and 15th for 10 occurrences": (
        "19970902",
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15",
        "1997 EDT: Sep 2,15; Oct 2,15 | 1997 EST: Nov 2,15; Dec 2,15 | 1998 EST: Jan 2,15",
    ),
    "monthly on the first and last day for 10 occurrences": (
        "19970930",
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
        "1997 EDT: Sep 30; Oct 1 | 1997 EST: Oct 31; Nov 1,30; Dec 1,31 | 1998 EST: Jan 1,31; Feb 1",
    ),
    "every 18 months on the 10th to 15th for 10 occurrences": (
        "19970910",
        "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
        "1997 EDT: Sep 10-15 | 1999 EST: Mar 10-13",
    ),
    "every Tuesday, every other month": (
        "19970902",
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        "1997 EDT: Sep 2,9,16,23,30 | 1997 EST: Nov 4,11,18,25 | 1998 EST: Jan 6,13,20,27; Mar 3,10,17,24,31",
    ),
    "yearly in June and July for 10 occurrences": (
        "19970610",
        "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
        "1997 EDT: Jun 10; Jul 10 | 1998 EDT: Jun 10; Jul 10 | 1999 EDT: Jun 10; Jul 10"
        "| 2000 EDT: Jun 10; Jul 10 | 2001 EDT: Jun 10; Jul 10",
    ),
    "every other year on January, February and March for 10 occurrences": (
        "19970310",
        "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
        "1997 EST: Mar 10 | 1999 EST: Jan 10; Feb 10; Mar 10 | 2001 EST: Jan 10; Feb 10; Mar 10"
        "| 2003 EST: Jan 10; Feb 10; Mar 10",
    ),
    "every third year on the 1st, 100th and 200th day for 10 occurrences": (
        "19970101",
        "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
        "1997 EST: Jan 1 | 1997 EDT: Apr 10; Jul 19 | 2000 EST: Jan 1 | 2000 EDT: Apr 9; Jul 18"
        "| 2003 EST: Jan 1 | 2003 EDT: Apr 10; Jul 19 | 2006 EST: Jan 1",
    ),
    "every 20th Monday of the year": (
        "19970519",
        "FREQ=YEARLY;BYDAY=20MO",
        "1997 EDT: May 19 | 1998 EDT: May 18 | 1999 EDT: May 17",
    ),
    "Monday of week number 20": (
        "19970512",
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
        "1997 EDT: May 12 | 1998 EDT: May 11 | 1999 EDT: May 17",
    ),
    "every Thursday in March": (
        "19970313",
        "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
        "1997 EST: Mar 13,20,27 | 1998 EST: Mar 5,12,19,26 | 1999 EST: Mar 4,11,18,25",
    ),
    "every Thursday, but only during June, July and August": (
        "19970605",
        "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
        "1997 EDT: Jun 5,12,19,26; Jul 3,10,17,24,31; Aug 7,14,21,28"
        "| 1998 EDT: Jun 4,11,18,25; Jul 2,9,16,23,30; Aug 6,13,20,27"
        "| 1999 EDT: Jun 3,10,17,24; Jul 1,8,15,22,29; Aug 5,12,19,26",
    ),
    "every Friday the 13th": (
        "19970902",
        "EXDATE;TZID=America/New_York:19970902T090000\nRRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        "1998 EST: Feb 13; Mar 13; Nov 13 | 1999 EDT: Aug 13 | 2000 EDT: Oct 13",
    ),
    "the first Saturday that follows the first Sunday of the month": (
        "19970913",
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "1997 EDT: Sep 13; Oct 11 | 1997 EST: Nov 8; Dec 13 | 1998 EST: Jan 10; Feb 7; Mar 7"
        "| 1998 EDT: Apr 11; May 9; Jun 13",
    ),
    "the US presidential election day": (
        "19961105",
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        "1996 EST: Nov 5 | 2000 EST: Nov 7 | 2004 EST: Nov 2",
    ),
    "the third instance of Tuesday, Wednesday or Thursday, for 3 months": (
        "19970904",
        "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
        "1997 EDT: Sep 4; Oct 7 | 1997 EST: Nov 6",
    ),
    "the second-to-last weekday of the month": (
        "19970929",
        f"FREQ=MONTHLY;{WORKDAYS};BYSETPOS=-2",
        "1997 EDT: Sep 29 | 1997 EST: Oct 30; Nov 27; Dec 30 | 1998 EST: Jan 29; Feb 26; Mar 30",
    ),
    "a week that starts on Monday": (
        "19970805",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
        "1997 EDT: Aug 5,10,19,24",
    ),
    "a week that starts on Sunday": (
        "19970805",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
        "1997 EDT: Aug 5,17,19,31",
    ),
    "an invalid date (February 30) is ignored": (
        "20070115",
        "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
        "2007 EST: Jan 15,30; Feb 15 | 2007 EDT: Mar 15,30",
    ),
}


def new_york(day: str, rule: str, limit: int) -> list[str]:
    start = f"DTSTART;TZID=America/New_York:{day}T090000"
    rule = rule if rule.startswith("EXDATE") else f"RRULE:{rule}"
    return list_times(limit, start_at="2000-01-01T00:00:00Z", rrule=f"{start}\n{rule}")


@pytest.mark.parametrize(("day", "rule", "dates"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_the_dates_are_those_the_rfc_lists(day: str, rule: str, dates: str) -> None:
    expected = listed(dates)
    ends = "COUNT" in rule or "UNTIL" in rule
    assert new_york(day, rule, 1000 if ends else len(expected)) == expected


def test_every_3_hours_from_9_to_5() -> None:
    # Erratum 3883: with the UNTIL as printed, 17:00 in UTC, the listed 15:00 in New York would be too late.
    assert new_york("19970902", "FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z", 9) == [
        "1997-09-02 13:00",
        "1997-09-02 16:00",
        "1997-09-02 19:00",
    ]
    assert new_york("19970902", "FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z", 9) == [
        "1997-09-02 13:00",
        "1997-09-02 16:00",
    ]


def test_every_15_minutes_for_6_occurrences() -> None:
    assert new_york("19970902", "FREQ=MINUTELY;INTERVAL=15;COUNT=6", 9) == [
        f"1997-09-02 {time}" for time in ("13:00", "13:15", "13:30", "13:45", "14:00", "14:15")
    ]


def test_every_hour_and_a_half_for_4_occurrences() -> None:
    assert new_york("19970902", "FREQ=MINUTELY;INTERVAL=90;COUNT=4", 9) == [
        f"1997-09-02 {time}" for time in ("13:00", "14:30", "16:00", "17:30")
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
        "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16",
    ],
)
def test_every_20_minutes_from_9_to_1640_every_day(rule: str) -> None:
    found = new_york("19970902", rule, 48)
    one_day = [f"{hour}:{minute:02}" for hour in range(13, 21) for minute in (0, 20, 40)]
    assert found == [f"1997-09-02 {time}" for time in one_day] + [f"1997-09-03 {time}" for time in one_day]


def test_a_start_that_does_not_match_is_no_occurrence() -> None:
    """By RFC 5545 such a DTSTART is an occurrence all the same; here, as in dateutil, the rule alone decides."""
    rule = compile_rule(RuleSpec(start_at="2025-01-01T09:00:00Z", rrule="FREQ=DAILY;BYDAY=MO"))
    occurrence = rule.first()
    assert occurrence is not None
    assert occurrence.at.isoformat() == "2025-01-06T09:00:00+00:00"
