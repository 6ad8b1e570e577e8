"""What `duebell why` says of delayed messages, and how their history reads."""

from datetime import UTC, timedelta
from typing import Any

from shared.contract.history import What
from shared.why.explain import explain
from shared.why.explanation import Cause
from shared.why.facts import DelayedMessage, Entry
from shared.why.timeline import describe_entry
from tests.unit.why.facts import MINUTE, NOW, an_entry, facts, running


def waiting(**values: Any) -> DelayedMessage:
    return DelayedMessage(
        **{"id": "delayed#17", "exchange": "orders", "routing_key": "paid", "due_at": NOW + MINUTE, **values}
    )


def said(*messages: DelayedMessage, **more: Any) -> tuple[Cause, str]:
    explanation = explain(facts(delayed=messages, **more), UTC)
    return explanation.cause, explanation.line


def of_message(what: What, **values: Any) -> Entry:
    details = {"delayed": 17, "exchange": "", "routing_key": "paid", **values.pop("details", {})}
    return an_entry(what, 1, details=details, **values)


def test_a_message_that_waits_for_its_moment() -> None:
    assert said(waiting(), waiting()) == (
        Cause.NOT_YET,
        "Not yet: a delayed message for the exchange orders with the routing key paid is due 2026-07-10 09:01:00 UTC, "
        "in 60 s. 1 more wait under this id.",
    )


def test_a_message_that_the_broker_does_not_take() -> None:
    refused = waiting(due_at=NOW - MINUTE, refusals=4, retry_at=NOW + MINUTE, refused_because="nothing is bound")
    assert said(refused) == (
        Cause.REFUSED,
        "A delayed message, due 2026-07-10 08:59:00 UTC, 60 s ago, is not taken by RabbitMQ for the exchange orders "
        "with the routing key paid: nothing is bound (4 in a row). It is tried again 2026-07-10 09:01:00 UTC, in 60 s. "
        "Mend that, then publish it at once: `duebell delayed release invoice-42`.",
    )


def test_a_message_that_waits_for_a_producer() -> None:
    late = waiting(due_at=NOW - MINUTE)
    assert said(late)[0] is Cause.LATE
    cause, line = said(late, processes=running("consumer"))
    assert (cause, line.endswith("and no producer runs. Start a producer.")) == (Cause.NO_PRODUCER, True)
    refused = waiting(due_at=NOW - 2 * MINUTE, refusals=1, retry_at=NOW - MINUTE, refused_because="nothing is bound")
    assert said(refused, processes=running("consumer"))[0] is Cause.NO_PRODUCER


def test_a_message_that_waits_no_more() -> None:
    fired = of_message(What.FIRED, due_at=NOW - MINUTE - timedelta(seconds=1))
    cancelled = of_message(What.CANCELLED, by_user="shop", note="paid", due_at=NOW + MINUTE)
    for entry, cause, line in (
        (fired, Cause.FIRED, "published to the exchange (default), 2026-07-10 08:59:00 UTC, 60 s ago (1 s late)."),
        (cancelled, Cause.CANCELLED, "was cancelled by shop, 2026-07-10 08:59:00 UTC, 60 s ago, with the note: paid."),
        (of_message(What.ACCEPTED), Cause.FORGOTTEN, "What is known last: accepted"),
    ):
        explanation = explain(facts(None, entry), UTC)
        assert (explanation.cause, line in explanation.line) == (cause, True), explanation.line


def test_the_history_of_a_message_reads_as_one() -> None:
    described = {
        what: describe_entry(of_message(what, due_at=NOW - MINUTE))
        for what in (What.ACCEPTED, What.RESCHEDULED, What.FIRED)
    }
    told = "delayed message 17 to (default) with key paid"
    assert described == {
        What.ACCEPTED: told, What.RESCHEDULED: f"{told}, instead of an earlier one", What.FIRED: told,
    }  # fmt: skip
    refused = of_message(What.REFUSED, details={"reason": "nothing is bound", "refusals": 2})
    assert describe_entry(refused) == "nothing is bound paid, 2 times in a row"
