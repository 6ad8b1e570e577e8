"""Pause, resume and trigger: wrong values in each of their few fields."""

from collections.abc import Iterator

from tests.hostile.case import Case, parked
from tests.hostile.families.kinds import NOT_TEXT

KEYS = ("schedule.pause", "schedule.resume", "schedule.trigger")
BAD_IDS = {"empty": "", "of 201 characters": "y" * 201, "with NUL": "a\0b", "of 20,000 characters": "y" * 20_000}


def cases() -> Iterator[Case]:
    for key in KEYS:
        name = key.removeprefix("schedule.")
        # A trigger has one more field, which is right in these cases.
        rest = {"trigger_id": "t"} if name == "trigger" else {}
        yield parked(f"a {name} without an id", "id", b'{"trigger_id": "t"}' if rest else b"{}", key=key)
        yield parked(f"a {name} that is a list", "body", b'[{"id": "x"}]', key=key)
        yield parked(f"a {name} that is not JSON", "body", b"{", key=key)
        yield parked(f"a {name} with a reason", "reason", {"reason": "holidays", **rest}, key=key)
        yield parked(f"a {name} with a moment", "at", {"at": "2030-06-01T12:00:00Z", **rest}, key=key)
        yield parked(f"a {name} of null", "id", {"id": None, **rest}, key=key)
        for what, text in BAD_IDS.items():
            yield parked(f"a {name} of an id {what}", "id", {"id": text, **rest}, key=key)
        for what, value in NOT_TEXT.items():
            yield parked(f"a {name} whose id is {what}", "id", {"id": value, **rest}, key=key)
    yield parked("a trigger without a trigger_id", "trigger_id", {}, key="schedule.trigger")
    yield parked("a trigger with a topic", "topic", {"trigger_id": "t", "topic": "z"}, key="schedule.trigger")
    for what, text in BAD_IDS.items():
        yield parked(f"a trigger_id {what}", "trigger_id", {"trigger_id": text}, key="schedule.trigger")
    for what, value in NOT_TEXT.items():
        yield parked(f"a trigger_id that is {what}", "trigger_id", {"trigger_id": value}, key="schedule.trigger")
    for value in ("NaN", "1e999", "[Infinity]", '"\\ud800"'):
        body = b'{"id": "x", "trigger_id": "t", "payload": ' + value.encode() + b"}"
        yield parked(f"a trigger's payload {value}", "payload", body, key="schedule.trigger")
    big = {"trigger_id": "t", "payload": "x" * 256 * 1024}
    yield parked("a trigger's payload over the limit", "payload", big, key="schedule.trigger")
