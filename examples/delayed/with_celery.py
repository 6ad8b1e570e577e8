"""Celery tasks with `countdown` or `eta`, held by Duebell and not by a worker. AMQP_URL names the broker; AMQP_PREFIX,
if Duebell has one there.

By itself, Celery sends such a task at once, and a worker keeps it in its memory until it is due. Here it goes to the
delay exchange instead, and reaches a worker when it is due. `self.retry(countdown=…)` takes the same way.

    celery -A with_celery worker --pool solo
    python with_celery.py
"""

import os
import time
from datetime import UTC, datetime
from typing import Any

from celery import Celery, Task
from celery.result import AsyncResult
from kombu import Exchange, Queue

NAME = "my-app.later.celery"  # an operator has run: duebell delay open my-app.later.celery
DELAY_EXCHANGE = f"{os.environ.get('AMQP_PREFIX', '')}delay.{NAME}"


class DelayedTask(Task):  # type: ignore[misc] # Celery has no types
    """A task that goes to the delay exchange if it has a countdown or an eta."""

    def apply_async(
        self,
        args: Any = None,  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
        *positional: Any,  # noqa: ANN401
        countdown: float | None = None,
        eta: datetime | None = None,
        **options: Any,  # noqa: ANN401
    ) -> AsyncResult:
        if eta is not None:
            countdown = (eta.astimezone(UTC) - datetime.now(UTC)).total_seconds()
        if countdown is not None and countdown > 0:
            headers = {**(options.get("headers") or {}), "x-delay": round(countdown * 1000)}
            options |= {"exchange": DELAY_EXCHANGE, "routing_key": NAME, "headers": headers}
        return super().apply_async(args, kwargs, *positional, **options)


app = Celery(broker=os.environ["AMQP_URL"], task_cls=DelayedTask)
app.conf.update(
    broker_transport_options={"confirm_publish": True},
    task_queues=[
        Queue(
            NAME,
            Exchange(NAME, "topic"),
            routing_key=NAME,
            queue_arguments={"x-queue-type": "quorum", "x-delivery-limit": 100_000},
        )
    ],
    task_default_queue=NAME,
    task_ignore_result=True,
    worker_enable_remote_control=False,  # it would need rights to exchanges beside my-app.…
    worker_detect_quorum_queues=True,
)


@app.task(bind=True, name="remind", max_retries=1)  # type: ignore[untyped-decorator]
def remind(self: DelayedTask, text: str, sent_at: float) -> None:
    print(f"received: {text}, after {time.time() - sent_at:.3f} s, attempt {self.request.retries + 1}", flush=True)
    if self.request.retries == 0:
        raise self.retry(countdown=1)


if __name__ == "__main__":
    remind.apply_async(["pay the invoice", time.time()], countdown=1)
    print("sent")
