"""Random rules, zones and starts for the property tests, most of them near a change of some clock."""

import os
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.unit.recurrence.slow_walk import SlowRule

# The same examples every time: a red build always means that Duebell has changed.
repeatable = settings(
    derandomize=True,
    max_examples=int(os.environ.get("EXAMPLES", "100")),  # `make check` has fewer
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

# A wall time at or near a change of the zone's offset.
CHANGES = [
    ("America/New_York", "2024-03-10T02:00:00"),
    ("America/New_York", "2024-11-03T01:00:00"),
    ("Europe/Berlin", "2025-03-30T02:00:00"),
    ("Europe/Berlin", "2025-10-26T02:00:00"),
    ("Australia/Lord_Howe", "2024-10-06T02:00:00"),
    ("Australia/Lord_Howe", "2025-04-06T01:30:00"),
    ("Asia/Beirut", "2025-03-30T00:00:00"),
    ("Asia/Beirut", "2025-10-25T23:00:00"),
    ("America/Havana", "2025-03-09T00:00:00"),
    ("America/Havana", "2025-11-02T00:00:00"),
    ("America/Santiago", "2024-09-08T00:00:00"),
    ("America/Asuncion", "2023-10-01T00:00:00"),
    ("America/Toronto", "2005-10-30T01:00:00"),
    ("America/St_Johns", "2006-10-29T00:01:00"),
    ("Pacific/Apia", "2011-12-30T00:00:00"),
    ("Pacific/Kwajalein", "1993-08-21T00:00:00"),
    ("Africa/Monrovia", "1972-01-07T00:00:00"),
    ("Europe/Dublin", "1916-10-01T02:30:00"),
    ("Asia/Pyongyang", "2018-05-04T23:30:00"),
    ("Africa/Casablanca", "2024-03-10T03:00:00"),
    ("Asia/Kathmandu", "1986-01-01T00:00:00"),
    ("UTC", "2024-02-29T00:00:00"),
    ("Asia/Kolkata", "2024-12-31T23:59:59"),
]


def some(values: range | tuple[int, ...], most: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True).map(lambda v: tuple(sorted(v)))


def both_ways(high: int) -> tuple[int, ...]:
    return (*range(-high, 0), *range(1, high + 1))


@st.composite
def starts(draw: st.DrawFn, back: int = 3) -> tuple[ZoneInfo, datetime]:
    zone, wall = draw(st.sampled_from(CHANGES))
    minutes = draw(st.one_of(st.integers(-180, 180), st.integers(-back * 1440, 1440)))
    seconds = draw(st.sampled_from([0, 0, 0, 1, 30, 59]))
    return ZoneInfo(zone), datetime.fromisoformat(wall) + timedelta(minutes=minutes, seconds=seconds)


@st.composite
def times(draw: st.DrawFn) -> dict[str, tuple[int, ...]]:
    lists = {}
    if draw(st.booleans()):
        lists["BYHOUR"] = draw(some((0, 1, 2, 3, 23, 12)))
    if draw(st.booleans()):
        lists["BYMINUTE"] = draw(some((0, 1, 15, 29, 30, 45, 59)))
    if draw(st.integers(0, 4)) == 0:
        lists["BYSECOND"] = draw(some((0, 1, 30, 59)))
    return lists


def every(days: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple((day, 0) for day in days)


WEEKDAYS = some(range(7))
Days = st.SearchStrategy[tuple[dict[str, tuple[int, ...]], tuple[tuple[int, int], ...]]]
PLAIN: Days = st.just(({}, ()))
"""Choices of days: lists by part name, and BYDAY."""
ON_WEEKDAYS: Days = WEEKDAYS.map(lambda days: ({}, every(days)))
IN_MONTHS: Days = some(range(1, 13), 8).map(lambda months: ({"BYMONTH": months}, ()))


def counted(most: int) -> st.SearchStrategy[tuple[tuple[int, int], ...]]:
    """Weekdays like 2MO and -1FR."""
    pairs = st.tuples(st.integers(0, 6), st.sampled_from(both_ways(most)))
    return st.lists(pairs, min_size=1, max_size=4, unique=True).map(tuple)


# Days that never come together are left out: dateutil would look for them to the year 9999.
CHOICES: dict[str, Days] = {
    "DAILY": st.one_of(
        PLAIN, ON_WEEKDAYS, IN_MONTHS, some(both_ways(31), 6).map(lambda days: ({"BYMONTHDAY": days}, ()))
    ),
    "WEEKLY": st.one_of(
        PLAIN,
        ON_WEEKDAYS,
        st.tuples(some(range(1, 13), 8), WEEKDAYS).map(lambda both: ({"BYMONTH": both[0]}, every(both[1]))),
    ),
    "MONTHLY": st.one_of(
        PLAIN,
        ON_WEEKDAYS,
        IN_MONTHS,
        some(both_ways(31)).map(lambda days: ({"BYMONTHDAY": days}, ())),
        counted(5).map(lambda days: ({}, days)),
    ),
    "YEARLY": st.one_of(
        PLAIN,
        IN_MONTHS,
        some(both_ways(366), 6).map(lambda days: ({"BYYEARDAY": days}, ())),
        # Week 52 and those after it, about which dateutil errs, have a test of their own.
        some(range(1, 52)).map(lambda weeks: ({"BYWEEKNO": weeks}, ())),
        counted(53).map(lambda days: ({}, days)),
        st.tuples(some(range(1, 13)), some(both_ways(28))).map(
            lambda both: ({"BYMONTH": both[0], "BYMONTHDAY": both[1]}, ())
        ),
        st.tuples(some(range(1, 13)), counted(4)).map(lambda both: ({"BYMONTH": both[0]}, both[1])),
    ),
}


@st.composite
def long_rules(draw: st.DrawFn) -> SlowRule:
    """Of a day or longer."""
    freq = draw(st.sampled_from(sorted(CHOICES)))
    zone, start = draw(starts(back={"DAILY": 40, "WEEKLY": 200, "MONTHLY": 900, "YEARLY": 2000}[freq]))
    days, byday = draw(CHOICES[freq])
    lists = {**draw(times()), **days}
    if (lists or byday) and draw(st.integers(0, 2)) == 0:
        several = freq != "DAILY" and (len(byday) > 1 or len(lists.get("BYMONTHDAY", ())) > 1)
        lists["BYSETPOS"] = draw(some((1, 2, -1, -2), 3) if several else some((1, -1), 1))
    return SlowRule(
        freq,
        start,
        zone,
        interval=draw(st.sampled_from([1, 1, 1, 2, 3, 5, 10] if freq != "YEARLY" else [1, 1, 2, 4])),
        wkst=draw(st.integers(0, 6)),
        count=draw(st.one_of(st.none(), st.integers(1, 30))),
        lists=lists,
        byday=byday,
        gap=draw(st.sampled_from([None, "shift", "skip"])),
        fold=draw(st.sampled_from([None, "first", "last", "both"])),
    )


@st.composite
def short_rules(draw: st.DrawFn) -> SlowRule:
    """Hourly, minutely and secondly, a few days long at most."""
    freq = draw(st.sampled_from(["HOURLY", "HOURLY", "MINUTELY", "SECONDLY"]))
    zone, start = draw(starts(back=1))
    lists = draw(times())
    byday = every(draw(some(range(7), 6))) if draw(st.integers(0, 3)) == 0 else ()
    if draw(st.integers(0, 5)) == 0:
        lists["BYMONTHDAY"] = draw(some(both_ways(31), 20))
    inside: set[str] = {"HOURLY": {"BYMINUTE", "BYSECOND"}, "MINUTELY": {"BYSECOND"}, "SECONDLY": set[str]()}[freq]
    if draw(st.booleans()) and inside & set(lists):
        lists["BYSETPOS"] = (draw(st.sampled_from((1, -1))),)
    interval = {
        "HOURLY": st.sampled_from([1, 1, 2, 3, 5, 24, 25]),
        "MINUTELY": st.sampled_from([1, 7, 20, 30, 45, 60, 90, 1441]),
        "SECONDLY": st.sampled_from([61, 600, 1800, 3599, 3600, 7201]),
    }[freq]
    return SlowRule(
        freq,
        start,
        zone,
        interval=draw(interval),
        wkst=0,
        count=draw(st.one_of(st.none(), st.integers(1, 60))),
        lists=lists,
        byday=byday,
        gap=draw(st.sampled_from([None, "shift", "skip"])),
        fold=draw(st.sampled_from([None, "first", "last", "both"])),
    )
