"""Each cause, and the sentence that a reader sees first."""

from datetime import UTC, timedelta

from shared.contract.history import What
from shared.contract.job_status import JobStatus
from shared.why.explain import explain
from shared.why.explanation import Cause
from shared.why.facts import Facts, Listener
from shared.why.timeline import describe_entry
from tests.unit.why.facts import (
    MINUTE,
    NOW,
    a_delivery,
    a_done_job,
    a_firing,
    a_job,
    an_entry,
    an_open_delivery,
    facts,
    running,
)

HOOK = "https://example.com/hook"
FIRED = "Fired 2026-07-10 08:59:00.012 UTC, 60 s ago (12 ms late)."


def line(given: Facts) -> tuple[Cause, str]:
    explanation = explain(given, UTC)
    return explanation.cause, explanation.line


def test_times_are_told_by_the_clock_of_the_rule_unless_the_reader_has_a_zone() -> None:
    given = facts(a_job(timezone="Asia/Tokyo"))
    assert "JST" in explain(given, UTC).line
    assert "UTC" in explain(given, UTC, by_rules_clock=False).line


def test_an_id_that_no_command_has_named() -> None:
    assert line(facts()) == (
        Cause.NEVER_HEARD,
        "Duebell knows no id invoice-42: no command has named it, or it ended and its retention is over. Look for a "
        "part of it: `duebell list --state all --search invoice-42`; or for a message that could not be read: "
        "`duebell parked list`.",
    )


def test_an_id_that_retention_has_deleted() -> None:
    assert line(facts(None, an_entry(What.FIRED, 60))) == (
        Cause.FORGOTTEN,
        "The job has ended and its row is deleted. What is known of it last: fired, 2026-07-10 08:00:00 UTC, 60 min "
        "ago. The id is free: schedule it again.",
    )


def test_an_id_of_a_bulk_is_not_taken_for_that_of_a_job_that_has_ended() -> None:
    details = {"action": "pause", "selector": {"topic": "money"}, "matched": 4, "changed": 3}
    assert line(facts(None, an_entry(What.BULK, app_id="shop", details=details))) == (
        Cause.BULK,
        "This is the id of a bulk, not of a job: pause of topic money: 3 jobs changed, 2026-07-10 08:59:00 UTC, 60 s "
        "ago. It came from shop.",
    )


def test_a_rejected_request_names_the_field_and_where_the_message_is() -> None:
    entry = an_entry(What.REJECTED, by_user="shop", details={"errors": ["rrule: FREQ=NEVER is not a frequency"]})
    assert line(facts(None, entry)) == (
        Cause.REJECTED,
        "The last message was rejected: rrule: FREQ=NEVER is not a frequency. It came from shop, 2026-07-10 08:59:00 "
        "UTC, 60 s ago. Send it again, mended. The message as it came is parked: `duebell parked list --job "
        "invoice-42`.",
    )


def test_a_command_of_another_user_than_the_owner() -> None:
    details = {"errors": ["user_id: the job belongs to another user"], "command": "cancel"}
    entry = an_entry(What.REJECTED, by_user="shop", app_id="cart", details=details)
    assert line(facts(a_job(owner="billing"), entry)) == (
        Cause.NOT_THE_OWNER,
        "The last cancel was rejected: user_id: the job belongs to another user. It came from cart as shop, 2026-07-10 "
        "08:59:00 UTC, 60 s ago. The job stands as before: pending. Its owner is the AMQP user billing. Send it as the "
        "owner, or add shop to OPERATOR_USERS of the consumers.",
    )


def test_a_command_that_changed_nothing_before_the_last_ring_is_not_what_matters() -> None:
    rejected = an_entry(What.REJECTED, 5, details={"errors": ["cron: six fields"]})
    duplicate = an_entry(What.DUPLICATE, 5, revision=1, details={"errors": ["revision: 1 is in use"]})
    for entry in (rejected, duplicate):
        assert line(facts(a_done_job(), entry))[0] is Cause.FIRED, "HISTORY=changes does not tell of the ring"


