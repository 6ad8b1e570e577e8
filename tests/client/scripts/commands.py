"""Sends what its standard argument asks for, a list of [method, arguments, keywords], and reports what came of each."""

import asyncio
import json
import os
import sys
from typing import Any

from duebell import BulkProgress, DuebellError, JobState, Scheduler, ScheduleReply


async def report(duebell: Scheduler, method: str, arguments: list[Any], keywords: dict[str, Any]) -> None:
    try:
        result = await getattr(duebell, method)(*arguments, **keywords)
    except DuebellError as error:
        reasons = list(getattr(error, "errors", ()))
        print(json.dumps({"error": type(error).__name__, "errors": reasons, "text": str(error)}))
    else:
        is_model = isinstance(result, ScheduleReply | JobState | BulkProgress)
        print(result.model_dump_json() if is_model else json.dumps({"result": result}))


async def main() -> None:
    owner = "OWNER" in os.environ
    async with Scheduler(os.environ["AMQP_URL"], os.environ["AMQP_PREFIX"], owner=owner) as duebell:
        for method, arguments, keywords in json.loads(sys.argv[1]):
            await report(duebell, method, arguments, keywords)


asyncio.run(main())
