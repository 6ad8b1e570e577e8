"""Types: every field with every kind of JSON value that it does not take. Nothing is converted, nothing is guessed."""

from collections.abc import Iterator
from typing import Any

from tests.hostile.case import Case, a_moment, a_rule, parked, stored, with_webhook

TEXTS = {"a text": "x", "an empty text": ""}
BOOLEANS = {"true": True, "false": False}
NUMBERS = {"zero": 0, "one": 1, "minus one": -1, "a large number": 2**63, "a huge number": 10**40}
FRACTIONS = {"a half": 0.5, "one point nought": 1.0, "a large fraction": 1e300}
LISTS = {"an empty list": [], "a list of one": ["x"], "a list of null": [None]}
OBJECTS = {"an empty object": {}, "an object": {"a": 1}}
NOT_TEXT = {**BOOLEANS, **NUMBERS, **FRACTIONS, **LISTS, **OBJECTS}
NOT_WHOLE = {**TEXTS, "a number in a text": "5", **BOOLEANS, **FRACTIONS, **LISTS, **OBJECTS}
OUT_OF_RANGE = {"minus one": -1, "a large number": 2**63, "a huge number": 10**40}
NOT_AN_OBJECT = {**TEXTS, **BOOLEANS, **NUMBERS, **FRACTIONS, **LISTS}

REFUSED: dict[str, dict[str, Any]] = {
    "id": NOT_TEXT,
    "at": {**NOT_TEXT, **TEXTS},
    "rrule": {**NOT_TEXT, **TEXTS},
    "cron": {**NOT_TEXT, **TEXTS},
    "start_at": {**NOT_TEXT, **TEXTS},
    "timezone": {**NOT_TEXT, **TEXTS},
    "dst_gap": {**NOT_TEXT, **TEXTS, "another word": "both"},
    "dst_fold": {**NOT_TEXT, **TEXTS, "another word": "shift"},
    "topic": {**NOT_TEXT, "an empty text": ""},
    "misfire": {**NOT_TEXT, **TEXTS, "in capitals": "ALL"},
    "every_seconds": {**NOT_WHOLE, **OUT_OF_RANGE, "zero": 0, "a year and a day": 367 * 86_400},
    "misfire_grace_seconds": {**NOT_WHOLE, **OUT_OF_RANGE, "a year and a day": 367 * 86_400},
    "revision": {**NOT_WHOLE, **OUT_OF_RANGE},
    "webhook": NOT_AN_OBJECT,
}
OF_THE_WEBHOOK: dict[str, dict[str, Any]] = {
    "url": {**NOT_TEXT, **TEXTS},
    "headers": NOT_AN_OBJECT,
    "timeout_seconds": {
        **TEXTS, **BOOLEANS, **LISTS, **OBJECTS, **OUT_OF_RANGE, "zero": 0, "too little": 0.09, "too much": 120.1,
    },
    "max_retries": {**NOT_WHOLE, **OUT_OF_RANGE, "twenty-one": 21},
    "secret": {**NOT_TEXT, "an empty text": "", "its value": "whsec_abc/def+ghi=", "a path": "../secret"},
}  # fmt: skip
TAKEN: dict[str, list[Any]] = {
    "topic": ["x", "a.b.c", "A-Z_0-9", "x" * 128, ".".join("x" * 64)],
    "misfire": ["all", "latest", "skip"],
    "misfire_grace_seconds": [0, 1, 366 * 86_400],
    "revision": [0, 1, 2**63 - 1],
    "dst_gap": ["shift", "skip"],
    "dst_fold": ["first", "last", "both"],
    "timezone": ["UTC", "Europe/Berlin"],
    "webhook": [{"url": "https://example.com/"}],
}
TOPICS = [
    " ", "a b", " a", "a ", ".", "a.", ".a", "a..b", "#", "*", "a.#", "a.*", "a/b", "a:b", "é", "a\n", "\ta", "a\0b",
    "а",
    "x" * 129, "x" * 100_000, "a.b." * 40, "due.webhook.#.", "\u200b", "１", "a,b", "a;b", "%2e", "a'b", "${a}",
]  # fmt: skip


