"""The names of the contract that an application meets. The exchanges stand behind the environment's prefix, if any."""

COMMANDS_EXCHANGE = "schedule.commands"
EVENTS_EXCHANGE = "schedule.events"

ROUTING_KEYS = {
    "ScheduleRequest": "schedule.request",
    "ScheduleCancel": "schedule.cancel",
    "SchedulePause": "schedule.pause",
    "ScheduleResume": "schedule.resume",
    "ScheduleTrigger": "schedule.trigger",
}


def due_binding(topic: str) -> str:
    """Hears a topic (`*` for one word of it, `#` for any number), with and without a webhook."""
    return f"due.*.{topic}"
