"""The names of the contract that an application meets. The exchanges stand behind the environment's prefix, if any."""

import re

COMMANDS_EXCHANGE = "schedule.commands"
EVENTS_EXCHANGE = "schedule.events"
# The broker takes names of 255 bytes, and the queue of failed events has the same one with .failed behind it.
MAX_QUEUE_BYTES = 255 - len(".failed")

ROUTING_KEYS = {
    "ScheduleRequest": "schedule.request",
    "ScheduleCancel": "schedule.cancel",
    "SchedulePause": "schedule.pause",
    "ScheduleResume": "schedule.resume",
    "ScheduleTrigger": "schedule.trigger",
    "ScheduleQuery": "schedule.query",
    "ScheduleBulk": "schedule.bulk",
}


_BINDING = re.compile(r"(?:[A-Za-z0-9_-]+|[*#])(?:[.](?:[A-Za-z0-9_-]+|[*#]))*", re.ASCII)
_ROUTING_KEY = re.compile(r"due[.](?:event|webhook|[*])[.](?P<topic>.+)")


def check_binding(topic: str) -> None:
    """Raise ValueError for what is no topic, because it would be listened to in silence and never ring."""
    if not isinstance(topic, str) or not _BINDING.fullmatch(topic):
        raise ValueError(f"topic: {topic!r} must be words joined by dots; * stands for one word, # for any number")
    if found := _ROUTING_KEY.fullmatch(topic):
        raise ValueError(f"topic: {topic!r} is a routing key, and a topic is needed: {found['topic']!r}")


def due_binding(topic: str) -> str:
    """Return the binding key that takes a topic's events, with and without a webhook. In a topic `*` stands for one
    word, `#` for any number.
    """
    return f"due.*.{topic}"


def check_queue(name: str) -> None:
    """Refuse a name that the broker would refuse, in words that name the argument."""
    if not 1 <= len(name.encode()) <= MAX_QUEUE_BYTES or name.startswith("amq."):
        raise ValueError(f"queue: must be a name of 1 to {MAX_QUEUE_BYTES} bytes that does not begin with amq.")
