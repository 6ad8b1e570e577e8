"""The state machine: an application, a clock, a broker, and four workers that do any service's work. Hypothesis chooses
which worker goes on, how far, and which fault each of its steps meets. After every step the ledger looks for a broken
promise. At the end, without faults, all work must be done within a bounded time.
"""

import json
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from producer.store.lanes import DUE_NOW, OVERDUE, RETRY
from shared.amqp.message import OutgoingMessage
from shared.contract.fields import format_instant
from shared.contract.names import CANCEL_KEY, REQUEST_KEY
from tests.simulation.broker import REPLY_QUEUE, SimBroker
from tests.simulation.database import SimDatabase
from tests.simulation.final_checks import check_final_state
from tests.simulation.ledger import FINAL, Asked, Ledger, PromiseBroken
from tests.simulation.service_steps import Steps
from tests.simulation.work import Work, available_work, is_at_rest
from tests.simulation.worker import Fate, Worker
from tests.simulation.worker_script import NO_FAULTS, Script, script

WORKERS = 4
# Revisions are told apart by it: no two requests for one job can have an occurrence in common.
GRID_SECONDS = 20
# More than any pause, lease or rule of the simulation takes.
LONG_TIME_SECONDS = 400
ROUNDS_TO_REST = 20

# A producer skips a row that another producer holds. It must not wait for it.
NEVER_WAIT = {Work.FIRE_DUE_NOW.value, Work.FIRE_OVERDUE.value, Work.FIRE_RETRY.value}
LANES = {Work.FIRE_DUE_NOW: DUE_NOW, Work.FIRE_OVERDUE: OVERDUE, Work.FIRE_RETRY: RETRY}
JOBS = st.sampled_from(["tea", "coffee", "bread", "butter", "jam", "honey", "milk", "sugar", "salt", "egg"])
NUMBERS = st.integers(0, WORKERS - 1)
SCRIPTS = st.integers(0, 2**16).map(script)


