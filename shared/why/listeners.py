"""Which queues would get a job's events now, as RabbitMQ's management interface tells it: AMQP has no way to ask.

The interface is optional: without it, or if it does not answer, an explanation says less.
"""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx

from shared.contract.names import Names, due_routing_key
from shared.why.facts import Job, Listener

DEADLINE_SECONDS = 4.0
# Of a topic with more queues than that, the first ones are told.
MAX_QUEUES = 20


class ManagementError(Exception):
    """The management interface cannot be asked, or its answer is not to be understood. The text says why."""


def matches(pattern: str, routing_key: str) -> bool:
    """Tell whether a binding of a topic exchange takes the key: `*` is one word, `#` any number of them."""
    words = [{"*": r"\.[^.]*", "#": r"(?:\.[^.]*)*"}.get(word, re.escape(f".{word}")) for word in pattern.split(".")]
    return re.fullmatch("".join(words), f".{routing_key}") is not None


async def read_listeners(management_url: str, amqp_url: str, names: Names, job: Job) -> list[Listener]:
    """Return the queues that are bound for the job's events. Raises ManagementError."""
    key = due_routing_key(job.topic, has_webhook=job.webhook_url is not None)
    vhost = quote(unquote(urlsplit(amqp_url).path[1:]) or "/", safe="")
    try:
        async with httpx.AsyncClient(base_url=management_url, timeout=DEADLINE_SECONDS, trust_env=False) as client:
            exchange = quote(names.events, safe="")
            bindings = await _get(client, f"/api/exchanges/{vhost}/{exchange}/bindings/source")
            queues = _bound_queues(bindings, key)
            return [_listener(await _get(client, f"/api/queues/{vhost}/{quote(queue, safe='')}")) for queue in queues]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        raise ManagementError(_describe(error)) from None


async def _get(client: httpx.AsyncClient, path: str) -> Any:  # noqa: ANN401 - any JSON
    answer = await client.get(path)
    answer.raise_for_status()
    return answer.json()


def _bound_queues(bindings: Iterable[dict[str, Any]], key: str) -> list[str]:
    bound = {
        binding["destination"]
        for binding in bindings
        if binding["destination_type"] == "queue" and matches(binding["routing_key"], key)
    }
    return sorted(bound)[:MAX_QUEUES]


def _listener(queue: dict[str, Any]) -> Listener:
    limits = queue.get("effective_policy_definition") or {}
    limit = (queue.get("arguments") or {}).get(
        "x-max-length", (limits if isinstance(limits, dict) else {}).get("max-length")
    )
    return Listener(queue=queue["name"], messages=queue.get("messages", 0), max_messages=limit)


def _describe(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"it answered {error.response.status_code}"
    if isinstance(error, httpx.HTTPError):
        return type(error).__name__
    return "its answer cannot be understood"
