"""Bulks and labels: wrong values in each of their fields."""

from collections.abc import Iterator
from typing import Any

from tests.hostile.case import Case, parked
from tests.hostile.families.kinds import NOT_TEXT
from tests.hostile.families.pause_and_trigger import BAD_IDS

KEY = "schedule.bulk"
RIGHT: dict[str, Any] = {"action": "pause", "selector": {"topic": "z"}}
AT = {"at": "2030-06-01T12:00:00Z"}
BAD_LABELS: dict[str, Any] = {
    "a list": ["team"],
    "text": "team=billing",
    "a key with a space": {"te am": "x"},
    "an empty key": {"": "x"},
    "a key with =": {"a=b": "x"},
    "a key with NUL": {"a\0b": "x"},
    "a key of 64 characters": {"k" * 64: "x"},
    "17 of them": {f"k{number}": "x" for number in range(17)},
}
BAD_VALUES: dict[str, Any] = {
    "a number": 5,
    "null": None,
    "a list": ["x"],
    "empty": "",
    "of 101 characters": "x" * 101,
    "with NUL": "a\0b",
    "with a line break": "a\nb",
}


def cases() -> Iterator[Case]:
    yield parked("a bulk without an id", "id", b'{"action": "pause", "selector": {"topic": "z"}}', key=KEY)
    yield parked("a bulk that is a list", "body", b"[]", key=KEY)
    yield parked("a bulk without an action", "action", {"selector": {"topic": "z"}}, key=KEY)
    yield parked("a bulk that deletes", "action", {**RIGHT, "action": "delete"}, key=KEY)
    yield parked("a bulk whose action is a number", "action", {**RIGHT, "action": 5}, key=KEY)
    yield parked("a bulk without a selector", "selector", {"action": "pause"}, key=KEY)
    yield parked("a bulk of all jobs", "selector", {**RIGHT, "selector": {}}, key=KEY)
    yield parked("a bulk of no labels", "selector", {**RIGHT, "selector": {"labels": {}}}, key=KEY)
    yield parked("a bulk by text", "selector", {**RIGHT, "selector": "z"}, key=KEY)
    yield parked("a bulk by owner", "selector.owner", {**RIGHT, "selector": {"owner": "me"}}, key=KEY)
    yield parked("a bulk of a bad topic", "selector.topic", {**RIGHT, "selector": {"topic": "a b"}}, key=KEY)
    yield parked("a bulk that may be dry", "dry_run", {**RIGHT, "dry_run": "yes"}, key=KEY)
    yield parked("a bulk with a revision", "revision", {**RIGHT, "revision": 1}, key=KEY)
    for what, text in BAD_IDS.items():
        yield parked(f"a bulk of an id {what}", "id", {**RIGHT, "id": text}, key=KEY)
        yield parked(
            f"a bulk by a prefix {what}", "selector.id_prefix", {**RIGHT, "selector": {"id_prefix": text}}, key=KEY
        )
    for what, value in NOT_TEXT.items():
        yield parked(f"a bulk whose id is {what}", "id", {**RIGHT, "id": value}, key=KEY)
    for what, labels in BAD_LABELS.items():
        yield parked(f"labels that are {what}", "labels", {**AT, "labels": labels})
        yield parked(
            f"a bulk by labels that are {what}", "selector.labels", {**RIGHT, "selector": {"labels": labels}}, key=KEY
        )
    for what, value in BAD_VALUES.items():
        yield parked(f"a label that is {what}", "labels.team", {**AT, "labels": {"team": value}})