def test_a_command_that_came_when_the_job_had_ended_is_not_said_to_be_parked() -> None:
    details = {"errors": ["id: the cancel came late, the job is done"], "command": "cancel", "parked": False}
    late = an_entry(What.REJECTED, 0.5, app_id="log-in", details=details)
    assert line(facts(a_done_job(), late, a_firing())) == (
        Cause.TOO_LATE,
        "The last cancel was rejected: id: the cancel came late, the job is done. It came from log-in, 2026-07-10 "
        f"08:59:30 UTC, 30 s ago. {FIRED} RabbitMQ put it into at least one queue. To use the id again, schedule it "
        "with a revision higher than 1.",
    )
    unheard = an_entry(What.UNROUTED, sequence=1, details={"routing_key": "due.event.mony.due"})
    assert line(facts(a_done_job(), late, unheard))[1].endswith("`duebell unrouted resend --job invoice-42`.")
    assert line(facts(None, late))[1].endswith("The id is free: schedule it again.")


def test_a_request_that_a_cancel_has_overtaken() -> None:
    late = an_entry(What.DUPLICATE, 1, revision=1, by_user="shop", details={"errors": ["id: the job is cancelled"]})
    closed = an_entry(What.CLOSED, 2, revision=1, by_user="shop")
    job = a_job(status=JobStatus.CANCELLED, life=0, next_run_at=None, finished_at=NOW - 2 * MINUTE)
    assert line(facts(job, late, closed)) == (
        Cause.OVERTAKEN,
        "Overtaken by a cancel: shop closed the revisions up to 1, 2026-07-10 08:58:00 UTC, 2 min ago. The request "
        "with revision 1 came after it, 2026-07-10 08:59:00 UTC, 60 s ago, and changed nothing. Send it with a "
        "revision higher than 1.",
    )


def test_a_cancel_before_any_request() -> None:
    job = a_job(status=JobStatus.CANCELLED, life=0, next_run_at=None, finished_at=NOW - MINUTE)
    cause, says = line(facts(job, an_entry(What.CLOSED, revision=1, app_id="cart")))
    assert cause is Cause.CLOSED
    assert says.startswith("Cancelled by cart before any request came, 2026-07-10 08:59:00 UTC")
    assert says.endswith("schedule it with a revision higher than 1.")


def test_a_request_that_changed_nothing_because_its_revision_is_in_use() -> None:
    why = "revision: 1 is in use with another payload; a higher revision replaces it"
    accepted = an_entry(What.ACCEPTED, 5, revision=1)
    cause, says = line(facts(a_job(), an_entry(What.DUPLICATE, revision=1, details={"errors": [why]}), accepted))
    assert cause is Cause.DUPLICATE
    assert says.startswith(f"The last request changed nothing: {why}. It came from an unnamed application")
    assert says.endswith("Send it with a revision higher than 1.")


def test_a_request_that_came_again_after_a_cancel_was_not_overtaken() -> None:
    again = an_entry(What.DUPLICATE, 1, revision=1, details={"errors": ["id: the job is cancelled"]})
    job = a_job(status=JobStatus.CANCELLED, next_run_at=None)
    history = again, an_entry(What.CANCELLED, 2, revision=1), an_entry(What.ACCEPTED, 3, revision=1)
    assert line(facts(job, *history))[0] is Cause.DUPLICATE


def test_a_cancelled_job_tells_by_whom_when_and_what_it_was_meant_for() -> None:
    entry = an_entry(
        What.CANCELLED, revision=1, by_user="ops", app_id="duebell-cli", operator="ana", note="paid by hand",
        due_at=NOW + 60 * MINUTE,
    )  # fmt: skip
    assert line(facts(a_job(status=JobStatus.CANCELLED, next_run_at=None), entry)) == (
        Cause.CANCELLED,
        "Cancelled by ana with duebell-cli as ops, 2026-07-10 08:59:00 UTC, 60 s ago, with the note: paid by hand. It "
        "was meant for 2026-07-10 10:00:00 UTC, in 60 min. To use the id again, schedule it with a revision higher "
        "than 1.",
    )


