"""Sends many requests at a time, and reports what their verdicts were."""

import asyncio
import os
from typing import Any

from duebell import Rejected, Scheduler, SomeFailed, request


async def main() -> None:
    async with Scheduler(os.environ["AMQP_URL"], os.environ["AMQP_PREFIX"]) as duebell:
        print(await duebell.schedule_many(request(f"many-{n}", cron="@daily") for n in range(1000)), "sent")
        requests: Any = [request("first", cron="@daily"), {"id": "no request"}, request("last", cron="@daily")]
        try:
            await duebell.schedule_many(requests)
        except TypeError as mistake:
            print(mistake)
        mixed = [request(f"more-{n}", cron="@daily") for n in range(99)]
        mixed.insert(50, request("bad", cron="61 * * * *"))
        try:
            await duebell.schedule_many(mixed, in_flight=20)
        except SomeFailed as some:
            for job_id, error in some.failures.items():
                reasons = error.errors if isinstance(error, Rejected) else [repr(error)]
                print(f"{some.sent} sent, refused: {job_id}, {'; '.join(reasons)}")
            print(some)


asyncio.run(main())
