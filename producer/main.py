"""Starts the producer: its settings, logs, health, pool and brokers, and the loops of its lanes."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta

from prometheus_client import CollectorRegistry

from producer.delayed_work import DelayedWork
from producer.firing import Firer
from producer.job_work import JobWork
from producer.lanes import help_lane, poll_lane
from producer.metrics import Metrics
from producer.priority import Precedence
from producer.reporting import ReportedLines
from producer.sampling import Sampler
from producer.settings import ProducerSettings
from producer.store.delayed import DELAYED, DELAYED_OVERDUE, DELAYED_RETRY, DelayedLane
from producer.store.lanes import DUE_NOW, OVERDUE, PRODUCER_PLANNER_SETTINGS, RETRY, Lane
from producer.store.retention import delete_finished, delete_fired
from producer.store.samples import count_overdue
from producer.store.triggers import TRIGGERS
from producer.upkeep import maintain_until_stopped
from producer.wake_listener import WakeListener
from shared.amqp.connection import Broker
from shared.amqp.publisher import Publisher
from shared.amqp.targets import TargetExchanges
from shared.contract.fields import format_instant
from shared.contract.names import Names
from shared.postgres.instances import Instance
from shared.postgres.pool import Pool, ask_until_answered, open_pool, wait_for_schema
from shared.postgres.retention import Retention
from shared.runtime.health import readiness_checks, serve_health
from shared.runtime.limited_lines import summarize_until_stopped
from shared.runtime.logs import configure_logs, get_log
from shared.runtime.loops import Stop, Watchdog, first_of, run_until_stop
from shared.runtime.periodic import MAX_COUNTED_ROWS, sample_until_stopped
from shared.runtime.service import run_service
from shared.runtime.settings import load_settings
from shared.runtime.wakeup import Wakeup


async def produce(settings: ProducerSettings, stop: Stop) -> None:
    """Run all loops of a producer until the stop, and close the stores."""
    registry = CollectorRegistry()
    metrics, names, watchdog = Metrics(registry), Names(settings.amqp_prefix), Watchdog(registry)
    # Two connections: RabbitMQ reads each in order, and an event that is due now must not wait for thousands of overdue
    # ones.
    due_now = Broker(settings.amqp_url, name="duebell-producer-due-now", names=names)
    overdue = Broker(settings.amqp_url, name="duebell-producer", names=names)
    # Delayed messages go to applications' own exchanges. A queue that slows its publishers down, or an exchange over
    # which the broker closes a channel, must not touch the channels and connections of ScheduleDue.
    delayed_due_now = Broker(settings.amqp_url, name="duebell-producer-delayed-due-now", names=names)
    delayed_overdue = Broker(settings.amqp_url, name="duebell-producer-delayed", names=names)
    brokers = [due_now, overdue, delayed_due_now, delayed_overdue]
    # The retry lane has one Firer: however many rows wait there, they take no more than its share. Triggers are few:
    # most are asked for by hand.
    firers_of = {DUE_NOW: settings.claims_in_flight, OVERDUE: settings.claims_in_flight, RETRY: 1, TRIGGERS: 1}
    # One Firer each, so that messages of one due moment leave in the order in which they came.
    delayed_lanes = (DELAYED, DELAYED_OVERDUE, DELAYED_RETRY)
    # One each for both retentions, upkeep, sampler, instance and the readiness check.
    pool_size = sum(firers_of.values()) + len(delayed_lanes) + 6
    wakeups: dict[Lane | DelayedLane, Wakeup] = {lane: Wakeup() for lane in [*firers_of]}
    wakeups |= {lane: Wakeup() for lane in delayed_lanes}
    listener = WakeListener(settings.database_url, settings.database_direct_url, [*wakeups.values()])
    async with (
        open_pool(settings.database_url, "duebell-producer", pool_size, **PRODUCER_PLANNER_SETTINGS) as pool,
        due_now.connected(),
        overdue.connected(),
        delayed_due_now.connected(),
        delayed_overdue.connected(),
        serve_health(
            settings.metrics_host,
            settings.metrics_port,
            watchdog,
            readiness_checks(pool, brokers),
            lambda: {"polling_only": True} if listener.polls_only else {},
        ),
        AsyncExitStack() as publishers,
    ):
        await first_of(_log_overdue(pool), stop.wait())
        if stop.requested:
            return
        precedence, lines = Precedence(), ReportedLines()
        async with asyncio.TaskGroup() as tasks:

            def start(name: str, loop: Coroutine[None, None, None]) -> None:
                tasks.create_task(run_until_stop(watchdog.watched(name, loop), stop, name))

            async def start_lane(
                lane: Lane | DelayedLane, work: JobWork | DelayedWork, broker: Broker, firers: int
            ) -> None:
                helpers_wakeup = Wakeup()
                for number in range(firers):
                    publisher = Publisher(broker, owns_exchanges=isinstance(work, JobWork))
                    firer = Firer(
                        work=work,
                        pool=pool,
                        publisher=await publishers.enter_async_context(publisher),
                        precedence=precedence,
                        lane_metrics=metrics.of_lane(lane.name),
                        max_batch=settings.batch_size,
                        publish_timeout=settings.publish_timeout_seconds,
                        helpers_wakeup=helpers_wakeup,
                        retry_lane_wakeup=wakeups[RETRY],
                    )
                    if number == 0:
                        start(f"lane {lane.name}", poll_lane(firer, broker, wakeups[lane], stop))
                    else:
                        start(f"helper {number} of lane {lane.name}", help_lane(firer, broker, stop))

            for lane, count in firers_of.items():
                work = JobWork(lane=lane, names=names, metrics=metrics, history=settings.history, lines=lines)
                await start_lane(lane, work, overdue if lane.yields_to_due_now else due_now, count)
            for delayed in delayed_lanes:
                broker = delayed_overdue if delayed.yields_to_due_now else delayed_due_now
                targets = TargetExchanges(broker)
                await start_lane(
                    delayed,
                    DelayedWork(lane=delayed, targets=targets, metrics=metrics.delayed, history=settings.history),
                    broker,
                    1,
                )
            start("upkeep", maintain_until_stopped(pool, timedelta(days=settings.retention_days), stop))
            start("instance", Instance(pool, "producer").report_until_stopped(stop))
            start("listener", listener.listen_until_stopped(stop))
            start("summaries", summarize_until_stopped(lines.write_summaries, stop))
            start("sampler", sample_until_stopped(Sampler(pool, metrics).sample_once, stop))
            kept_for = timedelta(days=settings.retention_days)
            for kind, retention in (
                ("jobs", Retention(pool, delete_finished, kept_for, metrics.deleted)),
                ("triggers", Retention(pool, delete_fired, kept_for, metrics.triggers_deleted)),
            ):
                start(f"retention of {kind}", retention.retire_until_stopped(stop))
        lines.write_summaries()


async def _log_overdue(pool: Pool) -> None:
    """Log how many jobs came due during a downtime. Firing them needs nothing else: they are due now."""
    await wait_for_schema(pool)
    overdue = await ask_until_answered(pool, lambda connection: count_overdue(connection, MAX_COUNTED_ROWS))
    get_log().info(
        "recovery",
        overdue_jobs=overdue.jobs,
        at_least=overdue.jobs == MAX_COUNTED_ROWS,
        oldest_due_at=format_instant(overdue.oldest) if overdue.oldest else None,
        newest_due_at=format_instant(overdue.newest) if overdue.newest else None,
    )


def main() -> int:
    """Run the producer process and return its exit code."""
    settings = load_settings(ProducerSettings)
    configure_logs("producer", settings.log_level)
    return run_service(lambda stop: produce(settings, stop), settings.shutdown_grace_seconds)