def test_a_cancelled_job_without_history() -> None:
    job = a_job(status=JobStatus.CANCELLED, next_run_at=None, finished_at=NOW - MINUTE)
    assert line(facts(job))[1].startswith("Cancelled, 2026-07-10 08:59:00 UTC, 60 s ago. To use the id again")


def test_a_paused_job() -> None:
    entry = an_entry(What.PAUSED, app_id="cart", note="holidays")
    assert line(facts(a_job(status=JobStatus.PAUSED), entry)) == (
        Cause.PAUSED,
        "Paused by cart, 2026-07-10 08:59:00 UTC, 60 s ago, with the note: holidays. Its next run would be 2026-07-10 "
        "10:00:00 UTC, in 60 min. Let it go on: `duebell resume invoice-42`.",
    )


def test_a_job_that_waits_for_its_moment_is_told_in_the_zone_of_its_rule() -> None:
    given = facts(a_job(timezone="Europe/Berlin", last_due_at=NOW - 60 * MINUTE), an_entry(What.ACCEPTED, 90))
    assert line(given) == (
        Cause.NOT_YET,
        "Not yet: due 2026-07-10 12:00:00 CEST, in 60 min. It last fired for 2026-07-10 10:00:00 CEST, 60 min ago.",
    )


def test_a_later_revision_has_replaced_the_moment() -> None:
    changed = {"next_run_at": ["2026-07-10T09:30:00Z", "2026-07-10T10:00:00Z"]}
    entry = an_entry(What.RESCHEDULED, revision=2, app_id="cart", details={"changed": changed})
    assert line(facts(a_job(revision=2), entry, an_entry(What.ACCEPTED, 5, revision=1))) == (
        Cause.REPLACED,
        "Not yet: due 2026-07-10 10:00:00 UTC, in 60 min. Revision 2 from cart replaced the one before it, 2026-07-10 "
        "08:59:00 UTC, 60 s ago. Before, it was due 2026-07-10 09:30:00 UTC, in 30 min.",
    )


def test_late_because_no_producer_runs() -> None:
    stopped = running("producer", seen_at=NOW - 5 * MINUTE, is_running=False)
    given = facts(a_job(next_run_at=NOW - 4 * MINUTE), processes=stopped)
    assert line(given) == (
        Cause.NO_PRODUCER,
        "Late by 4 min: it was due 2026-07-10 08:56:00 UTC, 4 min ago, and no producer runs: the last one was seen "
        "2026-07-10 08:55:00 UTC, 5 min ago. Start a producer.",
    )


def test_late_although_a_producer_runs() -> None:
    assert line(facts(a_job(next_run_at=NOW - 4 * MINUTE)))[0] is Cause.LATE


def test_a_full_queue_refuses_the_event() -> None:
    entries = [
        an_entry(What.REFUSED, ago, details={"reason": "nacked", "routing_key": "due.event.money.due"})
        for ago in (1, 3)
    ]
    job = a_job(next_run_at=NOW - 3 * MINUTE, refusals=3, retry_at=NOW + MINUTE)
    listeners = [
        Listener(queue="shop", messages=5, max_messages=5),
        Listener(queue="audit", messages=5, max_messages=None),
    ]
    assert line(facts(job, *entries, listeners=listeners)) == (
        Cause.REFUSED,
        "RabbitMQ refuses its event due.event.money.due: the queue shop is full (3 attempts since 2026-07-10 08:57:00 "
        "UTC, 3 min ago). Make room in that queue, or read it. It is tried again 2026-07-10 09:01:00 UTC, in 60 s.",
    )
    assert "most likely a queue that is bound for this key is full" in line(facts(job, *entries))[1]


