"""Wires the delivery service: settings, logs, health, pool, broker, intake, dispatch, announcements, retention."""

import asyncio
import logging
import ssl
import sys
from collections.abc import Coroutine
from datetime import timedelta
from functools import partial

from prometheus_client import CollectorRegistry

from delivery.attempt.retry import RetryPolicy
from delivery.attempt.runner import AttemptRunner
from delivery.attempt.signing import Secrets
from delivery.dispatch.circuit_breaker import BreakerPolicy
from delivery.dispatch.claimer import Claimer
from delivery.dispatch.dispatcher import Dispatcher
from delivery.dispatch.local_queue import LocalQueue
from delivery.http.caller import Caller
from delivery.http.connection_settings import Proxy, parse_proxy, tls_context
from delivery.intake import DueHandler
from delivery.metrics import Metrics
from delivery.results.announcer import Announcer
from delivery.results.recorder import Recorder
from delivery.settings import DeliverySettings
from delivery.store.claims import DELIVERY_PLANNER_SETTINGS
from delivery.store.retention import delete_finished
from delivery.store.samples import count_open, sample_deliveries
from shared.amqp.connection import Broker
from shared.amqp.consuming import Intake, consume_until_stopped
from shared.amqp.publisher import Publisher
from shared.contract.fields import format_instant
from shared.contract.names import Names
from shared.postgres.instances import Instance
from shared.postgres.pool import ACQUIRE_TIMEOUT, Pool, ask_until_answered, open_pool, wait_for_schema
from shared.postgres.retention import Retention
from shared.runtime.health import readiness_checks, serve_health
from shared.runtime.limited_lines import summarize_until_stopped
from shared.runtime.logs import configure_logs, get_log
from shared.runtime.loops import Stop, Watchdog, first_of, run_until_stop
from shared.runtime.periodic import MAX_COUNTED_ROWS, sample_until_stopped
from shared.runtime.service import run_service
from shared.runtime.settings import load_settings

# One connection each for intake, claim, recorder, announcer, retention, sampler, instance and readiness check.
POOL_SIZE = 8


async def deliver(
    settings: DeliverySettings, stop: Stop, secrets: Secrets | None = None, tls: ssl.SSLContext | None = None
) -> None:
    """Run the delivery service until the stop."""
    secrets, tls = secrets or load_secrets(settings), tls or load_tls(settings)
    registry = CollectorRegistry()
    metrics, names, watchdog = Metrics(registry), Names(settings.amqp_prefix), Watchdog(registry)
    rules = settings.address_rules
    # Two connections: a memory alarm of the broker blocks the one that publishes, and acknowledgements still pass.
    inbound = Broker(settings.amqp_url, name="duebell-delivery", names=names)
    outbound = Broker(settings.amqp_url, name="duebell-delivery-events", names=names)
    async with (
        open_pool(settings.database_url, "duebell-delivery", POOL_SIZE, **DELIVERY_PLANNER_SETTINGS) as pool,
        inbound.connected(),
        outbound.connected(),
        serve_health(
            settings.metrics_host, settings.metrics_port, watchdog, readiness_checks(pool, [inbound, outbound])
        ),
        Publisher(outbound) as parking,
        Publisher(outbound) as announcing,
        Caller.opened(rules, settings.connect_timeout_seconds, tls=tls, proxy=_proxy(settings)) as caller,
    ):
        await first_of(_log_recovery(pool), stop.wait())
        if stop.requested:
            return
        announcer = Announcer(pool, outbound, announcing, metrics, settings.publish_timeout_seconds)
        attempts = AttemptRunner(
            caller=caller,
            secrets=secrets,
            rules=rules,
            retry_policy=_retry_policy(settings),
            metrics=metrics,
            lease_margin=settings.lease_margin_seconds,
        )
        queue = _local_queue(settings)
        recorder = Recorder(pool, metrics, announcer, settings.history)
        dispatcher = Dispatcher(
            claimer=Claimer(pool, queue, settings.lease_margin_seconds),
            attempts=attempts,
            recorder=recorder,
            queue=queue,
            metrics=metrics,
        )
        handler = DueHandler(
            pool=pool,
            publisher=parking,
            parking=names.parking,
            metrics=metrics,
            on_stored=dispatcher.rows_stored,
            publish_timeout=settings.publish_timeout_seconds,
        )
        intake = Intake(inbound, names.deliveries, settings.batch_size, settings.batch_wait_seconds)
        retention = Retention(pool, delete_finished, timedelta(days=settings.retention_days), metrics.deleted)
        all_recorded = Stop()

        async def dispatch() -> None:
            await dispatcher.run(stop, settings.shutdown_grace_seconds)
            all_recorded.request()

        async with asyncio.TaskGroup() as tasks:

            def start(name: str, loop: Coroutine[None, None, None]) -> None:
                tasks.create_task(run_until_stop(watchdog.watched(name, loop), stop, name))

            start("dispatcher", dispatch())
            start("intake", consume_until_stopped(intake, handler, stop))
            start("announcer", announcer.run(all_recorded))
            start("summaries", summarize_until_stopped(recorder.write_summary, stop))
            start("sampler", sample_until_stopped(partial(_sample_once, pool, metrics, secrets), stop))
            start("instance", Instance(pool, "delivery", dispatcher.describe).report_until_stopped(stop))
            start("retention", retention.retire_until_stopped(stop))
        recorder.write_summary()


