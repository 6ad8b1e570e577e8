"""What a run prints: a table whose rows add up, and a timeline for each broken promise."""

from dataclasses import replace

from shared.runtime.fault_points import Point
from tests.chaos.faults import Fault
from tests.chaos.invariants import check
from tests.chaos.result_table import BEFORE, account, as_table
from tests.chaos.sample_ledgers import a_fault, a_good_run, at
from tests.chaos.timeline import explain


def test_the_table_gives_every_moment_to_the_last_fault_before_it() -> None:
    ledger = a_good_run()
    ledger.struck.append(a_fault(6.9, 7.0, Fault.POSTGRES_RESTART, "Postgres"))
    ledger.heard = [one for one in ledger.heard if (one.job, one.due_at) != ("thrice", at(7))]
    before, postgres, producer, everything = account(ledger)
    assert (before.fault, before.count, before.effects, before.webhooks) == (BEFORE, 0, 1, 1)
    assert (producer.fault, producer.count, producer.duplicated, producer.lost) == ("producer: SIGKILL", 1, 1, 0)
    assert (postgres.fault, postgres.lost) == ("Postgres: immediate restart", 1)
    assert (everything.fault, everything.count, everything.lost, everything.duplicated) == ("all", 2, 1, 1)


def test_a_duplicate_belongs_to_what_struck_between_its_copies() -> None:
    ledger = a_good_run()
    ledger.struck = [
        a_fault(5.9, 6.0),
        a_fault(6.05, 6.07, target="delivery"),
        a_fault(6.1, 6.5, Fault.POSTGRES_RESTART, "Postgres"),
        a_fault(6.7, 6.75),
    ]
    duplicated = {line.fault: line.duplicated for line in account(ledger)}
    assert duplicated["Postgres: immediate restart"] == duplicated["all"] == 1


def test_a_kill_at_a_named_point_counts_from_when_the_point_was_reached() -> None:
    ledger = a_good_run()
    ledger.struck = [
        a_fault(5.0, 6.2, Fault.KILL_AT_POINT, Point.PRODUCER_PUBLISHED),
        a_fault(6.3, 6.5, Fault.POSTGRES_RESTART, "Postgres"),
    ]
    duplicated = {line.fault: line.duplicated for line in account(ledger)}
    assert duplicated[f"SIGKILL of {Point.PRODUCER_PUBLISHED}"] == duplicated["all"] == 1


def test_recovery_is_what_had_to_wait_after_the_fault() -> None:
    ledger = a_good_run()
    ledger.struck = [a_fault(4.9, 5.5)]
    [_, producer, _] = account(ledger)
    assert producer.recovery == 0.5, "the webhook published at 5.02 was answered at 6.0"


def test_a_missed_strike_is_not_counted() -> None:
    ledger = a_good_run()
    ledger.struck.append(replace(a_fault(6.6, 6.7), missed=True))
    assert [line.count for line in account(ledger)] == [0, 1, 1]


def test_the_table_is_markdown_with_aligned_columns() -> None:
    heading, rule, *lines = as_table(account(a_good_run())).splitlines()
    assert heading.split("|")[1].strip() == "fault"
    assert set(rule) <= set("|- :")
    assert len({len(line) for line in (heading, rule, *lines)}) == 1


def test_a_broken_promise_is_reported_with_its_job_and_the_faults_of_that_time() -> None:
    ledger = a_good_run()
    ledger.heard = [one for one in ledger.heard if (one.job, one.due_at) != ("thrice", at(7))]
    story = explain(ledger, check(ledger))
    assert "every due occurrence is published at least once: thrice 12:00:07.000000 was never published" in story
    lines = story.splitlines()
    order = ["request of revision 1 confirmed", "occurrence 1 is due", "⚡ producer: SIGKILL", "occurrence 3 is due"]
    places = [next(place for place, line in enumerate(lines) if words in line) for words in order]
    assert places == sorted(places)
    assert "in the end: done, revision 1, 3 published by its own count" in story
    assert "key of once" not in story, "the others' histories are left out"
