"""Queries: wrong values in each of their few fields. A query that is refused is answered and not parked."""

from collections.abc import Iterator

from tests.hostile.case import Case, refused
from tests.hostile.families.kinds import NOT_TEXT, NOT_WHOLE, OUT_OF_RANGE
from tests.hostile.families.pause_and_trigger import BAD_IDS

KEY = "schedule.query"
TOO_MANY = {"history": 51, "upcoming": 21}


def cases() -> Iterator[Case]:
    yield refused("a query without an id", "id", b"{}", key=KEY)
    yield refused("a query that is a list", "body", b'[{"id": "x"}]', key=KEY)
    yield refused("a query that is not JSON", "body", b"{", key=KEY)
    yield refused("a query of nothing", "body", b"", key=KEY)
    yield refused("a query by its type", "id", b"{}", type="ScheduleQuery", key="something.else")
    yield refused("a query with a revision", "revision", {"revision": 1}, key=KEY)
    yield refused("a query with a moment", "at", {"at": "2030-06-01T12:00:00Z"}, key=KEY)
    yield refused("a query with a payload", "payload", {"payload": 1}, key=KEY)
    yield refused("a query of null", "id", {"id": None}, key=KEY)
    for what, text in BAD_IDS.items():
        yield refused(f"a query of an id {what}", "id", {"id": text}, key=KEY)
    for what, value in NOT_TEXT.items():
        yield refused(f"a query whose id is {what}", "id", {"id": value}, key=KEY)
    for field, too_many in TOO_MANY.items():
        for what, number in {**NOT_WHOLE, **OUT_OF_RANGE, "one too many": too_many}.items():
            yield refused(f"a query whose {field} is {what}", field, {field: number}, key=KEY)
