"""Times and zones: `at`, `start_at` and `timezone`, at the edges of the calendar, of the clock and of the grammar."""

from collections.abc import Iterator

from tests.hostile.case import Case, a_moment, parked, stored

GOOD = [
    "1900-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "1999-12-31T23:59:59.999999999Z",
    "2000-02-29T12:00:00Z", "2028-02-29T12:00:00Z", "2038-01-19T03:14:07Z", "2038-01-19T03:14:08Z",
    "2106-02-07T06:28:16Z",
    "2199-12-31T23:59:59Z", "2199-12-31T23:59:59.999999Z", "2030-06-01t12:00:00z", "2030-06-01 12:00:00Z",
    "2030-06-01T12:00:00.1Z", "2030-06-01T12:00:00.123456789Z", "2030-06-01T12:00:00+00:00",
    "2030-06-01T12:00:00-00:00",
    "2030-06-01T12:00:00+14:00", "2030-06-01T12:00:00-12:00", "2030-06-01T12:00:00+05:45", "2030-06-01T12:00:00+23:59",
    "2030-06-01T12:00:00-23:59", "1900-01-01T00:00:00-05:00", "2199-12-31T23:59:59+05:00",
]  # fmt: skip
BAD = [
    " ", "now", "today", "tomorrow", "never", "infinity", "-infinity", "epoch", "null", "NaN", "0", "1893456000",
    "1893456000.5", "2030", "2030-06", "2030-06-01", "20300601", "20300601T120000Z", "2030-06-01T12", "2030-06-01T12Z",
    "2030-06-01T12:00", "2030-06-01T12:00Z", "2030-06-01T12:00:00.Z", "2030-06-01T12:00:00,5Z", "2030-06-01T12:00:00 Z",
    "2030-06-01T12:00:00.1234567890Z", "2030-06-01  12:00:00Z", " 2030-06-01T12:00:00Z", "2030-06-01T12:00:00Z ",
    "2030-06-01T12:00:00Z\n", "\ufeff2030-06-01T12:00:00Z", "2030-06-01T12:00:00ZZ", "2030-06-01T12:00:00z0",
    "2030-6-1T12:00:00Z", "2030-06-01T1:00:00Z", "2030-06-01T12:0:0Z", "30-06-01T12:00:00Z", "02030-06-01T12:00:00Z",
    "+2030-06-01T12:00:00Z", "-2030-06-01T12:00:00Z", "2030/06/01T12:00:00Z", "2030.06.01T12:00:00Z",
    "01-06-2030T12:00:00Z", "06/01/2030 12:00 PM", "2030-06-01T12:00:00 PM", "2030-06-01T12.00.00Z", "2030-W22-6",
    "2030-W22-6T12:00:00Z", "2030-152T12:00:00Z", "2030-06-01_12:00:00Z", "2030-06-01X12:00:00Z",
    "2030-00-01T12:00:00Z", "2030-13-01T12:00:00Z", "2030-06-00T12:00:00Z", "2030-06-31T12:00:00Z",
    "2030-02-29T12:00:00Z",
    "2030-02-30T12:00:00Z", "2100-02-29T12:00:00Z", "2030-06-01T24:00:00Z", "2030-06-01T25:00:00Z",
    "2030-06-01T12:60:00Z",
    "2030-06-01T12:00:60Z", "2016-12-31T23:59:60Z", "2030-06-01T12:00:61Z", "2030-06-01T99:99:99Z",
    "2030-06-01T12:00:00+24:00", "2030-06-01T12:00:00+25:00", "2030-06-01T12:00:00+0200", "2030-06-01T12:00:00+02",
    "2030-06-01T12:00:00+2:00", "2030-06-01T12:00:00+02:60", "2030-06-01T12:00:00+02:00:30",
    "2030-06-01T12:00:00+99:99",
    "2030-06-01T12:00:00−05:00", "2030-06-01T12:00:00UTC", "2030-06-01T12:00:00 UTC", "2030-06-01T12:00:00 GMT",
    "2030-06-01T12:00:00[Europe/Berlin]", "2030-06-01T12:00:00Z[Europe/Berlin]", "2030-06-01T12:00:00 Europe/Berlin",
    "Sat, 01 Jun 2030 12:00:00 GMT", "Sat Jun  1 12:00:00 2030", "１２", "２０３０-06-01T12:00:00Z",
    "٢٠٣٠-٠٦-٠١T12:00:00Z",
    "2030-06-01T12:00:00\0Z", "\0", "P1D", "PT5M", "R/2030-06-01T12:00:00Z/P1D", "2030-06-01T12:00:00Z/PT1H",
    "@1893456000",
    "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1582-10-10T00:00:00Z",
    "1899-12-31T23:59:59Z", "1900-01-01T00:00:00+00:01", "1900-01-01T00:00:00+14:00", "2200-01-01T00:00:00Z",
    "2199-12-31T23:59:59-00:01", "2199-12-31T12:00:00-14:00", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00",
    "10000-01-01T00:00:00Z", "20000-01-01T00:00:00Z", "99999999-01-01T00:00:00Z",
    "2030-06-01T12:00:00Z; drop table jobs",
    "9" * 5000, "2030-06-01T12:00:00." + "0" * 10_000 + "Z",
]  # fmt: skip
ZONES = [
    "UTC", "GMT", "Etc/UTC", "Etc/GMT+12", "Etc/GMT-14", "Europe/Berlin", "America/New_York", "Asia/Kathmandu",
    "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "America/Argentina/Buenos_Aires", "Antarctica/Troll",
    "EST5EDT", "US/Pacific", "Zulu", "Asia/Gaza", "America/St_Johns",
]  # fmt: skip
NOT_ZONES = [
    " ", "Mars/Olympus_Mons", "Europe", "Europe/", "/Europe/Berlin", "Europe/Berlin/", "Europe//Berlin", " UTC", "UTC ",
    "europe/berlin ", "Europe/Berlin\n", "UTC\0", "\0", "+02:00", "UTC+2", "GMT+2", "Z", "CEST", "PST8",
    "Europe/Börlin",
    "../../etc/passwd", "/etc/localtime", "..", ".", "./UTC", "Europe/../UTC", "~", "C:\\UTC", "posix/UTC", "right/UTC",
    "posixrules", "localtime", "Factory/", "tzdata.zi", "zone.tab", "zone1970.tab", "leapseconds", "+VERSION",
    "iso3166.tab",
    "__init__.py", "Europe/__init__.py", "America", "America/Argentina", "US", "%45urope/Berlin", "Europe\\Berlin",
    "Ｕ",
    "Europe/Berlin;America/New_York", "Europe/Berlin,UTC", "null", "None", "0", "x" * 65, "x" * 100_000, "A/" * 40,
    "<+03>-3", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT4,M3.2.0,M11.1.0", ":UTC", "Europe/Berlin?x=1",
    "file:///etc/localtime",
]  # fmt: skip
# Wall times that do not exist, or exist twice.
GAPS = [
    ("2030-03-31T02:30:00", "Europe/Berlin"), ("2030-03-10T02:00:00", "America/New_York"),
    ("2030-10-06T02:15:00", "Australia/Lord_Howe"),
    ("2011-12-30T12:00:00", "Pacific/Apia"), ("2024-03-31T02:59:59", "Europe/Berlin"),
]  # fmt: skip
FOLDS = [
    ("2030-10-27T02:30:00", "Europe/Berlin"), ("2030-11-03T01:00:00", "America/New_York"),
    ("2030-04-07T01:45:00", "Australia/Lord_Howe"),
]  # fmt: skip


