"""The ceiling of firing: the same events as the producer's, encoded beforehand, in batches on one socket, confirmed by
the broker. No database, no encoding, no bookkeeping.
"""

import time

from bench.ceilings.messages import due_events
from bench.ceilings.wire import Wire, encoded
from bench.child import arguments, report

BATCH = 500
BATCHES_IN_FLIGHT = 4


def main() -> None:
    given = arguments()
    messages = due_events(given["count"])
    batches = [messages[start : start + BATCH] for start in range(0, len(messages), BATCH)]
    ready = [(encoded(batch), len(batch)) for batch in batches]
    wire = Wire(given["amqp_url"])
    cpu, began = time.process_time(), time.perf_counter()
    for frames, count in ready:
        wire.wait_until_at_most((BATCHES_IN_FLIGHT - 1) * BATCH)
        wire.publish(frames, count)
    wire.wait_until_at_most(0)
    report(len(messages), time.perf_counter() - began, time.process_time() - cpu)


if __name__ == "__main__":
    main()
