"""The parts of a cluster run that decide and judge: the order of faults, when the system is calm, what was forgotten,
and the table.
"""

from dataclasses import replace
from itertools import islice
from pathlib import Path

from stack.directory import LOGS
from tests.chaos.at_work import remove_old_logs
from tests.chaos.cluster.calm import ENOUGH, is_calm
from tests.chaos.cluster.forgotten import forgotten_commands
from tests.chaos.cluster.script import rounds
from tests.chaos.cluster.table import account, as_table
from tests.chaos.faults import BROKER, POSTGRES, ClusterFault
from tests.chaos.invariants import Invariant, check
from tests.chaos.ledger import Command, JobRow, Kind, Ledger, Plan, Reply, RolledBack, Struck
from tests.chaos.result_table import BEFORE
from tests.chaos.sample_ledgers import a_good_run, at, heard
from tests.chaos.script import Strike


def struck(fault: ClusterFault, began: float, ended: float) -> Struck:
    return Struck(Strike(0.0, fault, fault.target), at(began), at(ended))


def test_each_round_has_every_fault_once_in_an_order_of_its_own() -> None:
    first, second = islice(rounds(7, ClusterFault), 2)
    assert {strike.fault for strike in first} == {strike.fault for strike in second} == set(ClusterFault)
    assert len(first) == len(ClusterFault)
    assert first != second


def test_the_same_seed_gives_the_same_rounds() -> None:
    assert list(islice(rounds(7, ClusterFault), 3)) == list(islice(rounds(7, set(ClusterFault)), 3))
    assert next(rounds(7, ClusterFault)) != next(rounds(8, ClusterFault))


def test_a_fault_that_is_not_wanted_does_not_strike() -> None:
    [only] = next(rounds(7, [ClusterFault.NODE_FROZEN]))
    assert only.label == "RabbitMQ: the node in use frozen"


def test_every_fault_has_its_store() -> None:
    assert ClusterFault.NODE_FROZEN.target == ClusterFault.MAJORITY_KILLED.target == BROKER
    assert ClusterFault.LEADER_KILLED.target == ClusterFault.EACH_NODE_KILLED.target == BROKER
    of_postgres = {fault for fault in ClusterFault if fault.target == POSTGRES}
    assert {fault.name.partition("_")[0] for fault in of_postgres} == {"PRIMARY", "STANDBY", "OLD"}


def test_the_logs_of_the_run_before_are_removed_those_of_each_server_too(tmp_path: Path) -> None:
    (tmp_path / LOGS / "node-1").mkdir(parents=True)
    (tmp_path / LOGS / "node-1" / "rabbitmq.log").touch()
    remove_old_logs(tmp_path)
    remove_old_logs(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_system_is_calm_when_events_come_and_none_is_late() -> None:
    on_time = [heard(f"job-{number}", 5) for number in range(ENOUGH)]
    assert is_calm(Ledger(heard=on_time), at(6))
    assert not is_calm(Ledger(heard=on_time[1:]), at(6)), "too few"
    assert not is_calm(Ledger(heard=on_time), at(9)), "none for a while"
    late = heard("late", 2, seen_at=at(5.5))
    assert not is_calm(Ledger(heard=[*on_time, late]), at(6))
    assert is_calm(Ledger(heard=[replace(late, seen_at=at(1)), *on_time]), at(6)), "late, but long ago"
    asked = Command("late", Kind.REQUEST, at(5), plan=Plan(at(2)))
    assert is_calm(Ledger(heard=[*on_time, late], commands=[asked]), at(6)), "asked for late"
    assert not is_calm(Ledger(heard=[*on_time, late], commands=[replace(asked, confirmed_at=at(3))]), at(6))


def test_what_was_answered_and_is_not_in_the_table_is_forgotten() -> None:
    def answer(job: str, outcome: str, kind: Kind = Kind.REQUEST, revision: int = 1) -> Reply:
        return Reply(job, kind, revision, outcome, at(0))

    kept = [
        answer("stored", "accepted"),
        answer("moved on", "accepted"),
        answer("cancelled", "cancelled", Kind.CANCEL, 0),
        answer("refused", "rejected"),
    ]
    forgotten = [
        answer("gone", "accepted"),
        answer("not moved", "rescheduled", revision=2),
        answer("not cancelled", "cancelled", Kind.CANCEL, 0),
        answer("no mark", "unknown", Kind.CANCEL, 0),
    ]
    rows = [
        JobRow("stored", "done", 1, 1),
        JobRow("moved on", "pending", 2, 0),
        JobRow("cancelled", "cancelled", 1, 0),
        JobRow("not moved", "pending", 1, 0),
        JobRow("not cancelled", "pending", 1, 0),
    ]
    assert forgotten_commands([*kept, *forgotten], rows) == forgotten


def test_effects_are_judged_by_what_a_promoted_standby_has() -> None:
    ledger = a_good_run()
    ledger.calls = []
    assert {violation.invariant for violation in check(ledger)} == {Invariant.ONE_EFFECT}
    ledger.rolled_back = [RolledBack(at(4.9), at(5.2), commands=1)]
    assert check(ledger) == []


def test_a_command_that_a_promoted_standby_lacks_has_to_be_there_in_the_end() -> None:
    ledger = a_good_run()
    ledger.rolled_back = [RolledBack(at(4.9), at(5.2), commands=1)]
    ledger.jobs = [row for row in ledger.jobs if row.id != "once"]
    assert {violation.invariant for violation in check(ledger)} == {Invariant.COMMANDS_KEPT}


def test_the_table_gives_what_came_to_the_fault_before_it() -> None:
    ledger = a_good_run()
    killed, frozen = ClusterFault.PRIMARY_KILLED_ASYNC, ClusterFault.NODE_FROZEN
    ledger.struck = [struck(frozen, 5.5, 5.6), struck(killed, 6.1, 6.5)]
    ledger.rolled_back = [RolledBack(at(6.2), at(6.4), commands=3)]
    ledger.heard = [replace(one, seen_at=at(10)) if one.due_at == at(7) else one for one in ledger.heard]
    before, of_postgres, of_rabbitmq, everything = account(ledger)
    assert (before.fault, before.heard, before.effects, before.webhooks) == (BEFORE, 3, 1, 1)
    assert (of_rabbitmq.count, of_rabbitmq.heard, of_rabbitmq.copies) == (1, 2, 0)
    assert (of_postgres.count, of_postgres.heard, of_postgres.copies, of_postgres.forgotten) == (1, 2, 1, 3)
    assert round(of_postgres.on_time.total_seconds(), 1) == 3.9, "what was due at 7 was heard at 10, 3.9 s after 6.1"
    assert round(of_postgres.silence.total_seconds(), 1) == 2.0
    assert (everything.count, everything.heard, everything.lost, everything.forgotten) == (2, 7, 0, 3)
    assert everything.early == 0
    heading, rule, *lines = as_table(account(ledger)).splitlines()
    assert set(rule) <= set("|- :")
    assert len({len(line) for line in (heading, rule, *lines)}) == 1


def test_the_table_counts_what_came_early() -> None:
    ledger = a_good_run()
    ledger.heard = [replace(one, fired_at=at(6.9)) if one.due_at == at(7) else one for one in ledger.heard]
    assert [row.early for row in account(ledger)] == [0, 1, 1]
