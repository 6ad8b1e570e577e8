"""What is wrong with a command is said in the words of JSON: its senders write in any language."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from consumer.commands.parse import RawCommand, Refused, read_command

AT = "2030-06-01T12:00:00Z"
WEBHOOK = {"url": "https://example.com"}
DATE_TIME = "in a date and time such as 2026-07-10T09:00:00Z or 2026-07-10T09:00:00"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"id": 7}, "id: must be a string"),
        ({"id": ""}, "id: must not be empty"),
        ({"id": "x" * 201}, "id: must have at most 200 characters"),
        ({"at": 7}, "at: must be a string"),
        ({"at": "2030-06-01"}, f"at: the time of day is missing, {DATE_TIME}"),
        ({"at": "2030-06-01T09:00"}, f"at: the seconds are missing, {DATE_TIME}"),
        ({"at": "2030-06-01 09:00+02:00"}, f"at: the seconds are missing, {DATE_TIME}"),
        ({"att": AT}, "att: is not a field of this command"),
        ({"revision": "1"}, "revision: must be a whole number"),
        ({"revision": 1.5}, "revision: must be a whole number"),
        ({"revision": -1}, "revision: must be greater than or equal to 0"),
        ({"misfire": "later"}, "misfire: must be 'all', 'latest' or 'skip'"),
        ({"webhook": "https://example.com"}, "webhook: must be an object"),
        ({"webhook": [WEBHOOK]}, "webhook: must be an object"),
        ({"webhook": {}}, "webhook.url: is missing"),
        ({"webhook": {**WEBHOOK, "headers": []}}, "webhook.headers: must be an object"),
        ({"webhook": {**WEBHOOK, "timeout_seconds": "5"}}, "webhook.timeout_seconds: must be a number"),
        ({"webhook": {**WEBHOOK, "max_retries": "5"}}, "webhook.max_retries: must be a whole number"),
        ({"webhook": {**WEBHOOK, "headers": {"a": 1}}}, "webhook.headers.a: must be a string"),
        ({"dst_gap": "later"}, "dst_gap: must be 'shift' or 'skip'"),
        ({"topic": "x" * 129}, "topic: must have at most 128 characters"),
    ],
)
def test_a_mistake_is_told_in_the_words_of_json(fields: dict[str, Any], error: str) -> None:
    body = orjson.dumps({"id": "a", "at": AT, **fields})
    command = read_command(RawCommand(body, None, "schedule.request"), datetime(2030, 1, 1, tzinfo=UTC), 1000)
    assert isinstance(command, Refused)
    assert error in command.errors
    assert not any(word in text for text in command.errors for word in ("Input", "valid", "instance", "dictionary"))
