"""The floor of lateness: a process that does nothing but sleep until a moment and publish one event, confirmed, before
it sleeps again. No database, no event loop. What it is late by is the machine's and the broker's doing.
"""

import time
from datetime import UTC, datetime

import orjson
from msgspec.structs import replace

from bench.ceilings.messages import due_events
from bench.ceilings.wire import Wire, encoded
from bench.child import answer, arguments
from shared.amqp.message import OutgoingMessage


def main() -> None:
    given = arguments()
    [pattern] = due_events(1)
    wire = Wire(given["amqp_url"])
    for number in range(given["count"]):
        due = given["begin"] + number * given["pause"]
        frames = encoded([_event(pattern, given["routing_key"], due)])
        time.sleep(max(0.0, due - time.time()))
        wire.publish(frames, 1)
        wire.wait_until_at_most(0)
    wire.close()
    answer(given["count"])


def _event(pattern: OutgoingMessage, routing_key: str, due: float) -> OutgoingMessage:
    body = orjson.dumps(orjson.loads(pattern.body) | {"due_at": datetime.fromtimestamp(due, UTC).isoformat()})
    return replace(pattern, routing_key=routing_key, body=body)


if __name__ == "__main__":
    main()
