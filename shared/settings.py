"""Settings that every service has, read from the environment. Two are required; the rest have defaults that suit a
small installation. What is wrong with them is said in one line that names the variable.
"""

import sys
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict


def _a_postgres_url(text: str) -> str:
    return _a_url(text, {"postgresql", "postgres"}, "postgresql://user:password@host:5432/database")


def _an_amqp_url(text: str) -> str:
    return _a_url(text, {"amqp", "amqps"}, "amqp://user:password@host:5672/vhost")


def _a_url(text: str, schemes: set[str], example: str) -> str:
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in schemes:
        # The value itself is not repeated: it may hold a password.
        raise ValueError(f"is not an address such as {example}")
    return text


PostgresUrl = Annotated[str, AfterValidator(_a_postgres_url)]
AmqpUrl = Annotated[str, AfterValidator(_an_amqp_url)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(extra="ignore", frozen=True)

    database_url: PostgresUrl
    amqp_url: AmqpUrl
    amqp_prefix: str = Field(default="", max_length=60)
    metrics_host: str = "127.0.0.1"
    metrics_port: int = Field(default=9100, ge=0, le=65535)
    log_level: Annotated[str, BeforeValidator(str.lower)] = Field(
        default="info", pattern="^(debug|info|warning|error)$"
    )
    shutdown_grace_seconds: float = Field(default=20.0, gt=0)


AnySettings = TypeVar("AnySettings", bound=BaseSettings)


def load_settings(kind: type[AnySettings]) -> AnySettings:
    """From the environment; ends the process with one line per bad variable."""
    try:
        return kind()
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            variable = str(problem["loc"][0]).upper()
            says = "is not set" if problem["type"] == "missing" else problem["msg"].removeprefix("Value error, ")
            sys.stderr.write(f"{variable}: {says}\n")
        raise SystemExit(2) from None