def test_a_refused_event_that_no_producer_can_try_again() -> None:
    entry = an_entry(What.REFUSED, 10, details={"reason": "nacked", "routing_key": "due.event.money.due"})
    job = a_job(next_run_at=NOW - 10 * MINUTE, refusals=1, retry_at=NOW - 9 * MINUTE)
    stopped = running("producer", seen_at=NOW - 10 * MINUTE, is_running=False)
    assert line(facts(job, entry, processes=stopped))[0] is Cause.NO_PRODUCER
    assert line(facts(job, entry))[0] is Cause.REFUSED


def test_a_rule_that_the_producer_cannot_read() -> None:
    entry = an_entry(What.REFUSED, details={"reason": "the rule cannot be read"})
    job = a_job(next_run_at=NOW - MINUTE, refusals=1, retry_at=NOW + MINUTE)
    assert line(facts(job, entry))[0] is Cause.RULE_UNREADABLE


def test_a_rule_that_has_ended() -> None:
    entries = an_entry(What.ENDED, 1 - 1 / 60), a_firing()
    cause, says = line(facts(a_done_job(timezone="UTC"), *entries))
    assert (cause, says) == (Cause.RULE_ENDED, f"Its rule has ended. {FIRED} RabbitMQ put it into at least one queue.")


def test_an_occurrence_that_its_misfire_policy_has_dropped() -> None:
    dropped = an_entry(What.DROPPED, due_at=NOW - 60 * MINUTE, details={"misfire": "skip"})
    assert line(facts(a_done_job(sequence=0, last_due_at=None), dropped)) == (
        Cause.MISFIRE,
        "Dropped 2026-07-10 08:59:00 UTC, 60 s ago: its occurrence of 2026-07-10 08:00:00 UTC, 60 min ago, was later "
        "than misfire_grace_seconds allow, and its misfire policy is skip. Schedule it again, with a revision higher "
        "than 1.",
    )
    cause, says = line(facts(a_job(timezone="UTC"), dropped))
    assert (cause, says.endswith("Fire it now: `duebell trigger invoice-42`.")) == (Cause.MISFIRE, True)


def test_an_event_that_no_queue_is_bound_for() -> None:
    unrouted = an_entry(What.UNROUTED, sequence=1, details={"routing_key": "due.event.mony.due"})
    assert line(facts(a_done_job(), unrouted)) == (
        Cause.UNROUTED,
        "Fired 2026-07-10 08:59:00 UTC, 60 s ago, and no queue was bound for its routing key due.event.mony.due: the "
        "event is kept. Bind a queue for this key, or correct the topic; then `duebell unrouted resend --job "
        "invoice-42`.",
    )


def test_a_fired_job_names_the_queues_that_listen() -> None:
    listeners = [Listener(queue="shop", messages=0, max_messages=None)]
    given = facts(a_done_job(), a_firing(), listeners=listeners)
    assert line(given) == (Cause.FIRED, f"{FIRED} RabbitMQ put it into 1 queue, as bound now: shop.")


def test_a_problem_of_the_last_occurrence_comes_before_the_wait_for_the_next() -> None:
    unrouted = an_entry(What.UNROUTED, sequence=1, details={"routing_key": "due.event.mony.due"})
    cause, says = line(facts(a_job(timezone="UTC", sequence=1), unrouted))
    assert cause is Cause.UNROUTED
    assert "Its next run is 2026-07-10 10:00:00 UTC, in 60 min." in says
    assert line(facts(a_job(timezone="UTC", sequence=2), unrouted))[0] is Cause.NOT_YET, "it has fired since"


def test_a_webhook_that_was_answered() -> None:
    given = facts(a_done_job(webhook_url=HOOK), a_firing(), deliveries=[a_delivery(attempts=2)])
    assert line(given) == (
        Cause.WEBHOOK_ANSWERED,
        f"{FIRED} Its webhook example.com:443 answered 200 at attempt 2, 2026-07-10 08:59:00 UTC, 60 s ago.",
    )