def load_secrets(settings: DeliverySettings) -> Secrets:
    """Read the signing secrets. ValueError names the setting that cannot be read."""
    variable = settings.webhook_secrets.get_secret_value() if settings.webhook_secrets else None
    secrets = Secrets.load(variable, settings.webhook_secrets_file)
    if unknown := sorted(settings.webhook_secret_names - secrets.names):
        raise ValueError(
            f"WEBHOOK_SECRET_NAMES: {', '.join(unknown)}: neither WEBHOOK_SECRETS nor WEBHOOK_SECRETS_FILE has it, and "
            "consumers take requests that need it"
        )
    return secrets


def load_tls(settings: DeliverySettings) -> ssl.SSLContext:
    """Read the client certificate. ValueError names the setting that cannot be read."""
    return tls_context(settings.webhook_client_cert, settings.webhook_client_key)


def _proxy(settings: DeliverySettings) -> Proxy | None:
    return parse_proxy(settings.webhook_proxy.get_secret_value())


def _local_queue(settings: DeliverySettings) -> LocalQueue:
    policy = BreakerPolicy(
        settings.breaker_failures, settings.breaker_first_pause_seconds, settings.breaker_longest_pause_seconds
    )
    return LocalQueue(settings.max_in_flight, settings.max_in_flight_per_host, policy)


def _retry_policy(settings: DeliverySettings) -> RetryPolicy:
    return RetryPolicy(
        base=timedelta(seconds=settings.retry_base_seconds),
        cap=timedelta(seconds=settings.retry_cap_seconds),
        retry_after_cap=timedelta(seconds=settings.retry_after_cap_seconds),
    )


async def _log_recovery(pool: Pool) -> None:
    """Log how many deliveries are open. Recovery needs no mode of its own: open deliveries are claimed as always."""
    await wait_for_schema(pool)
    deliveries, oldest = await ask_until_answered(pool, lambda connection: count_open(connection, MAX_COUNTED_ROWS))
    get_log().info(
        "recovery",
        open_deliveries=deliveries,
        at_least=deliveries == MAX_COUNTED_ROWS,
        oldest_due_at=format_instant(oldest) if oldest else None,
    )


async def _sample_once(pool: Pool, metrics: Metrics, secrets: Secrets) -> None:
    """Set the gauges that show how many deliveries are open, how long the oldest one has been overdue, and whether the
    secrets are those of the file: it is looked at although nothing may be signed for days.
    """
    secrets.refresh()
    metrics.secrets_stale.set(secrets.stale_seconds)
    async with pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
        sample = await sample_deliveries(connection, MAX_COUNTED_ROWS)
    metrics.open.set(sample.open)
    metrics.overdue.set(sample.overdue)
    metrics.oldest_overdue.set(sample.oldest_overdue_seconds)
    metrics.dead_rows.set(sample.dead_rows)


def main() -> int:
    """Run the process. Return its exit status."""
    settings = load_settings(DeliverySettings)
    configure_logs("delivery", settings.log_level)
    # The warnings of aiohttp quote what receivers send, such as the names of cookies.
    logging.getLogger("aiohttp").setLevel(logging.ERROR)
    try:
        secrets, tls = load_secrets(settings), load_tls(settings)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return run_service(lambda stop: deliver(settings, stop, secrets, tls), settings.shutdown_grace_seconds)
