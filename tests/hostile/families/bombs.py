"""Rule bombs: rules that are understood and would keep a naive scheduler busy for minutes or for ever."""

from collections.abc import Iterator

from tests.hostile.case import Case, a_rule, parked, stored
from tests.unit.recurrence.test_bombs import ALL_HOURS, ALL_SECONDS, ANSWERED, NEVER, REFUSED

FREQUENCIES = ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"]
SHORT = FREQUENCIES[4:]
PLACE = {"start_at": "2025-01-01T09:00:00", "timezone": "America/New_York"}


def cases() -> Iterator[Case]:
    for what, text in {**REFUSED, **NEVER}.items():
        if what != "ten thousand dates left out":  # 160 kB, and the same as the 2,000 below
            yield parked(f"bomb: {what}", "rrule", {"rrule": text, **PLACE})
    for what, text in ANSWERED.items():
        yield stored(f"defused: {what}", {"rrule": text, **PLACE, "start_at": "2031-01-01T09:00:00"})
    for freq in FREQUENCIES:
        if freq != "WEEKLY":
            yield parked(f"30 February, {freq}, counted", "rrule",
                         a_rule(rrule=f"FREQ={freq};BYMONTH=2;BYMONTHDAY=30;COUNT=1"))  # fmt: skip
        yield parked(f"over long ago, {freq}", "rrule", a_rule(rrule=f"FREQ={freq};UNTIL=19000101T000000Z"))
        yield stored(f"an interval of a billion, {freq}", a_rule(rrule=f"FREQ={freq};INTERVAL=1000000000"))
        yield stored(f"a billion times, {freq}", a_rule(rrule=f"FREQ={freq};COUNT=1000000000"))
        yield stored(f"from 1900 on, {freq}", {"rrule": f"FREQ={freq};UNTIL=19000102T000000Z",
                                              "start_at": "1900-01-01T00:00:00Z", "misfire": "skip"})  # fmt: skip
    for freq in SHORT:
        for part, value in {
            "BYMONTH": "2",
            "BYMONTHDAY": "31",
            "BYYEARDAY": "366",
            "BYHOUR": "3",
            "BYDAY": "SU",
        }.items():
            yield stored(f"{freq} within {part}={value}", a_rule(rrule=f"FREQ={freq};{part}={value}"))
        yield stored(f"{freq} on 29 February", a_rule(rrule=f"FREQ={freq};BYMONTH=2;BYMONTHDAY=29"))
    yield from _steps_that_miss()
    yield from _much_text()


def _steps_that_miss() -> Iterator[Case]:
    """From noon in steps that never come upon what the rule waits for."""
    for what, text in {
        "an even hour, waiting for an odd one": "FREQ=HOURLY;INTERVAL=2;BYHOUR=13",
        "a day, waiting for another hour": "FREQ=HOURLY;INTERVAL=24;BYHOUR=13",
        "an hour, waiting for another minute": "FREQ=MINUTELY;INTERVAL=60;BYMINUTE=1",
        "a minute, waiting for another second": "FREQ=SECONDLY;INTERVAL=60;BYSECOND=1",
        "a week, waiting for another weekday": "FREQ=HOURLY;INTERVAL=168;BYDAY=SU",
        "a prime, for one second a year": "FREQ=SECONDLY;INTERVAL=86413;BYYEARDAY=1;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
        "seven days, waiting for another weekday": "FREQ=DAILY;INTERVAL=7;BYDAY=SU",
        "twelve months, waiting for another month": "FREQ=MONTHLY;INTERVAL=12;BYMONTH=5",
        "weeks, waiting for 366 of something": "FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=366",
    }.items():  # fmt: skip
        yield parked(f"a step of {what}", "rrule", a_rule(rrule=text))


def _much_text() -> Iterator[Case]:
    for what, text in {
        "100 kB of commas": "FREQ=DAILY;BYHOUR=" + "," * 100_000,
        "100 kB of parts": "FREQ=DAILY" + ";BYHOUR=1" * 11_000,
        "100 kB of lines": "RRULE:FREQ=DAILY\n" * 6_000,
        "30 kB of empty lines and no rule": "\n" * 30_000,
        "30 kB of folds": "RRULE:FREQ=DAILY;BYHOUR=" + "\r\n 1" * 7_000,
        "60 kB of spaces": "FREQ=" + " " * 60_000 + "DAILY",
        "2,000 RDATEs": "RDATE:" + ",".join(["20310101T000000Z"] * 2_000),
        "2,000 EXDATEs": "RRULE:FREQ=DAILY\nEXDATE:" + ",".join(["20310101"] * 2_000),
        "every second, yearly": f"FREQ=YEARLY;BYHOUR={ALL_HOURS};BYMINUTE={ALL_SECONDS};BYSECOND={ALL_SECONDS}",
        "a long name": "A" * 30_000 + "=1",
        "a long line of semicolons": ";" * 30_000,
        "a long zone": "RDATE;TZID=" + "x" * 30_000 + ":20310101T000000",
    }.items():  # fmt: skip
        yield parked(f"much text: {what}", "rrule", a_rule(rrule=text))
    yield stored("much text: 1,000 RDATEs", a_rule(rrule="RDATE:" + ",".join(["20310101T000000Z"] * 1_000)))
    yield parked("much text: a cron of 100 kB", "cron", a_rule(cron="*/1," * 25_000 + "* * * * *"))
