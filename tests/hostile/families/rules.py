"""Rules that cannot be understood: RRULE part by part, the lines around it, cron and plain intervals."""

from collections.abc import Iterator
from typing import Any

from tests.hostile.case import Case, a_rule, judged, parked, stored

# Each list of an RRULE: one value too low, one too high, and whether it may count from the end.
EDGES = {
    "BYSECOND": (-1, 61, False), "BYMINUTE": (-1, 60, False), "BYHOUR": (-1, 24, False), "BYMONTH": (0, 13, False),
    "BYMONTHDAY": (0, 32, True), "BYYEARDAY": (0, 367, True), "BYWEEKNO": (0, 54, True), "BYSETPOS": (0, 367, True),
}  # fmt: skip
NOT_NUMBERS = [
    "x",
    "",
    " ",
    "1.5",
    "1e1",
    "0x1",
    "１",
    "1,",
    ",1",
    "1,,2",
    "1;",
    "--1",
    "+-1",
    "1-3",
    "*",
    "9" * 5000,
    "MO",
]
WITH = {"BYSETPOS": "FREQ=YEARLY;BYDAY=MO;", "BYWEEKNO": "FREQ=YEARLY;", "BYYEARDAY": "FREQ=YEARLY;"}

BAD_RRULES = [
    " ", "\n", ";", "=", "FREQ", "FREQ=", "=DAILY", "FREQ=DAILY;", ";FREQ=DAILY", "FREQ=DAILY;;COUNT=3", "FREQ==DAILY",
    "FREQ=DAILY;FREQ=DAILY", "FREQ=DAILY,WEEKLY", "FREQ=FORTNIGHTLY", "FREQ=DAY", "FREQ=1", "COUNT=3", "INTERVAL=2",
    "FREQ=DAILY COUNT=3", "FREQ=DAILY&COUNT=3", "FREQ:DAILY", "every day", "0 9 * * *", "RRULE", "RRULE:",
    "RRULE=FREQ=DAILY",
    "RRULE;X=1:FREQ=DAILY", "rrule:freq=", "EXRULE:FREQ=DAILY", "RRULE:FREQ=DAILY\nEXRULE:FREQ=WEEKLY", "DURATION:PT1H",
    "BEGIN:VEVENT\nRRULE:FREQ=DAILY\nEND:VEVENT", "SUMMARY:x\nRRULE:FREQ=DAILY", "FREQ=DAILY;X-NAME=1",
    "FREQ=DAILY;BYEASTER=0",
    "FREQ=DAILY;BYWEEKDAY=MO", "FREQ=DAILY;COUNT=0", "FREQ=DAILY;COUNT=-1", "FREQ=DAILY;COUNT=1.5",
    "FREQ=DAILY;COUNT=x",
    "FREQ=DAILY;COUNT=1000000001", "FREQ=DAILY;COUNT=99999999999999999999", "FREQ=DAILY;INTERVAL=0",
    "FREQ=DAILY;INTERVAL=-1",
    "FREQ=DAILY;INTERVAL=0.5", "FREQ=DAILY;INTERVAL=1000000001", "FREQ=DAILY;INTERVAL=x",
    "FREQ=DAILY;COUNT=3;UNTIL=20310101T000000Z",
    "FREQ=DAILY;UNTIL=x", "FREQ=DAILY;UNTIL=", "FREQ=DAILY;UNTIL=2031-01-01", "FREQ=DAILY;UNTIL=20311301",
    "FREQ=DAILY;UNTIL=20310230",
    "FREQ=DAILY;UNTIL=20310101T", "FREQ=DAILY;UNTIL=20310101T250000Z", "FREQ=DAILY;UNTIL=20310101T000000+0200",
    "FREQ=DAILY;UNTIL=00000101", "FREQ=DAILY;UNTIL=20200101", "FREQ=DAILY;UNTIL=20300601T115959Z",
    "FREQ=DAILY;UNTIL=99999999",
    "FREQ=DAILY;WKST=XX", "FREQ=DAILY;WKST=1", "FREQ=DAILY;WKST=MO,TU", "FREQ=DAILY;BYDAY=XX", "FREQ=DAILY;BYDAY=1",
    "FREQ=DAILY;BYDAY=",
    "FREQ=DAILY;BYDAY=MONDAY", "FREQ=DAILY;BYDAY=MO TU", "FREQ=DAILY;BYDAY=1MO", "FREQ=WEEKLY;BYDAY=1MO",
    "FREQ=MONTHLY;BYDAY=0MO",
    "FREQ=MONTHLY;BYDAY=6MO", "FREQ=MONTHLY;BYDAY=-6MO", "FREQ=YEARLY;BYDAY=54MO", "FREQ=YEARLY;BYDAY=100MO",
    "FREQ=YEARLY;BYDAY=1.5MO",
    "FREQ=YEARLY;BYMONTH=1;BYDAY=6MO", "FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO", "FREQ=MONTHLY;BYWEEKNO=1",
    "FREQ=WEEKLY;BYMONTHDAY=1",
    "FREQ=DAILY;BYYEARDAY=1", "FREQ=WEEKLY;BYYEARDAY=1", "FREQ=MONTHLY;BYYEARDAY=1", "FREQ=DAILY;BYSETPOS=1",
    "FREQ=DAILY;BYSETPOS=0",
    "FREQ=DAILY;SKIP=SIDEWAYS", "FREQ=DAILY;RSCALE=CHINESE", "FREQ=DAILY;RSCALE=", "FREQ=DAILY\0", "\0",
    "FREQ=DAILY;BYHOUR=\0",
    "FREQ=DAİLY", "ＦREQ=DAILY", "FREQ=DAILY\u2028COUNT=3", "FREQ=DAILY\nCOUNT=3", "RRULE:RRULE:FREQ=DAILY",
    "RRULE:FREQ=DAILY:x",
    "FREQ=DAILY;BYHOUR=9;BYHOUR=10", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=YEARLY;BYMONTH=4,6;BYMONTHDAY=31",
    "FREQ=MONTHLY;BYMONTHDAY=1;BYDAY=2MO", "FREQ=YEARLY;BYYEARDAY=200;BYMONTH=1",
]  # fmt: skip
BAD_LINES = [
    "RDATE:", "RDATE:x", "RDATE:20310101,x", "RDATE:2031-01-01", "RDATE;VALUE=PERIOD:20310101T000000Z/PT1H",
    "RDATE;X=1:20310101",
    "RDATE;VALUE=DATE:20310101T000000Z", "RDATE;TZID=Europe/Berlin:20310101T000000Z",
    "RDATE;TZID=Nowhere:20310101T000000",
    "RDATE;TZID=../../etc/passwd:20310101T000000", "RDATE;TZID=:20310101T000000", "RDATE:00010101T000000Z",
    "RDATE:99991231T235959Z",
    "EXDATE:20310101", "EXDATE:20310101T000000Z", "EXDATE:x\nRRULE:FREQ=DAILY",
    "EXDATE;TZID=Nowhere:20310101T000000\nRRULE:FREQ=DAILY",
    "RDATE:20310101T000000Z\nEXDATE:20310101T000000Z", "RRULE:FREQ=DAILY;COUNT=1\nEXDATE:20300601T120000Z",
    "RRULE:FREQ=DAILY;COUNT=2\nRRULE:FREQ=WEEKLY", "RRULE:FREQ=DAILY\n\nX", "RDATE",
    "RRULE:FREQ=DAILY\nRDATE;TZID=Asia/Tokyo;TZID=Nowhere:20310101T000000",
]  # fmt: skip
GOOD_RRULES = [
    "freq=daily", " FREQ=DAILY ", "FREQ = DAILY ; COUNT = 3", "RRULE:FREQ=DAILY", "rrule:freq=daily;count=3",
    "RRULE:FREQ=DA\r\n ILY",
    "FREQ=DAILY;INTERVAL=1000000000", "FREQ=DAILY;COUNT=1000000000", "FREQ=DAILY;UNTIL=99991231T235959Z",
    "FREQ=DAILY;UNTIL=20300601T120000Z",
    "FREQ=SECONDLY", "FREQ=DAILY;BYSECOND=60", "FREQ=YEARLY;BYDAY=53MO", "FREQ=YEARLY;BYYEARDAY=-366",
    "FREQ=YEARLY;BYWEEKNO=-53;BYDAY=SU",
    "FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD", "RSCALE=GREGORIAN;FREQ=YEARLY;SKIP=FORWARD", "RDATE:20310101T000000Z",
    "RDATE;VALUE=DATE:20310101",
    "RRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY\nRRULE:FREQ=MONTHLY\nRRULE:FREQ=YEARLY",
    "RDATE;TZID=\"Asia/Tokyo\":20310101T090000",
    "RRULE:FREQ=DAILY\nEXDATE:19000101,99991231", "FREQ=DAILY;BYHOUR=+9", "FREQ=DAILY;BYHOUR=009",
    "FREQ=DAILY;BYHOUR=9,9,9",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU",
]  # fmt: skip
BAD_CRONS = [
    " ", "*", "* *", "* * *", "* * * *", "* * * * * *", "* * * * * * *", "60 * * * *", "-1 * * * *", "* 24 * * *",
    "* * 0 * *",
    "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 8", "x * * * *", "* * * FOO *", "* * * * FOO", "*/0 * * * *",
    "*/-1 * * * *",
    "*/x * * * *", "5-1 * * * *", "1- * * * *", "-5 * * * *", "1,,2 * * * *", ",1 * * * *", "1, * * * *",
    "1-2-3 * * * *",
    "1/2/3 * * * *", "1.5 * * * *", "1e1 * * * *", "? * * * *", "* * ? * *", "* * 15W * *", "* * * * MON#0",
    "* * * * MON#6",
    "* * * * #1", "* * * * 1#", "* * LL * *", "H * * * *", "@", "@never", "@reboot", "@every 5m", "@ daily", "@dailyy",
    "@daily x",
    "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 9 * * *\0", "\0", "０ ９ * * *", "0 9 * * * root", "0 9 * * * /bin/true",
    "FREQ=DAILY",
    "0,9 * * * * ; ls", "99999999999999999999 * * * *", "0-99999999999 * * * *", "1," * 300 + "1 * * * *",
    "* " * 10_000, "9" * 100_000,
    "0 9 L-3 * *", "0 9 * * L", "0 9 * JANUARY *", "0 9 * * MONDAY", "~ * * * *", "0~5 * * * *", "0 9 * * 1L#2",
]  # fmt: skip
GOOD_CRONS = [
    "0 9 * * *", " 0  9\t*  *  * ", "0 9 * * MON-FRI", "0 9 * jan,DEC sun", "*/7 */5 */3 */2 *", "0 0 29 2 *",
    "0 0 L * *", "0 0 LW * *",
    "0 0 * * 5L", "0 0 * * MON#5", "0 0 * * 7", "0 0 * * 0-7", "@daily", " @DAILY ", "59 23 31 12 *", "0,0,0 9 * * *",
]  # fmt: skip
INTERVALS: dict[str, tuple[Any, str | None]] = {
    "a second": (1, None), "366 days": (366 * 86_400, None),
    "366 days and a second": (366 * 86_400 + 1, "every_seconds"),
    "nothing": (0, "every_seconds"), "less than nothing": (-5, "every_seconds"),
    "beyond 64 bits": (2**64, "every_seconds"),
}  # fmt: skip


