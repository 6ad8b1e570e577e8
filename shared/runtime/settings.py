"""Settings that every service has, read from the environment. Two are required; the defaults of the rest suit a small
installation. A bad value ends the process with one line that names the variable. Neither that line nor a repr shows a
URL, because URLs contain passwords.
"""

import sys
from typing import Annotated, TypeVar
from urllib.parse import SplitResult, parse_qsl, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from shared.contract.history import HistoryLevel


def _complete_postgres_url(text: str) -> str:
    """Check the URL and add what it leaves out: connect to the primary, and verify the server if there is a root."""
    example = "postgresql://user:password@host:5432/database"
    parts = _parse_url(text, {"postgresql", "postgres"}, example, several_hosts=True)
    given = dict(parse_qsl(parts.query))
    # Of several hosts (`host1:5432,host2:5432`) choose the primary, not a standby or a demoted primary.
    implied = {"target_session_attrs": "read-write"}
    if "sslrootcert" in given:
        # Without a mode, asyncpg accepts any certificate, and falls back to clear text if the server has none.
        implied["sslmode"] = "verify-full"
    missing = "".join(f"&{name}={value}" for name, value in implied.items() if name not in given)
    return text + missing if parts.query or not missing else f"{text.rstrip('?')}?{missing[1:]}"


def _check_amqp_url(text: str) -> str:
    _parse_url(text, {"amqp", "amqps"}, "amqp://user:password@host:5672/vhost")
    return text


def _parse_url(text: str, schemes: set[str], example: str, *, several_hosts: bool = False) -> SplitResult:
    try:
        parts = urlsplit(text)
        hosts = parts.netloc.rpartition("@")[2].split(",")
        for host in hosts:
            _ = urlsplit(f"//{host}").port  # raises ValueError unless it is a number
        parse_qsl(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        parts, hosts = urlsplit(""), []
    # The message does not repeat the value: it may contain a password.
    if parts.scheme not in schemes or parts.fragment or (len(hosts) > 1 and not (several_hosts and all(hosts))):
        raise ValueError(f"is not an address such as {example}")
    if parts.netloc.count("@") > 1:
        # Libraries disagree on where the password ends; one might send half of it to the name service.
        raise ValueError("has more than one @: write one in a password as %40")
    return parts


PostgresUrl = Annotated[str, AfterValidator(_complete_postgres_url)]
AmqpUrl = Annotated[str, AfterValidator(_check_amqp_url)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(extra="ignore", frozen=True)

    database_url: PostgresUrl = Field(
        repr=False, description="where Postgres is, such as postgresql://user:password@host:5432/database"
    )
    amqp_url: AmqpUrl = Field(
        repr=False, description="where RabbitMQ is, such as amqp://user:password@host:5672/vhost, or amqps://"
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
