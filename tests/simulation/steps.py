"""The services' own steps, as their loops would run them once, on a stepped worker: the real handlers, the real SQL,
the real decisions. Only the broker and the receiver are played.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from prometheus_client import CollectorRegistry

from consumer.handling import BatchHandler
from consumer.metrics import Metrics as ConsumerMetrics
from delivery.admission import Admission
from delivery.announcing import Announcer
from delivery.attempting import Attempter
from delivery.breaker import BreakerPolicy
from delivery.claiming import Claimer
from delivery.dispatching import Dispatcher
from delivery.hosts import Hosts
from delivery.http.address_guard import AddressRules
from delivery.http.caller import Caller
from delivery.http.request import Request
from delivery.intake import DueHandler
from delivery.line import Held
from delivery.metrics import Metrics as DeliveryMetrics
from delivery.model import Delivery
from delivery.outcomes import Answered, CallError, CallResult, RetryPolicy, Unanswered
from delivery.recording import Recorder
from delivery.signing import Secrets
from producer.firing import Firer
from producer.metrics import Metrics as ProducerMetrics
from producer.precedence import Precedence
from producer.store import Lane
from shared import batches
from shared.bell import Bell
from shared.broker import Broker
from shared.database import PASSING_TROUBLE, Pool
from shared.inbox import Inbox
from shared.lifecycle import Stop
from shared.publishing import Publisher
from shared.received import Received
from tests.simulation.broker import SimBroker, SimInbox, SimPublisher
from tests.simulation.ledger import Ledger
from tests.simulation.worker import Fate, SteppedPool, Worker

LEASE_MARGIN = 30.0
TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class SimCaller:
    """Stands where the dispatcher expects its Caller: the receiver at the other end keeps the keys it has seen."""

    worker: Worker
    ledger: Ledger

    async def call(self, request: Request) -> CallResult:
        match await self.worker.stop_before("call"):
            case Fate.REFUSED:
                return Answered(500)
            case Fate.MIXED:
                return Answered(404)
            case Fate.LOST_BEFORE:
                return Unanswered(CallError.CONNECT)
            case Fate.LOST_AFTER:
                self._act(request)
                return Unanswered(CallError.TIMEOUT)
            case _:
                self._act(request)
                return Answered(200)

    def _act(self, request: Request) -> None:
        self.ledger.call(request.headers["X-Idempotency-Key"], json.loads(request.body))


@dataclass(frozen=True, slots=True)
class Steps:
    broker: SimBroker
    ledger: Ledger
    consumer_metrics: ConsumerMetrics = field(default_factory=lambda: ConsumerMetrics(CollectorRegistry()))
    producer_metrics: ProducerMetrics = field(default_factory=lambda: ProducerMetrics(CollectorRegistry()))
    delivery_metrics: DeliveryMetrics = field(default_factory=lambda: DeliveryMetrics(CollectorRegistry()))

    async def consume(self, worker: Worker, batch: list[Received]) -> None:
        handler = BatchHandler(
            _pool(worker), self._publisher(worker), self.broker.names, self.consumer_metrics, 10_000, TIMEOUT
        )
        await self._handle(worker, handler, batch)

    async def take_in(self, worker: Worker, batch: list[Received]) -> None:
        announcer = self._announcer(worker)
        dispatcher = self._dispatcher(worker, announcer)
        handler = DueHandler(
            pool=_pool(worker),
            publisher=self._publisher(worker),
            parking=self.broker.names.parking,
            metrics=self.delivery_metrics,
            dispatcher=dispatcher,
            lease_margin=LEASE_MARGIN,
            publish_timeout=TIMEOUT,
        )
        await self._handle(worker, handler, batch)
        await _deliver(dispatcher, dispatcher.stored, announcer)

    async def _handle(self, worker: Worker, handler: Any, batch: list[Received]) -> None:
        if batch:
            await batches._handle(batch, handler, cast("Inbox", SimInbox(self.broker, worker)), Stop())

    async def produce(self, worker: Worker, lane: Lane) -> None:
        firer = Firer(
            lane=lane,
            pool=_pool(worker),
            publisher=self._publisher(worker),
            names=self.broker.names,
            precedence=Precedence(),
            metrics=self.producer_metrics,
            lane_metrics=self.producer_metrics.of_lane(lane.name),
            max_batch=3,
            publish_timeout=TIMEOUT,
        )
        try:
            await firer.fire_once()
        except PASSING_TROUBLE:
            self.ledger.in_doubt(worker)

    async def dispatch(self, worker: Worker) -> None:
        announcer = self._announcer(worker)
        dispatcher = self._dispatcher(worker, announcer)
        try:
            claimed = await dispatcher.claimer.claim_once()
        except PASSING_TROUBLE:
            return
        self.ledger.claimed(worker, claimed, LEASE_MARGIN)
        now = time.monotonic()
        await _deliver(dispatcher, [Held(delivery, now, now) for delivery in claimed], announcer)

    def _dispatcher(self, worker: Worker, announcer: Announcer) -> "SimDispatcher":
        attempter = Attempter(
            caller=cast("Caller", SimCaller(worker, self.ledger)),
            secrets=Secrets.load(None, None),
            rules=AddressRules((), frozenset()),
            retry_policy=RetryPolicy(timedelta(seconds=20), timedelta(seconds=60)),
            metrics=self.delivery_metrics,
            lease_margin=LEASE_MARGIN,
            chance=lambda: 0.5,
        )
        hosts = Hosts(3, 3, BreakerPolicy(failures=1_000_000))
        admission = Admission(hosts)
        dispatcher = SimDispatcher(
            claimer=Claimer(_pool(worker), hosts, admission, LEASE_MARGIN),
            attempter=attempter,
            recorder=Recorder(_pool(worker), self.delivery_metrics, announcer),
            hosts=hosts,
            admission=admission,
            metrics=self.delivery_metrics,
            bell=Bell(),
        )
        dispatcher.stored = []
        dispatcher.on_stored = lambda stored: self.ledger.claimed(worker, stored, LEASE_MARGIN)
        return dispatcher

    async def announce(self, worker: Worker) -> None:
        with suppress(*PASSING_TROUBLE):
            await self._announcer(worker).announce_once()

    def _announcer(self, worker: Worker) -> Announcer:
        broker, publisher = cast("Broker", self.broker), self._publisher(worker)
        return Announcer(_pool(worker), broker, publisher, self.delivery_metrics, TIMEOUT)

    def _publisher(self, worker: Worker) -> Publisher:
        return cast("Publisher", SimPublisher(self.broker, worker))


class SimDispatcher(Dispatcher):
    """Keeps what was stored as its own for whoever drives the worker."""

    on_stored: Callable[[list[Delivery]], None]
    stored: list[Held]

    def accept(self, ours: Sequence[Held], reserved: Iterable[str]) -> None:
        Dispatcher.accept(self, ours, reserved)
        self.stored += ours
        self.on_stored([held.delivery for held in ours])


async def _deliver(dispatcher: Dispatcher, ours: Sequence[Held], announcer: Announcer) -> None:
    """One after the other, so that whoever drives the worker can follow."""
    dispatcher.recorder.close()  # so that it returns when all is written
    for held in ours:
        dispatcher.hosts.start(held.delivery.host)
        await dispatcher.deliver(held)
        await dispatcher.recorder.run(lambda _: None)
    with suppress(*PASSING_TROUBLE):
        await announcer.announce_fresh_once()


def _pool(worker: Worker) -> Pool:
    return cast("Pool", SteppedPool(worker))
