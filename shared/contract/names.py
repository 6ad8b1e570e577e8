"""The names of the contract: exchanges, queues and routing keys. Pure."""

from dataclasses import dataclass

REQUEST_KEY = "schedule.request"
CANCEL_KEY = "schedule.cancel"
PAUSE_KEY = "schedule.pause"
RESUME_KEY = "schedule.resume"
TRIGGER_KEY = "schedule.trigger"


@dataclass(frozen=True, slots=True)
class Names:
    """The fixed names, each behind the prefix that lets several environments share a broker."""

    prefix: str = ""

    @property
    def commands(self) -> str:
        return self.prefix + "schedule.commands"

    @property
    def events(self) -> str:
        return self.prefix + "schedule.events"

    @property
    def unrouted_exchange(self) -> str:
        return self.prefix + "schedule.unrouted"

    @property
    def parking(self) -> str:
        """The exchange in front of the parking queue, so that parking needs no right to write to every queue."""
        return self.prefix + "schedule.parked"

    @property
    def inbox(self) -> str:
        return self.prefix + "scheduler.inbox"

    @property
    def deliveries(self) -> str:
        return self.prefix + "scheduler.deliveries"

    @property
    def unrouted(self) -> str:
        return self.prefix + "scheduler.unrouted"

    @property
    def parked(self) -> str:
        return self.prefix + "scheduler.parked"

    @property
    def exchanges(self) -> tuple[str, ...]:
        return self.commands, self.events, self.unrouted_exchange, self.parking

    @property
    def queues(self) -> tuple[str, ...]:
        return self.inbox, self.deliveries, self.unrouted, self.parked


def due_routing_key(topic: str, *, has_webhook: bool) -> str:
    return f"due.{'webhook' if has_webhook else 'event'}.{topic}"


def delivery_routing_key(topic: str, *, completed: bool) -> str:
    return f"delivery.{'completed' if completed else 'failed'}.{topic}"
