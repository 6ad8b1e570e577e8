"""Settings that every service has, read from the environment. Two are required; the defaults of the rest suit a small
installation. A bad value ends the process with one line that names the variable. Neither that line nor a repr shows a
URL, because URLs contain passwords.
"""

import sys
from dataclasses import replace
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from shared.contract.delayed import read_target
from shared.contract.history import HistoryLevel
from shared.runtime.addresses import Address, parse_address


def _complete_postgres_url(text: str) -> str:
    """Choose the primary of several hosts (`host1:5432,host2:5432`), not a standby or a demoted primary."""
    return _complete(text, "read-write")


def _complete_reader_url(text: str) -> str:
    """Choose the primary, too, and take a role whose transactions only read, which "read-write" takes for a standby."""
    return _complete(text, "primary")


def _complete(text: str, sessions: str) -> str:
    """Check the URL and add what it leaves out: which server to choose, and to verify the server if there is a root."""
    address = _parse_url(text, {"postgresql", "postgres"}, "postgresql://user:password@host:5432/database")
    if len(address.hosts) > 1 and not all(address.hosts):
        raise ValueError("has a comma without a host beside it")
    given = dict(parse_qsl(address.query))
    implied = {"target_session_attrs": sessions}
    if "sslrootcert" in given:
        # Without a mode, asyncpg accepts any certificate, and falls back to clear text if the server has none.
        implied["sslmode"] = "verify-full"
    missing = [f"{name}={value}" for name, value in implied.items() if name not in given]
    return str(replace(address, query="&".join([*filter(None, [address.query]), *missing])))


def _check_amqp_url(text: str) -> str:
    example = "amqp://user:password@host:5672/vhost"
    address = _parse_url(text, {"amqp", "amqps"}, example)
    if not all(address.hosts):
        raise ValueError("names no host, or has a comma without a host beside it")
    return str(address)


def _parse_url(text: str, schemes: set[str], example: str) -> Address:
    try:
        address = parse_address(text)
    except ValueError:
        address = None
    # The message does not repeat the value: it may contain a password.
    if address is None or address.scheme not in schemes:
        raise ValueError(f"is not an address such as {example}")
    if "@" in (address.user or ""):
        # Libraries disagree on where the password ends; one might send half of it to the name service.
        raise ValueError("has more than one @: write one in a password as %40")
    return address


PostgresUrl = Annotated[str, AfterValidator(_complete_postgres_url)]
# For what reads with the rights of `duebell_reader`.
PostgresReaderUrl = Annotated[str, AfterValidator(_complete_reader_url)]
AmqpUrl = Annotated[str, AfterValidator(_check_amqp_url)]


def _delay_targets(value: Any) -> Any:  # noqa: ANN401 - a text from the environment, or a value from a test
    """Read a list such as "orders, (default)" from the environment."""
    if not isinstance(value, str):
        return value
    return tuple(dict.fromkeys(read_target(name.strip()) for name in value.split(",") if name.strip()))


DelayTargets = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_delay_targets)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(extra="ignore", frozen=True)

    database_url: PostgresUrl = Field(
        repr=False, description="where Postgres is, such as postgresql://user:password@host:5432/database"
    )
    amqp_url: AmqpUrl = Field(
        repr=False,
        description="where RabbitMQ is, such as amqp://user:password@host:5672/vhost, or amqps://; of a cluster, "
        "several hosts, such as amqp://user:password@a:5672,b:5672/vhost",
    )
    amqp_prefix: str = Field(
        default="", max_length=60, description="before exchange and queue names, for environments that share a broker"
    )
    metrics_host: str = Field(default="127.0.0.1", description="where /metrics, /healthz and /readyz listen")
    metrics_port: int = Field(default=9100, ge=0, le=65535, description="for /metrics, /healthz and /readyz")
    history: HistoryLevel = Field(
        default=HistoryLevel.ALL,
        description="what is written into the table history: all; changes, which leaves out occurrences that were "
        "published and called as planned; or off",
    )
    log_level: Annotated[str, BeforeValidator(str.lower)] = Field(
        default="info", pattern="^(debug|info|warning|error)$", description="the least level that is logged"
    )
    shutdown_grace_seconds: float = Field(
        default=20.0, gt=0, description="how long a stop may take; a second signal ends the process at once"
    )


AnySettings = TypeVar("AnySettings", bound=BaseSettings)


def load_settings(kind: type[AnySettings]) -> AnySettings:
    """Read the settings from the environment. If some are bad, log one line per variable and exit with status 2."""
    try:
        return kind()
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            variable = str(problem["loc"][0]).upper()
            says = "is not set" if problem["type"] == "missing" else problem["msg"].removeprefix("Value error, ")
            sys.stderr.write(f"{variable}: {says}\n")
        raise SystemExit(2) from None
