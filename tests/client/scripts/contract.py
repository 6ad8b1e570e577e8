"""Reports what the installed client takes for the contract, and what else can be imported beside it."""

import importlib.metadata
import importlib.util
import json

from duebell import messages, names

MODELS = (
    messages.ScheduleRequest,
    messages.ScheduleCancel,
    messages.SchedulePause,
    messages.ScheduleResume,
    messages.ScheduleTrigger,
    messages.ScheduleQuery,
    messages.ScheduleBulk,
    messages.ScheduleDue,
    messages.ScheduleReply,
)
SERVICES = ("consumer", "producer", "delivery", "shared", "stack", "tests")

report = {
    "schemas": {model.__name__: model.model_json_schema() for model in MODELS},
    "exchanges": [names.COMMANDS_EXCHANGE, names.EVENTS_EXCHANGE],
    "keys": names.ROUTING_KEYS,
    "installed": sorted(each.name.lower() for each in importlib.metadata.distributions()),
    "services": [name for name in SERVICES if importlib.util.find_spec(name)],
}
print(json.dumps(report))
