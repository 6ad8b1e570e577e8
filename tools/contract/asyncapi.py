"""The AsyncAPI document: which message goes where, and what is in it. As Duebell sees it: it receives commands, and
sends events and replies.
"""

from typing import Any

from shared.contract.messages import DUE_TYPE
from shared.contract.names import (
    BULK_KEY,
    CANCEL_KEY,
    PAUSE_KEY,
    QUERY_KEY,
    REQUEST_KEY,
    RESUME_KEY,
    TRIGGER_KEY,
    Names,
    delivery_routing_key,
    due_routing_key,
)
from shared.version import VERSION
from tools.contract.examples import EXAMPLES
from tools.contract.schemas import COMMANDS, MODELS, all_schemas

NAMES = Names()
REPLY = "ScheduleReply"
DESCRIPTION = """\
A scheduler that applications use by publishing AMQP messages: ring me at this moment, or by this rule. Every exchange
name may stand behind a prefix (AMQP_PREFIX). Commands with unknown fields are refused; readers of events ignore fields
that they do not know.

`type`, `correlation_id`, `reply_to`, `user_id`, `app_id` and `message_id` are AMQP properties (fields of
basic.properties), not entries of its `headers`: each message names its own under `x-amqp-properties`. A command without
the property reply_to gets no reply. Under `headers` are real headers alone.

**To ask**: publish a command to the exchange schedule.commands with its routing key, persistent and `mandatory`, and
wait for the broker's confirm. To be told what became of it, name a queue of your own in `reply_to`; RabbitMQ's direct
reply-to will do. What is refused and has no `reply_to` is told in scheduler.parked and in Duebell's log alone.

**To listen**: declare a durable queue of your own, and bind it to the exchange schedule.events with `due.*.<topic>`:
the second word is `webhook` for jobs that have one, and `event` for the others. In a binding `*` stands for one word
and `#` for any number: `due.*.invoices.#` takes invoices and all topics below it, `due.#` everything. An event goes to
the queues that are bound when it is published. Of a ScheduleDue that no queue is bound for a copy is kept in
scheduler.unrouted for an operator, and its job goes on: so bind before you ask. Acknowledge after the work, and act
once per `idempotency_key`.

**An id lives again**: the `revision` decides. A request with a higher one replaces the schedule of its id, or uses an
id again that has rung for the last time or was cancelled. One with the same or a lower revision is a duplicate and
changes nothing, so a command may be sent again when its fate is unknown. A cancel closes the revisions up to its own,
also for requests that come later. Those who number nothing can take the microseconds of a clock for every command."""
_HOST = {"host": {"description": "the RabbitMQ that Duebell uses", "default": "localhost"}}
_VHOST = {"vhost": {"description": "its virtual host, with / written as %2F", "default": "%2F"}}
KEYS = {
    "ScheduleRequest": REQUEST_KEY,
    "ScheduleCancel": CANCEL_KEY,
    "SchedulePause": PAUSE_KEY,
    "ScheduleResume": RESUME_KEY,
    "ScheduleTrigger": TRIGGER_KEY,
    "ScheduleBulk": BULK_KEY,
    "ScheduleQuery": QUERY_KEY,
}
_TOPIC = {"topic": {"description": "the job's topic; its dots make further words of the routing key"}}
# name of the channel: address, message, parameters
_EVENTS: dict[str, tuple[str, str]] = {
    "due": (due_routing_key("{topic}", has_webhook=False), "ScheduleDue"),
    "dueWithWebhook": (due_routing_key("{topic}", has_webhook=True), "ScheduleDue"),
    "deliveryCompleted": (delivery_routing_key("{topic}", completed=True), "DeliveryCompleted"),
    "deliveryFailed": (delivery_routing_key("{topic}", completed=False), "DeliveryFailed"),
}


def asyncapi() -> dict[str, Any]:
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Duebell",
            "version": VERSION,
            "description": DESCRIPTION,
        },
        "defaultContentType": "application/json",
        "servers": {"broker": _server("amqp", 5672), "brokerWithTls": _server("amqps", 5671)},
        "channels": _channels(),
        "operations": _operations(),
        "components": {
            "messages": {model.__name__: _message(model.__name__, model.__doc__ or "") for model in MODELS},
            "schemas": all_schemas(),
            "securitySchemes": {"user": {"type": "userPassword", "description": "of RabbitMQ"}},
        },
    }


def _server(protocol: str, port: int) -> dict[str, Any]:
    return {
        "host": f"{{host}}:{port}",
        "pathname": "/{vhost}",
        "protocol": protocol,
        "protocolVersion": "0-9-1",
        "variables": {**_HOST, **_VHOST},
        "security": [_ref("components", "securitySchemes", "user")],
    }


