"""Starts the consumer: settings, logs, health, the connections to Postgres and RabbitMQ, and the intake loop."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from prometheus_client import CollectorRegistry

from consumer.bulks import BulkWork
from consumer.commands.webhook import WebhookRules
from consumer.delayed import DelayedHandler
from consumer.handler import BatchHandler
from consumer.masstransit import MassTransit
from consumer.metrics import Metrics
from consumer.settings import ConsumerSettings
from consumer.store.bulks import delete_bulks
from shared.amqp.connection import Broker, virtual_host_of
from shared.amqp.consuming import Intake, consume_until_stopped
from shared.amqp.publisher import Publisher
from shared.contract.names import Names
from shared.postgres.delay_exchanges import open_exchanges
from shared.postgres.instances import Instance
from shared.postgres.pool import Pool, ask_until_answered, open_pool, wait_for_schema
from shared.postgres.retention import Retention
from shared.runtime.health import readiness_checks, serve_health
from shared.runtime.logs import configure_logs
from shared.runtime.loops import Stop, Watchdog, first_of, run_until_stop
from shared.runtime.service import run_service
from shared.runtime.settings import load_settings

# What a bulk did is in the history, for as long as that is kept. Its row is kept for those who ask how it ended.
KEEP_BULKS_FOR = timedelta(days=30)


async def consume(settings: ConsumerSettings, stop: Stop) -> None:
    """Run all loops of a consumer until the stop, and close the stores."""
    registry = CollectorRegistry()
    watchdog = Watchdog(registry)
    names = Names(settings.amqp_prefix)
    # Two connections: when a memory alarm blocks the one that publishes, acknowledgements still get through.
    inbound = Broker(settings.amqp_url, name="duebell-consumer", names=names)
    outbound = Broker(settings.amqp_url, name="duebell-consumer-replies", names=names)
    # A connection of their own: while their inbox is full, nothing is read from its connection.
    opens = Names(settings.amqp_prefix, settings.delay_exchanges)
    of_delayed = Broker(settings.amqp_url, name="duebell-consumer-delayed", names=opens)
    async with (
        open_pool(settings.database_url, "duebell-consumer", size=7) as pool,
        inbound.connected(),
        outbound.connected(),
        of_delayed.connected(),
        serve_health(
            settings.metrics_host,
            settings.metrics_port,
            watchdog,
            readiness_checks(pool, [inbound, outbound, of_delayed]),
        ),
        Publisher(outbound) as publisher,
        Publisher(outbound) as publisher_of_bulks,
        Publisher(outbound) as publisher_of_delayed,
        Publisher(outbound) as publisher_of_expired,
    ):
        await first_of(_prepare(pool, settings.delay_exchanges), stop.wait())
        metrics = Metrics(registry)
        handler = BatchHandler(
            pool=pool,
            publisher=publisher,
            names=names,
            metrics=metrics,
            max_payload_bytes=settings.max_payload_bytes,
            publish_timeout=settings.publish_timeout_seconds,
            require_user_id=settings.require_user_id,
            operators=settings.operator_users,
            history=settings.history,
            webhook_rules=WebhookRules(settings.address_rules, settings.webhook_secret_names),
        )

        masstransit = MassTransit(
            names=names,
            virtual_host=virtual_host_of(settings.amqp_url),
            max_body_bytes=settings.max_delayed_bytes,
            commands=handler.store,
        )

        def hold(publisher: Publisher) -> DelayedHandler:
            return DelayedHandler(
                pool=pool,
                publisher=publisher,
                names=names,
                metrics=metrics,
                masstransit=masstransit,
                max_body_bytes=settings.max_delayed_bytes,
                publish_timeout=settings.publish_timeout_seconds,
                operators=settings.operator_users,
                history=settings.history,
            )

        intake = Intake(inbound, names.inbox, settings.batch_size, settings.batch_wait_seconds)
        loops = {
            "intake": consume_until_stopped(intake, handler, stop),
            "delayed": consume_until_stopped(
                Intake(of_delayed, names.delayed, settings.batch_size, settings.batch_wait_seconds),
                hold(publisher_of_delayed),
                stop,
            ),
            "expired": consume_until_stopped(
                Intake(of_delayed, names.expired, settings.batch_size, settings.batch_wait_seconds),
                hold(publisher_of_expired),
                stop,
            ),
            "bulks": BulkWork(
                pool=pool,
                publisher=publisher_of_bulks,
                metrics=metrics,
                publish_timeout=settings.publish_timeout_seconds,
                history=settings.history,
                stored=handler.bulk_stored,
            ).work_until_stopped(stop),
            "retention of bulks": Retention(
                pool, delete_bulks, KEEP_BULKS_FOR, metrics.bulks_deleted
            ).retire_until_stopped(stop),
            "instance": Instance(pool, "consumer").report_until_stopped(stop),
        }
        async with asyncio.TaskGroup() as tasks:
            for name, loop in loops.items():
                tasks.create_task(run_until_stop(watchdog.watched(name, loop), stop, name))


async def _prepare(pool: Pool, delay_targets: Sequence[str]) -> None:
    """Wait for the schema, and write into it which delay exchanges the settings open."""
    await wait_for_schema(pool)
    if delay_targets:
        await ask_until_answered(pool, lambda connection: open_exchanges(connection, delay_targets))


def main() -> int:
    """Run the consumer process and return its exit code."""
    settings = load_settings(ConsumerSettings)
    configure_logs("consumer", settings.log_level)
    return run_service(lambda stop: consume(settings, stop), settings.shutdown_grace_seconds)