def cases() -> Iterator[Case]:
    for part, (low, high, from_the_end) in EDGES.items():
        head = WITH.get(part, "FREQ=DAILY;")
        values = [str(low), str(high), *NOT_NUMBERS, ",".join(["1"] * 65), *([str(-high)] if from_the_end else [])]
        for value in values:
            yield parked(f"{part}={value[:30]!r}", "rrule", a_rule(rrule=f"{head}{part}={value}"))
    for number, text in enumerate(BAD_RRULES):
        yield parked(f"rrule {text[:50]!r}, {number}", "rrule", a_rule(rrule=text))
    for number, text in enumerate(BAD_LINES):
        yield parked(f"lines {text[:50]!r}, {number}", "rrule", a_rule(rrule=text))
    for number, text in enumerate(GOOD_RRULES):
        yield stored(f"a good rrule {text[:50]!r}, {number}", a_rule(rrule=text))
    for number, text in enumerate(BAD_CRONS):
        yield parked(f"cron {text[:40]!r}, {number}", "cron", a_rule(cron=text))
    for text in GOOD_CRONS:
        yield stored(f"a good cron {text!r}", a_rule(cron=text))
    for what, (seconds, field) in INTERVALS.items():
        yield judged(f"every {what}", field, a_rule(every_seconds=seconds))
    yield from _starts()


