"""Declares the exchanges and queues. Every service declares all of them at start, so that applications can publish as
soon as one service is up, and no message is lost for lack of a queue. A service whose user may not declare checks that
they exist; an operator creates them with `python -m shared.topology`.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel
from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity
from pamqp.common import FieldTable

from shared.contract.names import MASSTRANSIT_TOPIC, Names, due_routing_key
from shared.errors import TopologyMissing

# By default RabbitMQ 4 drops a message after 20 deliveries, older versions never. Duebell relies on neither: a crash
# loop must not drop messages, so the limit is high, and a message that reaches it is parked.
DELIVERY_LIMIT = 100_000

# Events without a bound queue are kept for inspection, within limits.
UNROUTED_MAX_LENGTH = 100_000
UNROUTED_MAX_BYTES = 512 * 1024 * 1024
UNROUTED_MAX_AGE_MS = 7 * 24 * 3600 * 1000

Kind = Literal["exchange", "queue"]


async def declare_topology(channel: AbstractChannel, names: Names) -> None:
    """Declare all exchanges and queues; it may be repeated. Afterwards no message published to them is dropped."""
    parked_limits: FieldTable = {"x-queue-type": "quorum", "x-delivery-limit": DELIVERY_LIMIT}
    parked = await channel.declare_queue(names.parked, durable=True, arguments=parked_limits)
    await parked.bind(await channel.declare_exchange(names.parking, ExchangeType.FANOUT, durable=True))

    # Version 0.1 declared the events exchange with this alternate exchange, and bound the queue to it. The arguments of
    # an exchange cannot be changed, so the alternate exchange stays, without a queue. The broker then returns an event
    # that no queue is bound for, the producer knows, and publishes a copy to the other exchange.
    alternate = await channel.declare_exchange(names.alternate, ExchangeType.FANOUT, durable=True)
    unrouted_copies = await channel.declare_exchange(names.unrouted_copies, ExchangeType.FANOUT, durable=True)
    unrouted = await channel.declare_queue(
        names.unrouted,
        durable=True,
        arguments={
            "x-queue-type": "quorum",
            "x-delivery-limit": DELIVERY_LIMIT,
            "x-max-length": UNROUTED_MAX_LENGTH,
            "x-max-length-bytes": UNROUTED_MAX_BYTES,
            "x-message-ttl": UNROUTED_MAX_AGE_MS,
        },
    )
    await unrouted.bind(unrouted_copies)
    await unrouted.unbind(alternate)

    commands = await channel.declare_exchange(names.commands, ExchangeType.TOPIC, durable=True)
    events = await channel.declare_exchange(
        names.events, ExchangeType.TOPIC, durable=True, arguments={"alternate-exchange": names.alternate}
    )
    for queue_name, exchange, binding in (
        (names.inbox, commands, "#"),
        (names.deliveries, events, "due.webhook.#"),
    ):
        queue = await channel.declare_queue(queue_name, durable=True, arguments=_dead_letters_to_parked(names))
        await queue.bind(exchange, binding)

    # A delayed message may have an `expiration` of its own, which is to count from the moment when it is due. RabbitMQ
    # applies it to this queue, too. A message that expires here goes to the other queue, and the consumer takes it from
    # there. Delay exchanges are bound by `declare_delay_exchange`.
    expired = await channel.declare_queue(names.expired, durable=True, arguments=_dead_letters_to_parked(names))
    await expired.bind(await channel.declare_exchange(names.expired_exchange, ExchangeType.FANOUT, durable=True))
    delayed = await channel.declare_queue(
        names.delayed,
        durable=True,
        arguments={
            **_dead_letters(names.expired_exchange),
            "x-queue-type": "quorum",
            "x-delivery-limit": DELIVERY_LIMIT,
        },
    )
    # As MassTransit declares the exchanges that it sends to: another type would be refused.
    await delayed.bind(await channel.declare_exchange(names.masstransit, ExchangeType.FANOUT, durable=True))
    await delayed.bind(events, due_routing_key(MASSTRANSIT_TOPIC, has_webhook=False))
    for target in names.delay_targets:
        await declare_delay_exchange(channel, names, target)


async def declare_delay_exchange(channel: AbstractChannel, names: Names, target: str) -> None:
    """Declare the delay exchange of a target; it may be repeated. Afterwards messages can be published to it."""
    # A topic exchange, so that permissions on routing keys can be given as for any other.
    exchange = await channel.declare_exchange(names.delay_exchange(target), ExchangeType.TOPIC, durable=True)
    queue = await channel.get_queue(names.delayed, ensure=False)
    await queue.bind(exchange, "#")


async def delete_delay_exchange(channel: AbstractChannel, names: Names, target: str) -> None:
    """Delete the delay exchange of a target; it may be repeated. Messages that are in the queue already are held."""
    await channel.exchange_delete(names.delay_exchange(target))


async def find_topology(look: Callable[[str, Kind], Awaitable[None]], names: Names) -> None:
    """Check that all exchanges and queues exist that the user may see. Raises TopologyMissing.

    `look` declares one passively, on a channel of its own, because an error closes the channel. Up to RabbitMQ 4.2.5 a
    passive declaration needs no right. Later versions refuse it for names that the user has no right to: those are
    other services' business.
    """
    kinds: tuple[tuple[Kind, Sequence[str]], ...] = (("exchange", names.exchanges), ("queue", names.queues))
    for kind, of_kind in kinds:
        for name in of_kind:
            try:
                await look(name, kind)
            except ChannelAccessRefused:
                continue
            except ChannelNotFoundEntity:
                raise TopologyMissing(
                    f"{name} is not there, and this user may not declare it: "
                    "run python -m shared.topology as one who may"
                ) from None


async def declare_passively(channel: AbstractChannel, name: str, kind: Kind) -> None:
    """Look for one exchange or queue. An error closes the channel."""
    if kind == "exchange":
        await channel.declare_exchange(name, passive=True)
    else:
        await channel.declare_queue(name, passive=True)


def _dead_letters_to_parked(names: Names) -> FieldTable:
    return {
        "x-queue-type": "quorum",
        "x-delivery-limit": DELIVERY_LIMIT,
        **_dead_letters(""),
        "x-dead-letter-routing-key": names.parked,
    }


def _dead_letters(exchange: str) -> FieldTable:
    return {
        "x-dead-letter-exchange": exchange,
        # By default dead-lettering may lose messages; at-least-once waits for the confirm of the target queue. It
        # requires reject-publish, which never rejects here because the queue has no length limit.
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
