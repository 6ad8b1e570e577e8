"""The state machine: an application, a clock, a broker, and four workers that do any service's work. Hypothesis chooses
who goes on, how far, and what becomes of each thing they do; after every step the ledger looks for a promise that was
broken, and at the end, when the faults are over, everything must come to rest within a bounded time.
"""

import json
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from producer.store import BACKLOG, FRESH, REFUSED
from shared.instants import format_instant
from shared.names import CANCEL_KEY, REQUEST_KEY
from shared.outgoing import Outgoing
from tests.simulation.broker import REPLY_QUEUE, SimBroker
from tests.simulation.ledger import Asked, Broken, Ledger
from tests.simulation.reckoning import reckon
from tests.simulation.steps import Steps
from tests.simulation.town import Town
from tests.simulation.work import Work, is_at_rest, what_there_is_to_do
from tests.simulation.worker import Fate, Worker

WORKERS = 4
# Revisions are told apart by it: no two requests for one job can have an occurrence in common.
GRID_SECONDS = 20
# More than any pause, lease or rule of the simulation takes.
AN_AGE_SECONDS = 400
ROUNDS_TO_REST = 20

# A row that another producer holds is that one's business.
NEVER_WAIT = {Work.FIRE_FRESH.value, Work.FIRE_BACKLOG.value, Work.FIRE_REFUSED.value}
LANES = {Work.FIRE_FRESH: FRESH, Work.FIRE_BACKLOG: BACKLOG, Work.FIRE_REFUSED: REFUSED}
JOBS = st.sampled_from(["tea", "coffee", "bread", "butter"])
NUMBERS = st.integers(0, WORKERS - 1)
PICKS = st.lists(st.integers(0, 5), min_size=1, max_size=5)
# Mostly well: a history in which everything fails at once gets nowhere.
FATES = st.lists(st.sampled_from([Fate.OK] * 6 + list(Fate)), min_size=1, max_size=8)


class Duebell(RuleBasedStateMachine):
    def __init__(self, town: Town) -> None:
        super().__init__()
        self.town = town
        self.ledger = Ledger(town)
        self.broker = SimBroker(self.ledger)
        self.steps = Steps(self.broker, self.ledger)
        self.workers = [Worker(number, town) for number in range(WORKERS)]
        self.active: set[int] = set()  # who may have done something since the ledger last looked
        self.broken = False
        self._run(town.begin_anew())

    @rule(job=JOBS, grid=st.integers(-3, 3), recurring=st.booleans(), webhook=st.booleans())
    def ask(self, job: str, grid: int, recurring: bool, webhook: bool) -> None:
        revision = 1 + sum(asked.id == job for asked in self.ledger.asked)
        first = self.town.now + timedelta(seconds=GRID_SECONDS * grid + revision % GRID_SECONDS)
        content: dict[str, Any] = {"id": job, "revision": revision}
        if recurring:
            content |= {"rrule": "FREQ=MINUTELY;COUNT=3", "start_at": format_instant(first)}
        else:
            content |= {"at": format_instant(first)}
        if webhook:
            content |= {"webhook": {"url": "https://example.com/hook", "timeout_seconds": 10, "max_retries": 2}}
        occurrences = tuple(first + timedelta(minutes=number) for number in range(3 if recurring else 1))
        self.ledger.asked.append(Asked(job, revision, occurrences))
        self._publish(REQUEST_KEY, content)

    @rule(grids=st.integers(1, 6))
    def pass_time(self, grids: int) -> None:
        self._run(self.town.pass_time(GRID_SECONDS * grids))

    @rule(number=NUMBERS, what=st.integers(0, 20), picks=PICKS)
    def work_well(self, number: int, what: int, picks: list[int]) -> None:
        self._run(self._work(self.workers[number], what, picks, [Fate.OK] * 60))

    @rule(number=NUMBERS, what=st.integers(0, 20), picks=PICKS, fates=FATES)
    def work(self, number: int, what: int, picks: list[int], fates: list[Fate]) -> None:
        """As far as there are fates; a worker that is busy goes on with what it does."""
        self._run(self._work(self.workers[number], what, picks, fates))

    @rule(what=st.sampled_from(["cancel", "duplicate", "cut"]), job=JOBS, number=NUMBERS)
    def suffer(self, what: str, job: str, number: int) -> None:
        worker = self.workers[number]
        match what:
            case "cancel":
                self.ledger.cancels.add(job)
                self._publish(CANCEL_KEY, {"id": job})
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
                self._run(self._come_to_rest())
        finally:
            self._run(self._clear_away())

    async def _work(self, worker: Worker, what: int, picks: Sequence[int], fates: Sequence[Fate]) -> None:
        if worker.is_idle:
            choice = what_there_is_to_do(self.broker, self.ledger)
            if not choice:
                return
            await self._do(worker, choice[what % len(choice)], picks, fates)
        else:
            await self._go_on(worker, fates)

    async def _do(self, worker: Worker, work: Work, picks: Sequence[int], fates: Sequence[Fate]) -> None:
        self.ledger.begins(worker)
        worker.begin(work.value, self._coroutine(worker, work, picks))
        await self._go_on(worker, fates)

    async def _go_on(self, worker: Worker, fates: Sequence[Fate]) -> None:
        self.active.add(worker.number)
        await worker.drive(fates)
        if worker.dead:
            self.ledger.in_doubt(worker)
            self.broker.take_back(worker)
        ended = "dead" if worker.dead else "done" if worker.is_idle else f"stands before: {worker.at}"
        note(f"worker {worker.number}, {worker.work}: {ended}")

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
            # Whoever waited for a lock may have been let in by what has just happened.
            if not await worker.settle() and not worker.is_idle and worker.work in NEVER_WAIT:
                self.ledger.violations.append(f"a producer waits for another at: {worker.at}")
        await self.ledger.look(self.active)
        self.active = {worker.number for worker in self.workers if worker.waits}

    async def _come_to_rest(self) -> None:
        """No more faults: whoever is under way finishes, and then one worker does all there is to do."""
        for _ in range(WORKERS):
            for worker in self.workers:
                await self._go_on(worker, [Fate.OK] * 60)
        await self._look()
        if not all(worker.is_idle for worker in self.workers):
            raise Broken(f"they wait for one another for ever: {[worker.at for worker in self.workers]}")
        for _ in range(ROUNDS_TO_REST):
            await self.town.pass_time(AN_AGE_SECONDS)
            for work in Work:
                if work in what_there_is_to_do(self.broker, self.ledger):
                    await self._do(self.workers[0], work, [0] * 20, [Fate.OK] * 60)
                    await self._look()
            if is_at_rest(self.broker, self.ledger):
                return reckon(self.ledger)
        raise Broken("there is still work, long after the last fault")

    async def _clear_away(self) -> None:
        for worker in self.workers:
            await worker.crash()
            if worker.connection is not None:
                self.town.spare.append(worker.connection)

    def _publish(self, key: str, content: dict[str, Any]) -> None:
        self.broker.route(Outgoing(self.broker.names.commands, key, json.dumps(content).encode(), reply_to=REPLY_QUEUE))

    def _run(self, doing: Coroutine[Any, Any, None]) -> None:
        """A history that broke a promise is over: there is no use in going on with it."""
        try:
            self.town.runner.run(doing)
        except BaseException:
            self.broken = True
            raise
