"""The broker of the simulation. As RabbitMQ, it keeps every message that it has confirmed and delivers again what was
not acknowledged. The state machine tells it when to reorder, duplicate or refuse messages and when to lose a
connection, before a publish or ack or after it.
"""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.amqp.message import IncomingMessage, OutgoingMessage, PublishResult
from shared.contract.names import Names
from tests.simulation.ledger import Ledger
from tests.simulation.worker import Fate, Worker

REPLY_QUEUE = "replies"


@dataclass(slots=True)
class SimBroker:
    ledger: Ledger
    names: Names = field(default_factory=Names)
    is_up: bool = True
    queues: dict[str, list[IncomingMessage]] = field(default_factory=dict)
    _held: dict[int, tuple[str, list[IncomingMessage]]] = field(default_factory=dict)  # by worker
    _tags: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.queues = {self.names.inbox: [], self.names.deliveries: []}

    def route(self, message: OutgoingMessage, worker: Worker | None = None) -> None:
        """Put the message into every queue that is bound for it."""
        if message.exchange == self.names.commands:
            self._put(self.names.inbox, message)
        elif message.exchange == self.names.events:
            if worker is not None:
                self.ledger.event(message, worker)
            if message.routing_key.startswith("due.webhook."):
                self._put(self.names.deliveries, message)
        elif message.exchange == self.names.parking:
            self.ledger.parked.append(message)
        elif message.routing_key == REPLY_QUEUE:
            self.ledger.reply(message)

    def duplicate(self, which: int) -> None:
        """Copy one message of each queue, as a publisher does that publishes again after a lost confirm."""
        for messages in self.queues.values():
            if messages:
                messages.append(messages[which % len(messages)])

    def hand_out(self, worker: Worker, queue: str, picks: Sequence[int]) -> list[IncomingMessage]:
        """Deliver messages of the queue to the worker, in the order that `picks` chooses."""
        messages = self.queues[queue]
        taken = [messages.pop(pick % len(messages)) for pick in picks if messages]
        self._held[worker.number] = (queue, taken)
        return taken

    def take_back(self, worker: Worker) -> None:
        queue, messages = self._held.pop(worker.number, ("", []))
        if messages:
            self.queues[queue][:0] = messages

    def acknowledged(self, worker: Worker) -> None:
        self._held.pop(worker.number, None)

    def _put(self, queue: str, message: OutgoingMessage) -> None:
        self.queues[queue].append(
            IncomingMessage(
                tag=next(self._tags),
                body=message.body,
                exchange=message.exchange,
                routing_key=message.routing_key,
                type=message.type,
                content_type=message.content_type,
                content_encoding=None,
                priority=None,
                message_id=message.message_id,
                app_id=None,
                correlation_id=message.correlation_id,
                reply_to=message.reply_to,
                timestamp=message.timestamp,
                headers=message.headers,
                unreadable=None,
            )
        )


@dataclass(frozen=True, slots=True)
class SimPublisher:
    """The services get it in place of their Publisher."""

    broker: SimBroker
    worker: Worker

    async def publish(self, messages: Sequence[OutgoingMessage], timeout: float) -> list[PublishResult]:
        del timeout
        if not messages:
            return []
        fate = await self.worker.stop_before(f"publish {messages[0].routing_key}")
        results = [_publish_result(fate, index) for index in range(len(messages))]
        for message, result in zip(messages, results, strict=True):
            if result is PublishResult.CONFIRMED or fate is Fate.LOST_AFTER:
                self.broker.route(message, self.worker)
            elif message.routing_key == REPLY_QUEUE:
                self.broker.ledger.lost_replies.add(json.loads(message.body)["id"])
        if fate in {Fate.LOST_AFTER, Fate.MIXED}:
            self.broker.ledger.in_doubt(self.worker)
        return results

    async def recover_channel(self) -> None:
        pass


def _publish_result(fate: Fate, index: int) -> PublishResult:
    match fate:
        case Fate.REFUSED:
            return PublishResult.NACKED
        case Fate.MIXED:
            return (PublishResult.CONFIRMED, PublishResult.NACKED, PublishResult.CONFIRMED, PublishResult.UNKNOWN)[
                index % 4
            ]
        case Fate.LOST_BEFORE | Fate.LOST_AFTER:
            return PublishResult.UNKNOWN
        case _:
            return PublishResult.CONFIRMED


@dataclass(slots=True)
class SimInbox:
    """The services get it in place of their Inbox."""

    broker: SimBroker
    worker: Worker
    is_lost: bool = False

    async def sleep(self, seconds: float) -> None:
        del seconds

    async def acknowledge(self, batch: list[IncomingMessage]) -> None:
        del batch
        fate = await self.worker.stop_before("acknowledge")
        if fate is Fate.LOST_BEFORE:
            self.lose()
            raise ConnectionError("the channel was lost")
        self.broker.acknowledged(self.worker)
        if fate is Fate.LOST_AFTER:
            self.lose()
            raise ConnectionError("the channel was lost")

    def lose(self) -> None:
        self.is_lost = True
        self.broker.take_back(self.worker)
