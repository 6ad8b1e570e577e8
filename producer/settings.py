"""The settings of the producer beside those that all services have."""

from pydantic import Field

from shared.runtime.settings import PostgresUrl, Settings


class ProducerSettings(Settings):
    """The environment variables of the producer."""

    metrics_port: int = Field(default=9102, ge=0, le=65535, description="for /metrics, /healthz and /readyz")
    database_direct_url: PostgresUrl | None = Field(
        default=None,
        repr=False,
        description="behind a pooler: where Postgres itself is, for LISTEN and `shared.migrate`",
    )
    batch_size: int = Field(default=1000, ge=1, le=5000, description="jobs per claim, at most")
    claims_in_flight: int = Field(default=3, ge=1, le=16, description="claims at a time, in each of the two main lanes")
    publish_timeout_seconds: float = Field(
        default=10.0, gt=0, le=25, description="how long to wait for confirms, while the row locks are held"
    )
    retention_days: float = Field(default=30.0, gt=0, description="how long ended jobs and fired triggers are kept")