def test_a_webhook_that_is_retried() -> None:
    open_one = an_open_delivery(attempts=2, last_answer="come\nback later")
    assert line(facts(a_done_job(webhook_url=HOOK), a_firing(), deliveries=[open_one])) == (
        Cause.WEBHOOK_RETRIES,
        f"{FIRED} Its webhook is retried: example.com:443 answered 503: come back later; the next attempt is "
        "2026-07-10 09:01:00 UTC, in 60 s, 2 attempts left. Mend the receiver: it is called again by itself.",
    )


def test_what_a_receiver_said_is_left_out_for_readers_without_the_right_to_payloads() -> None:
    said = an_open_delivery(attempts=2, last_answer="card 4242 declined")
    _, says = line(facts(a_done_job(webhook_url=HOOK), a_firing(), deliveries=[said]).without_answers())
    assert "example.com:443 answered 503; the next attempt" in says
    forbidden = a_delivery(
        status="FAILED", failure_reason="forbidden_address", last_status_code=None, last_answer="10.0.0.1 is private"
    )
    _, says = line(facts(a_done_job(webhook_url=HOOK), a_firing(), deliveries=[forbidden]).without_answers())
    assert "10.0.0.1 is private" in says, "it is Duebell's own reason"


def test_a_webhook_that_failed() -> None:
    failed = a_delivery(
        status="FAILED", failure_reason="timeout", attempts=4, last_status_code=None, last_error="timeout"
    )
    assert line(facts(a_done_job(webhook_url=HOOK), a_firing(), deliveries=[failed])) == (
        Cause.WEBHOOK_FAILED,
        f"{FIRED} Its webhook failed after 4 attempts: example.com:443 did not answer in time. Mend the receiver, then "
        "`duebell deliveries replay 7`.",
    )


def test_a_webhook_whose_address_is_forbidden() -> None:
    failed = a_delivery(
        status="FAILED", failure_reason="forbidden_address", last_status_code=None, last_error="forbidden_address",
        last_answer="10.0.0.1 is not a public address",
    )  # fmt: skip
    cause, says = line(facts(a_done_job(webhook_url=HOOK), a_firing(), deliveries=[failed]))
    assert cause is Cause.FORBIDDEN_ADDRESS
    assert "10.0.0.1 is not a public address" in says
    assert "WEBHOOK_ALLOW_NETWORKS" in says


def test_a_webhook_whose_secret_is_missing() -> None:
    waits = an_open_delivery(secret="billing", last_status_code=None, last_error="secret_missing")
    cause, says = line(facts(a_done_job(webhook_url=HOOK), a_firing(), deliveries=[waits]))
    assert cause is Cause.SECRET_MISSING
    assert "no secret named billing" in says


def test_a_webhook_whose_host_is_left_alone() -> None:
    processes = running("delivery", open_breakers={"example.com:443": timedelta(seconds=42)})
    given = facts(a_done_job(webhook_url=HOOK), a_firing(), deliveries=[an_open_delivery()], processes=processes)
    cause, says = line(given)
    assert cause is Cause.BREAKER_OPEN
    assert "calls to example.com:443 failed, so it is left alone for 42 s more" in says


def test_a_webhook_that_no_service_can_call() -> None:
    processes = running("delivery", seen_at=NOW - 2 * MINUTE, is_running=False)
    fired = facts(a_done_job(webhook_url=HOOK), a_firing(), processes=processes)
    assert line(fired) == (
        Cause.NO_DELIVERY,
        f"{FIRED} No delivery service runs that could call its webhook: the last one was seen 2026-07-10 08:58:00 "
        "UTC, 2 min ago. Start the delivery service.",
    )
    assert line(facts(a_done_job(webhook_url=HOOK), a_firing()))[0] is Cause.NO_DELIVERY
    waits = an_open_delivery(secret="billing", last_status_code=None, last_error="secret_missing")
    tried = facts(a_done_job(webhook_url=HOOK), a_firing(), deliveries=[waits], processes=processes)
    assert line(tried)[0] is Cause.NO_DELIVERY


