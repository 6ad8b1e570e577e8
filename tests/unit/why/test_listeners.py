"""Which bindings of a topic exchange take a routing key."""

import pytest

from shared.why.listeners import matches


@pytest.mark.parametrize(
    ("pattern", "key", "taken"),
    [
        ("due.event.money", "due.event.money", True),
        ("due.event.money", "due.event.money.big", False),
        ("due.*.money", "due.event.money", True),
        ("due.*", "due.event.money", False),
        ("due.#", "due.event.money", True),
        ("due.#", "due", True),
        ("#", "due.event.money", True),
        ("#.money", "money", True),
        ("due.#.big", "due.event.money.big", True),
        ("due.event.m.ney", "due.event.money", False),
        ("", "due.event.money", False),
    ],
)
def test_a_binding_takes_a_key_as_rabbitmq_does(pattern: str, key: str, taken: bool) -> None:
    assert matches(pattern, key) is taken
