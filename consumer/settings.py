"""The settings that only the consumer has."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from shared.runtime.webhook_settings import AddressSettings


def _names(value: Any) -> Any:  # noqa: ANN401 - a text of the environment, or a tuple of a test
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


class ConsumerSettings(AddressSettings):
    metrics_port: int = Field(default=9101, ge=0, le=65535, description="for /metrics, /healthz and /readyz")
    batch_size: int = Field(default=500, ge=1, le=5000, description="commands per transaction, at most")
    batch_wait_seconds: float = Field(default=0.005, ge=0, le=1, description="how long a batch that is not full waits")
    # RabbitMQ 4 refuses messages of more than 16 MiB. Commands and events have other fields beside the payload.
    max_payload_bytes: int = Field(
        default=256 * 1024, ge=1, le=15 * 1024 * 1024, description="requests with a larger payload are refused"
    )
    max_delayed_bytes: int = Field(
        default=1024 * 1024, ge=1, le=64 * 1024 * 1024, description="delayed messages with a larger body are parked"
    )
    publish_timeout_seconds: float = Field(
        default=10.0, gt=0, le=60, description="how long to wait for the broker to confirm replies and parked commands"
    )
    require_user_id: bool = Field(default=False, description="refuse commands without the AMQP property user_id")
    operator_users: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = Field(
        default=(), description="AMQP users who may command every job, such as alice,bob"
    )
    webhook_secret_names: Annotated[frozenset[str], NoDecode, BeforeValidator(_names)] = Field(
        default=frozenset(),
        description="names of the secrets that delivery knows, such as billing,shop; a request with another one is "
        "refused; empty: every name is taken",
    )
