"""Hears due events in a process of its own, on a bare socket, so that it is not the listener that is late: milliseconds
from due_at to here, by routing key.
"""

import time
from collections import defaultdict
from datetime import datetime

import orjson

from bench.ceilings.wire import Wire
from bench.child import answer, arguments


def main() -> None:
    given = arguments()
    late: dict[str, list[float]] = defaultdict(list)
    for heard, (routing_key, body) in enumerate(Wire(given["amqp_url"]).listen(given["queue"]), start=1):
        due_at = datetime.fromisoformat(orjson.loads(body)["due_at"])
        late[routing_key].append((time.time() - due_at.timestamp()) * 1000)
        if heard == given["count"]:
            break
    answer(late)


if __name__ == "__main__":
    main()