class Duebell(RuleBasedStateMachine):
    database: ClassVar[SimDatabase]

    @classmethod
    def on_database(cls, database: SimDatabase) -> "type[Duebell]":
        return type(cls.__name__, (cls,), {"database": database})

    def __init__(self) -> None:
        super().__init__()
        database = self.database
        self.ledger = Ledger(database)
        self.broker = SimBroker(self.ledger)
        self.steps = Steps(self.broker, self.ledger)
        self.workers = [Worker(number, database) for number in range(WORKERS)]
        self.active: set[int] = set()  # numbers of workers that may have written since the ledger last looked
        self.broken = False
        self._run(database.reset())

    @initialize(webhook=st.booleans())
    def begin_in_the_middle(self, webhook: bool) -> None:
        """Start with jobs that are due: a history that had to create them first would have fewer steps for faults."""
        for job in ("bread", "butter", "jam"):
            self.ask(job, -1, recurring=job == "jam", webhook=webhook)
        self._run(self._work(self.workers[0], NO_FAULTS))

    @rule(job=JOBS, grid=st.integers(-3, 2), recurring=st.booleans(), webhook=st.booleans(), again=st.booleans())
    def ask(self, job: str, grid: int, recurring: bool, webhook: bool, again: bool = False) -> None:
        """Ask for a job, reschedule it, or begin a new life of it. `again`: a new life is due at the moments of the
        last one, so that nothing but the life tells their keys apart.
        """
        revision = 1 + self._highest_revision(job)
        first = self.database.now + timedelta(seconds=GRID_SECONDS * grid + revision % GRID_SECONDS)
        if again and (before := self._last_of_an_ended(job)):
            first, recurring = before.moments[0], len(before.moments) > 1
        content: dict[str, Any] = {"id": job, "revision": revision, "payload": {"revision": revision}}
        if recurring:
            content |= {"rrule": "FREQ=MINUTELY;COUNT=3", "start_at": format_instant(first)}
        else:
            content |= {"at": format_instant(first)}
        if webhook:
            content |= {"webhook": {"url": "https://example.com/hook", "timeout_seconds": 10, "max_retries": 2}}
        moments = tuple(first + timedelta(minutes=number) for number in range(3 if recurring else 1))
        self.ledger.asked.append(Asked(job, revision, moments))
        self._publish(REQUEST_KEY, content)

    @rule(grids=st.integers(1, 6))
    def pass_time(self, grids: int) -> None:
        self._run(self.database.pass_time(GRID_SECONDS * grids))

    @rule(number=NUMBERS, script=SCRIPTS)
    def work(self, number: int, script: Script) -> None:
        self._run(self._work(self.workers[number], script))

    @rule(scripts=st.tuples(*[SCRIPTS] * WORKERS), grids=st.integers(0, 3))
    def busy_period(self, scripts: tuple[Script, ...], grids: int) -> None:
        for number in range(WORKERS):
            self.work(number, scripts[number])
        self.pass_time(grids)

    @rule(what=st.sampled_from(["cancel", "duplicate", "cut", "cut"]), job=JOBS, number=NUMBERS)
    def trouble(self, what: str, job: str, number: int) -> None:
        worker = self.workers[number]
        match what:
            case "cancel":
                # It closes the last request, and overtakes it perhaps; or comes before all requests.
                revision = max(1, self._highest_revision(job))
                self.ledger.cancels[job] = revision
                self._publish(CANCEL_KEY, {"id": job, "revision": revision})
            case "duplicate":
                self.broker.duplicate(number)
            case _ if worker.connection is not None and not worker.is_idle:
                # The database forgets about a worker, which does not know it yet.
                self._run(self._cut(worker))

    @invariant()
    def no_promise_is_broken(self) -> None:
        if not self.broken and self.active:
            self._run(self._look())

    def teardown(self) -> None:
        try:
            if not self.broken:
                self._run(self._finish_all_work())
        finally:
            self._run(self._close_workers())

    async def _work(self, worker: Worker, script: Script) -> None:
        """Run steps of the worker until no fates are left. A busy worker first goes on with its current work."""
        fates = script.fates
        for what in script.whats:
            if worker.is_idle and (choice := available_work(self.broker, self.ledger)) and fates:
                self._begin(worker, choice[what % len(choice)], script.picks)
            fates = await self._go_on(worker, fates)

    def _begin(self, worker: Worker, work: Work, picks: Sequence[int]) -> None:
        self.ledger.begins(worker)
        worker.begin(work.value, lambda: self._coroutine(worker, work, picks))

    async def _go_on(self, worker: Worker, fates: Sequence[Fate]) -> Sequence[Fate]:
        """Returns the fates that are left over."""
        if worker.is_idle:
            return fates
        self.active.add(worker.number)
        left = await worker.drive(fates)
        if worker.dead:
            self.ledger.in_doubt(worker)
            self.broker.take_back(worker)
        ended = "dead" if worker.dead else "done" if worker.is_idle else f"stands before: {worker.at}"
        note(f"worker {worker.number}, {worker.work}: {ended}")
        await self._look()
        return left

    def _coroutine(self, worker: Worker, work: Work, picks: Sequence[int]) -> Coroutine[Any, Any, None]:
        match work:
            case Work.CONSUME:
                return self.steps.consume(worker, self.broker.hand_out(worker, self.broker.names.inbox, picks))
            case Work.TAKE_IN:
                return self.steps.take_in(worker, self.broker.hand_out(worker, self.broker.names.deliveries, picks))
            case Work.DISPATCH:
                return self.steps.dispatch(worker)
            case Work.ANNOUNCE:
                return self.steps.announce(worker)
            case _:
                return self.steps.produce(worker, LANES[work])

    async def _cut(self, worker: Worker) -> None:
        self.active.add(worker.number)
        await worker.lose_connection()
        self.ledger.in_doubt(worker)

    async def _look(self) -> None:
        for worker in self.workers:
            # A worker that waited for a lock may have got it by the last step.
            if not await worker.wait_until_still() and not worker.is_idle and worker.work in NEVER_WAIT:
                self.ledger.violations.append(f"a producer waits for another at: {worker.at}")
        await self.ledger.look(self.active)
        self.active = {worker.number for worker in self.workers if worker.waits}

    async def _finish_all_work(self) -> None:
        """Without faults: busy workers finish, then one worker does all remaining work."""
        for _ in range(WORKERS):
            for worker in self.workers:
                await self._go_on(worker, NO_FAULTS.fates)
        await self._look()
        if not all(worker.is_idle for worker in self.workers):
            raise PromiseBroken(f"workers wait for one another for ever: {[worker.at for worker in self.workers]}")
        for _ in range(ROUNDS_TO_REST):
            await self.database.pass_time(LONG_TIME_SECONDS)
            for work in Work:
                if work in available_work(self.broker, self.ledger):
                    self._begin(self.workers[0], work, NO_FAULTS.picks)
                    await self._go_on(self.workers[0], NO_FAULTS.fates)
            if is_at_rest(self.broker, self.ledger):
                return check_final_state(self.ledger)
        raise PromiseBroken("there is still work, long after the last fault")

    async def _close_workers(self) -> None:
        for worker in self.workers:
            await worker.crash()
            if worker.connection is not None:
                self.database.spare.append(worker.connection)

    def _highest_revision(self, job: str) -> int:
        return max([self.ledger.cancels.get(job, 0), *(one.revision for one in self.ledger.asked if one.id == job)])

    def _last_of_an_ended(self, job: str) -> Asked | None:
        """Return the last request for a job that has ended and has no command on its way: the next begins a life."""
        row, asked = self.ledger.jobs.get(job), [one for one in self.ledger.asked if one.id == job]
        has_ended = row is not None and row["status"] in FINAL and row["revision"] >= self._highest_revision(job)
        return asked[-1] if has_ended and asked else None

    def _publish(self, key: str, content: dict[str, Any]) -> None:
        self.broker.route(
            OutgoingMessage(self.broker.names.commands, key, json.dumps(content).encode(), reply_to=REPLY_QUEUE)
        )

    def _run(self, doing: Coroutine[Any, Any, object]) -> None:
        """Run the coroutine. After an error the history is over, and no further step runs."""
        try:
            self.database.runner.run(doing)
        except BaseException:
            self.broken = True
            raise