def _starts() -> Iterator[Case]:
    lines = "DTSTART:20310101T090000Z\nRRULE:FREQ=DAILY"
    yield parked("a DTSTART and a start_at", "start_at", a_rule(rrule=lines))
    yield stored("a DTSTART alone", {"rrule": lines})
    yield stored("a DTSTART in a zone", {"rrule": "DTSTART;TZID=Asia/Tokyo:20310101T090000\nRRULE:FREQ=DAILY"})
    for what, line in {
        "twice": f"DTSTART:20310101T090000Z\n{lines}", "that is none": "DTSTART:x\nRRULE:FREQ=DAILY",
        "in the year 1": "DTSTART:00010101T000000Z\nRRULE:FREQ=DAILY",
        "in the year 9999": "DTSTART:99991231T235959\nRRULE:FREQ=DAILY",
        "in no zone": "DTSTART;TZID=Nowhere:20310101T090000\nRRULE:FREQ=DAILY",
        "with nothing after it": "DTSTART:20310101T090000Z",
        "of no value": "DTSTART:\nRRULE:FREQ=DAILY",
        "in UTC and in a zone": "DTSTART;TZID=Asia/Tokyo:20310101T090000Z\nRRULE:FREQ=DAILY",
    }.items():  # fmt: skip
        yield parked(f"a DTSTART {what}", "rrule", {"rrule": line})
    other = "DTSTART;TZID=Asia/Tokyo:20310101T090000\nRRULE:FREQ=DAILY"
    yield parked("a DTSTART in one zone and a timezone", "timezone", {"rrule": other, "timezone": "Europe/Berlin"})