def cases() -> Iterator[Case]:
    for field, values in REFUSED.items():
        for what, value in values.items():
            yield parked(f"{field} is {what}", field, _around(field, value))
    for part, values in OF_THE_WEBHOOK.items():
        for what, value in values.items():
            blamed = "webhook.headers.a" if part == "headers" and what == "an object" else f"webhook.{part}"
            yield parked(f"webhook.{part} is {what}", blamed, with_webhook(**{part: value}))
    yield parked("webhook.headers has a number", "webhook.headers.a", with_webhook(headers={"a": 1}))
    for field, taken in TAKEN.items():
        for number, value in enumerate(taken):
            yield stored(f"{field} taken, {number}", a_moment(**{field: value}))
        yield stored(f"{field} is null", a_moment(**{field: None}))
    for field in ("rrule", "cron", "every_seconds", "start_at", "payload"):
        yield stored(f"{field} is null", a_moment(**{field: None}))
    yield parked("id is null", "id", a_moment(id=None))
    yield parked("at is null", "at", a_moment(at=None))
    yield parked("an unknown field is null", "colour", a_moment(colour=None))
    yield parked("an unknown field", "colour", a_moment(colour="red"))
    yield parked("an unknown field of the webhook", "webhook.verb", with_webhook(verb="GET"))
    yield parked("a webhook of nothing", "webhook.url", a_moment(webhook={}))
    yield parked("webhook.url is null", "webhook.url", with_webhook(url=None))
    for number, topic in enumerate(TOPICS):
        yield parked(f"topic {topic[:20]!r}, {number}", "topic", a_moment(topic=topic))
    yield from _together()


def _around(field: str, value: Any) -> dict[str, Any]:
    match field:
        case "at" | "id":
            return a_moment(**{field: value})
        case "rrule" | "cron" | "every_seconds":
            return a_rule(**{field: value})
        case "start_at":
            return {"rrule": "FREQ=DAILY", "start_at": value}
        case _:
            return a_moment(**{field: value})


def _together() -> Iterator[Case]:
    """Fields that are right alone and wrong together, or that are missing."""
    rules = {"rrule": "FREQ=DAILY", "cron": "0 9 * * *", "every_seconds": 60}
    for first, value in rules.items():
        yield parked(f"at and {first}", "at", a_moment(**{first: value}))
        for second, other in rules.items():
            if first < second:
                yield parked(f"{first} and {second}", "at", a_rule(**{first: value, second: other}))
    yield parked("all four schedules", "at", a_moment(**rules))
    yield parked("no schedule", "at", {"topic": "x"})
    yield parked("a start and nothing else", "at", a_rule())
    yield parked("at and start_at", "start_at", a_moment(start_at="2030-01-01T00:00:00Z"))
    yield parked("dst_gap with every_seconds", "dst_gap", a_rule(every_seconds=5, dst_gap="skip"))
    yield parked("dst_fold with every_seconds", "dst_fold", a_rule(every_seconds=5, dst_fold="both"))
    yield parked("everything wrong at once", "id",
                 {name: [] for name in ("id", "at", "rrule", "cron", "topic", "webhook", "revision")})  # fmt: skip
    yield parked("a cancel with a schedule", "at", a_moment(), key="schedule.cancel")
    yield stored("a cancel with a revision and a note", {"revision": 2, "note": "n" * 500}, key="schedule.cancel")
    for revision in (-1, 2**63, 1.5, True, "2"):
        yield parked(
            f"a cancel with the revision {revision!r}", "revision", {"revision": revision}, key="schedule.cancel"
        )
    for what, note in {"of 501 characters": "n" * 501, "with NUL": "a\0b", "that is a list": ["n"]}.items():
        yield parked(f"a cancel with a note {what}", "note", {"note": note}, key="schedule.cancel")
    yield parked("a request with a note", "note", a_moment(note="n"))
    yield parked("a cancel with a reason", "reason", {"reason": "paid"}, key="schedule.cancel")
    yield parked("a cancel without an id", "id", b"{}", key="schedule.cancel")
    yield parked("a cancel of a list", "id", {"id": ["a", "b"]}, key="schedule.cancel")
    yield parked("a list of cancels", "body", b'[{"id": "a"}]', key="schedule.cancel")
    yield stored("a plain cancel", {}, key="schedule.cancel")
    yield stored("a cancel by its type", {}, type="ScheduleCancel")
    yield stored("a request by its type under another key", a_moment(), type="ScheduleRequest", key="something.else")
    yield parked("the request's type on a cancel", "at", {}, type="ScheduleRequest", key="schedule.cancel")
