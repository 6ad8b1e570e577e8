from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

from shared.contract.fields import idempotency_key

AT = datetime(2030, 6, 1, 12, tzinfo=UTC)


def test_the_key_is_fixed_for_ever() -> None:
    """Receivers keep keys: a change here would make them see old occurrences as new."""
    assert idempotency_key("invoice-42", AT, "invoices.reminder") == "event-133d3c353b0cd657146b12c5be16f88b"
    assert idempotency_key("invoice-42", AT, "invoices.reminder", "again") == "event-0f5aa3307fe5c11b1eac031ec2d09396"
    for life in (0, 1):
        assert idempotency_key("a", AT, "t", life=life) == idempotency_key("a", AT, "t")
        assert idempotency_key("a", AT, "t", "x", life) == idempotency_key("a", AT, "t", "x")


def test_the_key_of_a_later_life_has_the_place_of_the_trigger_and_the_life() -> None:
    for trigger_id, life, text in (
        (None, 2, "a\x002030-06-01T12:00:00Z\0t\0\x002"),
        ("x", 10, "a\x002030-06-01T12:00:00Z\0t\0x\x0010"),
    ):
        wanted = "event-" + sha256(text.encode()).hexdigest()[:32]
        assert idempotency_key("a", AT, "t", trigger_id, life) == wanted


def test_the_key_is_the_same_for_the_same_instant_in_another_zone() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert idempotency_key("a", AT, "t") == idempotency_key("a", elsewhere, "t")


def test_every_part_counts_and_parts_do_not_run_into_each_other() -> None:
    keys = {
        idempotency_key("a", AT, "t"),
        idempotency_key("b", AT, "t"),
        idempotency_key("a", AT + timedelta(microseconds=1), "t"),
        idempotency_key("a", AT, "u"),
        idempotency_key("a-2030-06-01T12:00:00Z", AT, "t"),
        idempotency_key("a", AT, "t", "x"),
        idempotency_key("a", AT, "t", "y"),
        idempotency_key("a", AT, "t", life=2),
        idempotency_key("a", AT, "t", life=3),
        idempotency_key("a", AT, "t", "2"),
        idempotency_key("a", AT, "t", "x", life=2),
        idempotency_key("a", AT, "tx"),
    }
    assert len(keys) == 12
