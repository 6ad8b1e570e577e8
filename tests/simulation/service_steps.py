"""One pass of each service's loop, run by a stepped worker with the real handlers, SQL and decisions. Only the broker
and the receiver are simulated.
"""

import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from prometheus_client import CollectorRegistry

from consumer.handler import BatchHandler
from consumer.metrics import Metrics as ConsumerMetrics
from delivery.attempt.retry import Answered, CallError, CallResult, RetryPolicy, Unanswered
from delivery.attempt.runner import AttemptRunner
from delivery.attempt.signing import Secrets
from delivery.dispatch.circuit_breaker import BreakerPolicy
from delivery.dispatch.claimer import Claimer
from delivery.dispatch.dispatcher import Dispatcher
from delivery.dispatch.local_queue import LocalQueue
from delivery.http.caller import Caller
from delivery.http.request import Request
from delivery.intake import DueHandler
from delivery.metrics import Metrics as DeliveryMetrics
from delivery.results.announcer import Announcer
from delivery.results.recorder import Recorder
from producer.firing import Firer
from producer.job_work import JobWork
from producer.metrics import Metrics as ProducerMetrics
from producer.priority import Precedence
from producer.store.lanes import Lane
from shared.amqp import consuming as batches
from shared.amqp.connection import Broker
from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage
from shared.amqp.publisher import Publisher
from shared.contract.address_rules import AddressRules
from shared.postgres.errors import RETRYABLE_ERRORS
from shared.postgres.pool import Pool
from shared.runtime.loops import Stop
from tests.simulation.broker import SimBroker, SimInbox, SimPublisher
from tests.simulation.ledger import Ledger
from tests.simulation.worker import Fate, SteppedPool, Worker

LEASE_MARGIN = 30.0
TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class SimCaller:
    """The dispatcher gets it in place of its Caller. The simulated receiver remembers the keys that it has seen."""

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

    async def consume(self, worker: Worker, batch: list[IncomingMessage]) -> None:
        handler = BatchHandler(
            _pool(worker), self._publisher(worker), self.broker.names, self.consumer_metrics, 10_000, TIMEOUT
        )
        await self._handle(worker, handler, batch)

    async def take_in(self, worker: Worker, batch: list[IncomingMessage]) -> None:
        handler = DueHandler(
            pool=_pool(worker),
            publisher=self._publisher(worker),
            parking=self.broker.names.parking,
            metrics=self.delivery_metrics,
            on_stored=lambda _: None,
            publish_timeout=TIMEOUT,
        )
        await self._handle(worker, handler, batch)

    async def _handle(self, worker: Worker, handler: Any, batch: list[IncomingMessage]) -> None:
        if batch:
            await batches._handle(batch, handler, cast("Inbox", SimInbox(self.broker, worker)), Stop())

    async def produce(self, worker: Worker, lane: Lane) -> None:
        firer = Firer(
            work=JobWork(lane=lane, names=self.broker.names, metrics=self.producer_metrics),
            pool=_pool(worker),
            publisher=self._publisher(worker),
            precedence=Precedence(),
            lane_metrics=self.producer_metrics.of_lane(lane.name),
            max_batch=3,
            publish_timeout=TIMEOUT,
        )
        try:
            await firer.fire_once()
        except RETRYABLE_ERRORS:
            self.ledger.in_doubt(worker)

    async def dispatch(self, worker: Worker) -> None:
        dispatcher = self._dispatcher(worker)
        try:
            claim = await dispatcher.claimer.claim_once()
        except RETRYABLE_ERRORS:
            return
        self.ledger.claimed(worker, claim.rows, LEASE_MARGIN)
        await _deliver(dispatcher)

    def _dispatcher(self, worker: Worker) -> Dispatcher:
        attempts = AttemptRunner(
            caller=cast("Caller", SimCaller(worker, self.ledger)),
            secrets=Secrets.load(None, None),
            rules=AddressRules((), frozenset()),
            retry_policy=RetryPolicy(timedelta(seconds=20), timedelta(seconds=60)),
            metrics=self.delivery_metrics,
            lease_margin=LEASE_MARGIN,
            chance=lambda: 0.5,
        )
        queue = LocalQueue(3, 3, BreakerPolicy(failures=1_000_000))
        return Dispatcher(
            claimer=Claimer(_pool(worker), queue, LEASE_MARGIN),
            attempts=attempts,
            recorder=Recorder(_pool(worker), self.delivery_metrics, self._announcer(worker)),
            queue=queue,
            metrics=self.delivery_metrics,
        )

    async def announce(self, worker: Worker) -> None:
        with suppress(*RETRYABLE_ERRORS):
            await self._announcer(worker).announce_once()

    def _announcer(self, worker: Worker) -> Announcer:
        broker, publisher = cast("Broker", self.broker), self._publisher(worker)
        return Announcer(_pool(worker), broker, publisher, self.delivery_metrics, TIMEOUT)

    def _publisher(self, worker: Worker) -> Publisher:
        return cast("Publisher", SimPublisher(self.broker, worker))


async def _deliver(dispatcher: Dispatcher) -> None:
    """Deliver the claimed rows one after the other, so that the worker can be stopped between any two steps."""
    dispatcher.recorder.close()  # so that it returns when all is written
    queue = dispatcher.queue
    for leased in queue.start_all(time.monotonic()):
        await dispatcher.deliver(leased)
        await dispatcher.recorder.run(lambda updates: queue.note_written(len(updates)))


def _pool(worker: Worker) -> Pool:
    return cast("Pool", SteppedPool(worker))
