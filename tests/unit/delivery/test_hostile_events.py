"""Hostile events, case by case: a delivery, or a reason that names the field. The integration tests send the same
through a real broker.
"""

from delivery.events import NewDelivery, Unreadable, read_due
from tests.hostile.events import committed, generated, load
from tests.hostile.reading import received


def test_every_event_is_stored_or_unreadable_for_a_reason_that_names_the_field() -> None:
    wrong = []
    for case in load():
        result = read_due(received(case))
        match result:
            case Unreadable(errors):
                if case.field is None or not errors[0].startswith(f"{case.field}:") or len(errors[0]) > 300:
                    wrong.append(f"{case.name}: unreadable for {errors}")
            case NewDelivery():
                if case.field is not None:
                    wrong.append(f"{case.name}: stored")
    assert not wrong


def test_what_is_committed_is_what_the_code_makes() -> None:
    """After a change: python -m tests.hostile."""
    assert committed() == generated()
    assert len(load()) >= 100
    assert len({case.name for case in load()}) == len(load())
