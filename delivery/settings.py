"""The settings of the delivery service. Each has a default that suits a small installation."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from delivery.http.connection_settings import parse_proxy
from shared.runtime.webhook_settings import WebhookSettings


def _proxy(value: SecretStr) -> SecretStr:
    parse_proxy(value.get_secret_value())
    return value


def _or_none(value: Any) -> Any:  # noqa: ANN401
    return value or None


_File = Annotated[Path | None, BeforeValidator(_or_none)]


class DeliverySettings(WebhookSettings):
    metrics_port: int = Field(default=9103, ge=0, le=65535, description="for /metrics, /healthz and /readyz")

    batch_size: int = Field(default=200, ge=1, le=5000, description="events per transaction, at most")
    batch_wait_seconds: float = Field(default=0.005, ge=0, le=1, description="how long a batch that is not full waits")

    # A call holds its payload twice (the consumer's default allows 256 KiB) and a socket. Four times as many rows may
    # wait for their call, and twice as many may be unwritten: 512 MiB in the worst case.
    max_in_flight: int = Field(default=256, ge=1, le=10_000, description="calls at a time")
    # A host that hangs keeps so many calls busy until its breaker opens; 16 such hosts at once would keep all busy.
    max_in_flight_per_host: int = Field(default=16, ge=1, le=10_000, description="calls at a time to one host:port")
    connect_timeout_seconds: float = Field(default=5.0, gt=0, le=120, description="name lookup, and connection, each")
    # Added to the call's own timeout: time to record the result while Postgres is slow or restarts.
    lease_margin_seconds: float = Field(
        default=30.0, gt=0, le=3600, description="how long beyond its timeout a call still belongs to its process"
    )

    retry_base_seconds: float = Field(
        default=30.0, gt=0, description="the first retry waits up to this long, and half of it at least"
    )
    retry_cap_seconds: float = Field(default=3600.0, gt=0, description="the longest pause that Duebell chooses")
    retry_after_cap_seconds: float = Field(
        default=6 * 3600.0, gt=0, description="the longest pause that a Retry-After gets"
    )

    breaker_failures: int = Field(default=10, ge=1, description="failures in a row that open a host's breaker")
    breaker_first_pause_seconds: float = Field(
        default=5.0, gt=0, description="how long a host whose breaker opens is not called; doubled while it fails"
    )
    breaker_longest_pause_seconds: float = Field(default=300.0, gt=0, description="the longest such pause")

    webhook_secrets_file: Path | None = Field(default=None, description='JSON: {"name": "whsec_…" or a list of them}')
    webhook_secrets: SecretStr | None = Field(default=None, description="the same JSON, as a variable")

    webhook_proxy: Annotated[SecretStr, AfterValidator(_proxy)] = Field(
        default=SecretStr(""), description="an egress proxy for all calls, such as http://user:password@host:3128"
    )
    webhook_client_cert: _File = Field(default=None, description="PEM, for receivers that ask for a certificate")
    webhook_client_key: _File = Field(default=None, description="PEM; empty: the key is in the certificate's file")

    publish_timeout_seconds: float = Field(
        default=10.0, gt=0, le=25, description="how long to wait for the broker to confirm a batch of events"
    )
    retention_days: float = Field(default=30.0, gt=0, description="how long ended deliveries are kept")