def cases() -> Iterator[Case]:
    for text in GOOD:
        yield stored(f"at {text}", a_moment(at=text))
    for number, text in enumerate(BAD):
        yield parked(f"at {text[:40]!r}, {number}", "at", a_moment(at=text))
    for number, text in enumerate(BAD[::2]):
        yield parked(f"start_at {text[:40]!r}, {number}", "start_at", {"every_seconds": 60, "start_at": text})
    for text in GOOD[::3]:
        yield stored(f"start_at {text}", {"rrule": "FREQ=YEARLY;COUNT=1", "start_at": text})
    yield from _zones()
    yield from _walls()


def _zones() -> Iterator[Case]:
    for zone in ZONES:
        yield stored(f"at in {zone}", a_moment(at="2030-06-01T12:00:00", timezone=zone))
    for number, zone in enumerate(NOT_ZONES):
        yield parked(f"at in {zone[:40]!r}, {number}", "timezone", a_moment(at="2030-06-01T12:00:00", timezone=zone))
    for number, zone in enumerate(NOT_ZONES[::3]):
        yield parked(f"a rule in {zone[:40]!r}, {number}", "timezone", {"cron": "0 9 * * *", "timezone": zone})
    yield parked("an instant with a wrong zone beside it", "timezone", a_moment(timezone="Nowhere"))
    yield parked("a local at without a zone", "timezone", a_moment(at="2030-06-01T12:00:00"))
    yield parked("a local start without a zone", "timezone", {"cron": "0 9 * * *", "start_at": "2030-06-01T12:00:00"})
    yield parked("a local at and an empty zone", "timezone", a_moment(at="2030-06-01T12:00:00", timezone=""))
    yield stored("an instant with a zone beside it", a_moment(timezone="Asia/Tokyo"))


def _walls() -> Iterator[Case]:
    for wall, zone in GAPS:
        yield stored(f"a gap, {wall} in {zone}", a_moment(at=wall, timezone=zone))
        yield parked(f"a gap to be skipped, {wall} in {zone}", "at", a_moment(at=wall, timezone=zone, dst_gap="skip"))
        yield stored(
            f"a start in a gap, {wall} in {zone}",
            {"cron": "30 2 * * *", "start_at": wall, "timezone": zone, "misfire": "latest"},
        )
    for wall, zone in FOLDS:
        for fold in ("first", "last", "both"):
            yield stored(f"a fold, {fold}, {wall} in {zone}", a_moment(at=wall, timezone=zone, dst_fold=fold))
    far = {"2199-12-31T23:00:00": "America/New_York", "1900-01-01T00:00:00": "Asia/Tokyo"}
    for wall, zone in far.items():
        yield parked(f"{wall} in {zone} is another year by UTC", "at", a_moment(at=wall, timezone=zone))
        content = {"every_seconds": 60, "start_at": wall, "timezone": zone}
        yield parked(f"a start at {wall} in {zone} is another year by UTC", "start_at", content)
