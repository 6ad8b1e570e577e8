"""The settings that only the consumer has."""

from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from shared.runtime.settings import DelayTargets
from shared.runtime.webhook_settings import WebhookSettings, split_names

# RabbitMQ 4 refuses messages of more than 16 MiB. Commands and events have other fields beside the payload.
MAX_PAYLOAD_LIMIT_BYTES = 15 * 1024 * 1024


class ConsumerSettings(WebhookSettings):
    metrics_port: int = Field(default=9101, ge=0, le=65535, description="for /metrics, /healthz and /readyz")
    batch_size: int = Field(default=500, ge=1, le=5000, description="commands per transaction, at most")
    batch_wait_seconds: float = Field(default=0.005, ge=0, le=1, description="how long a batch that is not full waits")
    max_payload_bytes: int = Field(
        default=256 * 1024, ge=1, le=MAX_PAYLOAD_LIMIT_BYTES, description="requests with a larger payload are refused"
    )
    max_delayed_bytes: int = Field(
        default=1024 * 1024, ge=1, le=64 * 1024 * 1024, description="delayed messages with a larger body are parked"
    )
    delay_exchanges: DelayTargets = Field(
        default=(),
        description="exchanges with a delay exchange each, such as orders,invoices, which the consumer opens at start; "
        "(default) is the default exchange",
    )
    publish_timeout_seconds: float = Field(
        default=10.0, gt=0, le=60, description="how long to wait for the broker to confirm replies and parked commands"
    )
    require_user_id: bool = Field(default=False, description="refuse commands without the AMQP property user_id")
    operator_users: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_names)] = Field(
        default=(), description="AMQP users who may command every job, such as alice,bob"
    )
