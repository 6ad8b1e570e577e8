"""The consumer's own settings."""

from pydantic import Field

from shared.settings import Settings


class ConsumerSettings(Settings):
    metrics_port: int = Field(default=9101, ge=0, le=65535)
    batch_size: int = Field(default=500, ge=1, le=5000, description="commands per transaction, at most")
    batch_wait_seconds: float = Field(default=0.005, ge=0, le=1, description="how long a batch that is not full waits")
    max_payload_bytes: int = Field(default=256 * 1024, ge=1, le=16 * 1024 * 1024)
    publish_timeout_seconds: float = Field(default=10.0, gt=0, le=60)
