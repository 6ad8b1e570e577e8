"""The names that the contract fixes: exchanges, queues and routing keys. Pure."""

from collections.abc import Sequence

REQUEST_KEY = "schedule.request"
CANCEL_KEY = "schedule.cancel"
PAUSE_KEY = "schedule.pause"
RESUME_KEY = "schedule.resume"
TRIGGER_KEY = "schedule.trigger"
QUERY_KEY = "schedule.query"
BULK_KEY = "schedule.bulk"

# Headers of a message that is published to a delay exchange.
DELAY_HEADER = b"x-delay"
DELIVER_AT_HEADER = b"x-deliver-at"
NAME_HEADER = b"duebell-id"
# The user who sent it, as RabbitMQ has checked. RabbitMQ takes the property `user_id` from that user alone.
USER_HEADER = b"duebell-user-id"

# How RabbitMQ's direct reply addresses begin. They are routing keys of the default exchange.
DIRECT_REPLY_PREFIX = "amq.rabbitmq.reply-to."

# Events of MassTransit's recurring messages. They go to the consumer, which sends the messages.
MASSTRANSIT_TOPIC = "duebell-masstransit"

# Of an event: the key of its occurrence, the same in every copy.
IDEMPOTENCY_HEADER = "idempotency-key"
# Of a command: the name of the person who acts, as the command line and the console send it.
OPERATOR_HEADER = "duebell-operator"
# A copy in `scheduler.unrouted` has the routing key of its event in this header.
UNROUTED_KEY_HEADER = "duebell-routing-key"


class Names:
    """Names the exchanges and queues. With a prefix, several environments share one broker. `delay_targets` are the
    exchanges whose delay exchanges belong to the topology, because a setting names them.
    """

    def __init__(self, prefix: str = "", delay_targets: Sequence[str] = ()) -> None:
        self.prefix = prefix
        self.commands = prefix + "schedule.commands"
        self.events = prefix + "schedule.events"
        # The alternate exchange of `events`. No queue is bound to it: see shared.amqp.topology.
        self.alternate = prefix + "schedule.unrouted"
        # It is in front of the queue `unrouted`, so that a producer needs no right to write to every queue.
        self.unrouted_copies = prefix + "schedule.unrouted-copies"
        # It is in front of the parking queue, so that parking needs no right to write to every queue.
        self.parking = prefix + "schedule.parked"
        self.inbox = prefix + "scheduler.inbox"
        self.deliveries = prefix + "scheduler.deliveries"
        self.delayed = prefix + "scheduler.delayed"
        # For messages whose own `expiration` ran out before a consumer took them from `delayed`: see consumer.delayed.
        self.expired_exchange = prefix + "schedule.delayed-expired"
        self.expired = prefix + "scheduler.delayed-expired"
        # For MassTransit applications, which name the exchange for each message in its body: see consumer.masstransit.
        self.masstransit = prefix + "schedule.masstransit"
        self.unrouted = prefix + "scheduler.unrouted"
        self.parked = prefix + "scheduler.parked"

        # A delay exchange is named after the exchange to which its messages are published when they are due.
        self.delay_prefix = prefix + "delay."
        self.delay_targets = tuple(delay_targets)

        self.exchanges = (
            self.commands,
            self.events,
            self.alternate,
            self.unrouted_copies,
            self.parking,
            self.expired_exchange,
            self.masstransit,
            *(self.delay_exchange(target) for target in self.delay_targets),
        )
        self.queues = (self.inbox, self.deliveries, self.delayed, self.expired, self.unrouted, self.parked)

    def delay_exchange(self, target: str) -> str:
        """Return the name of the exchange whose messages are published to `target` when they are due."""
        return self.delay_prefix + target


def due_routing_key(topic: str, *, has_webhook: bool) -> str:
    return f"due.{'webhook' if has_webhook else 'event'}.{topic}"


def delivery_routing_key(topic: str, *, completed: bool) -> str:
    return f"delivery.{'completed' if completed else 'failed'}.{topic}"
