"""The synchronous client: a whole life of a job, from several threads, and an error that comes through."""

import os
from concurrent.futures import ThreadPoolExecutor

from duebell import Rejected, SomeFailed, request
from duebell.sync import Scheduler

with Scheduler(os.environ["AMQP_URL"], os.environ["AMQP_PREFIX"]) as duebell:
    for revision in (1, 2):
        print(duebell.reschedule("job", at="2030-01-01T00:00:00Z", revision=revision).outcome)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: duebell.schedule(f"job-{number}", every_seconds=3600), range(20)))
    print(duebell.schedule_many(request(f"many-{number}", cron="@daily") for number in range(50)))
    print(duebell.cancel("job").outcome)
    print(duebell.status("job"), duebell.status("no such job"))
    try:
        duebell.schedule("bad", cron="61 * * * *")
    except Rejected as rejected:
        print("refused", rejected.errors[0])
    try:
        duebell.schedule_many([request("good", cron="@daily"), request("worse", cron="61 * * * *")])
    except SomeFailed as some:
        print("sent", some.sent, "failed", *some.failures)