def test_a_webhook_that_is_called_for_the_first_time_now() -> None:
    waits = an_open_delivery(attempts=0, last_status_code=None)
    assert line(facts(a_done_job(webhook_url=HOOK), a_firing(), deliveries=[waits]))[0] is Cause.WEBHOOK_WAITS


def test_a_word_of_a_newer_release_is_no_failure() -> None:
    newer = an_entry("postponed", note="holidays", details={"by": 3})
    assert line(facts(a_job(), newer))[0] is Cause.NOT_YET
    assert describe_entry(newer) == "note: holidays"


def test_a_call_of_an_earlier_life_does_not_stand_for_that_of_this_one() -> None:
    earlier = a_delivery(due_at=NOW - 60 * MINUTE)
    given = facts(a_done_job(webhook_url=HOOK, life=2), a_firing(life=2), deliveries=[earlier])
    assert line(given)[0] is Cause.NO_DELIVERY
    ended = an_entry(What.DELIVERED, 60, sequence=1, due_at=NOW - 60 * MINUTE)
    assert line(facts(a_done_job(webhook_url=HOOK, life=2), a_firing(life=2), ended))[0] is Cause.NO_DELIVERY


def test_an_occurrence_of_an_earlier_life_is_not_the_last_one() -> None:
    unrouted = an_entry(What.UNROUTED, 60, sequence=1, life=1, details={"routing_key": "due.event.mony.due"})
    assert line(facts(a_done_job(life=2), unrouted))[0] is Cause.FIRED


def test_a_webhook_is_told_of_although_the_history_leaves_its_ring_out() -> None:
    accepted = an_entry(What.ACCEPTED, 5, revision=1)
    failed = a_delivery(status="FAILED", failure_reason="http_404", attempts=1, last_status_code=404)
    assert line(facts(a_done_job(webhook_url=HOOK), accepted, deliveries=[failed])) == (
        Cause.WEBHOOK_FAILED,
        "Fired for 2026-07-10 08:59:00 UTC, 60 s ago. Its webhook failed after 1 attempt: example.com:443 answered 404"
        ". Mend the receiver, then `duebell deliveries replay 7`.",
    )
    rule = a_job(webhook_url=HOOK, timezone="UTC", sequence=1, last_due_at=NOW - MINUTE)
    assert line(facts(rule, accepted, deliveries=[failed]))[0] is Cause.WEBHOOK_FAILED
    assert line(facts(rule, an_entry(What.RESCHEDULED, 0.5), deliveries=[failed]))[0] is Cause.REPLACED


def test_a_trigger_is_told_by_its_own_delivery() -> None:
    triggered = a_firing(details={"trigger_id": "try-1"})
    deliveries = [a_delivery(trigger_id=None), an_open_delivery(trigger_id="try-1")]
    given = facts(a_job(webhook_url=HOOK, timezone="UTC", sequence=1), triggered, deliveries=deliveries)
    assert line(given)[0] is Cause.WEBHOOK_RETRIES


def test_a_done_job_without_history_is_told_from_its_row() -> None:
    assert line(facts(a_done_job()))[0] is Cause.FIRED
    assert line(facts(a_done_job(timezone="UTC")))[0] is Cause.RULE_ENDED
    assert line(facts(a_done_job(sequence=0, last_due_at=None)))[0] is Cause.MISFIRE


def test_a_zone_that_this_machine_does_not_know_is_no_failure() -> None:
    assert line(facts(a_job(timezone="Mars/Olympus")))[1] == "Not yet: due 2026-07-10 10:00:00 UTC, in 60 min."


def test_an_occurrence_that_is_due_now_is_not_late_yet() -> None:
    assert line(facts(a_job(next_run_at=NOW - timedelta(milliseconds=500))))[0] is Cause.NOT_YET
