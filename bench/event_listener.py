"""Reads due events in a process of its own, on a bare socket, so that the listener adds little lateness. Reports for
each event when it was due and how many milliseconds later it came, by routing key.
"""

import time
from collections import defaultdict
from datetime import datetime

import orjson

from bench.ceilings.wire import Wire
from bench.child import answer, arguments


def main() -> None:
    given = arguments()
    late: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for heard, (routing_key, body) in enumerate(Wire(given["amqp_url"]).listen(given["queue"]), start=1):
        due = datetime.fromisoformat(orjson.loads(body)["due_at"]).timestamp()
        late[routing_key].append((due, (time.time() - due) * 1000))
        if heard == given["count"]:
            break
    answer(late)


if __name__ == "__main__":
    main()