def _channels() -> dict[str, Any]:
    commands = {
        _channel_of(name): _channel(key, name, NAMES.commands, f"publish to {NAMES.commands} with this routing key")
        for name, key in KEYS.items()
    }
    events = {
        channel: {
            **_channel(address, message, NAMES.events, f"bind a queue to {NAMES.events} with {_binding(address)}"),
            "parameters": _TOPIC,
        }
        for channel, (address, message) in _EVENTS.items()
    }
    replies = {
        "replies": {
            "address": None,
            "description": "the queue that the command named in its AMQP property reply_to",
            "messages": _named(REPLY),
        }
    }
    return {**commands, **replies, **events}


def _binding(address: str) -> str:
    """Return a binding that takes the events of this channel; those of due jobs with and without a webhook."""
    first, second, _ = address.split(".", 2)
    return f"{first}.{'*' if first == 'due' else second}.<topic>, or .# at its end for all topics below"


def _channel(address: str, message: str, exchange: str, description: str) -> dict[str, Any]:
    binding = {"is": "routingKey", "exchange": {"name": exchange, "type": "topic", "durable": True, "vhost": "/"}}
    return {
        "address": address,
        "description": description,
        "messages": _named(message),
        "bindings": {"amqp": {**binding, "bindingVersion": "0.3.0"}},
    }


def _operations() -> dict[str, Any]:
    receive = {
        f"receive{name}": {
            "action": "receive",
            "summary": (model.__doc__ or "").splitlines()[0],
            "channel": _ref("channels", _channel_of(name)),
            "messages": [_ref("channels", _channel_of(name), "messages", name)],
            "bindings": {"amqp": {"deliveryMode": 2, "mandatory": True, "bindingVersion": "0.3.0"}},
            # Without an address: AsyncAPI can take one from a header or the payload alone, and reply_to is neither.
            "reply": {
                "channel": _ref("channels", "replies"),
                "messages": [_ref("channels", "replies", "messages", REPLY)],
            },
        }
        for model in COMMANDS
        for name in (model.__name__,)
    }
    send = {
        f"send{channel[0].upper()}{channel[1:]}": {
            "action": "send",
            "channel": _ref("channels", channel),
            "messages": [_ref("channels", channel, "messages", message)],
            "bindings": {"amqp": {"deliveryMode": 2, "mandatory": True, "bindingVersion": "0.3.0"}},
        }
        for channel, (_, message) in _EVENTS.items()
    }
    return {**receive, **send}


def _message(name: str, doc: str) -> dict[str, Any]:
    headers = _headers(name)
    return {
        "name": name,
        "title": name,
        "summary": doc.splitlines()[0],
        "contentType": "application/json",
        **({"headers": {"type": "object", "properties": headers}} if headers else {}),
        "bindings": {"amqp": {"messageType": name, "bindingVersion": "0.3.0"}},
        "x-amqp-properties": _properties(name),
        "payload": _ref("components", "schemas", name),
        "examples": [{"name": example, "payload": payload} for example, payload in EXAMPLES[name].items()],
    }


def _headers(name: str) -> dict[str, Any]:
    """Describe entries of the AMQP property `headers`."""
    trace = {"traceparent": _text("W3C trace context; goes from the request to every event that comes of it")}
    if name in KEYS:
        return trace
    if name == REPLY:
        return {}
    return {"idempotency-key": _text("the same as in the body"), **trace}


def _properties(name: str) -> dict[str, Any]:
    """Describe AMQP properties beside `headers`, by an extension: AsyncAPI has a word for the type alone."""
    kind = {"type": {"const": name, "description": "missing: the routing key decides"}}
    correlation = {"correlation_id": _text("of the command, and so of its reply")}
    if name in KEYS:
        return {
            **kind,
            **correlation,
            "reply_to": _text("queue for the ScheduleReply; missing: no reply"),
            "app_id": _text("the name of the application, for the history of the job"),
            "user_id": _text("the user of the connection, who then owns the job; missing: any user may command it"),
        }
    if name == REPLY:
        return {**kind, **correlation}
    copies = {"message_id": _text("the idempotency key: the same in every copy")} if name == DUE_TYPE else {}
    return {**kind, **copies}


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def _named(message: str) -> dict[str, Any]:
    return {message: _ref("components", "messages", message)}


def _channel_of(message: str) -> str:
    return message[0].lower() + message[1:]


def _ref(*path: str) -> dict[str, str]:
    return {"$ref": "#/" + "/".join(path)}
