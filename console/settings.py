"""The settings of the console. It starts only with a way to know its users: see `CONSOLE_USERS`."""

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import NoDecode

from console.access.users import Role, User, parse_users
from consumer.settings import MAX_PAYLOAD_LIMIT_BYTES, ConsumerSettings
from shared.contract.address_rules import Network, parse_networks
from shared.errors import CannotStart
from shared.runtime.settings import PostgresReaderUrl, Settings

# A page reads some thousands of rows: compiling its statements would take longer than reading them.
CONSOLE_PLANNER_SETTINGS = {"jit": "off"}
EXAMPLE_URL = "https://ops.example.com/duebell"


def _networks(value: Any) -> Any:  # noqa: ANN401 - a text from the environment, or a value from a test
    return parse_networks(value) if isinstance(value, str) else value


def _or_none(value: Any) -> Any:  # noqa: ANN401
    return value or None


def _check_url(text: str) -> str:
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment):
        raise ValueError(f"is not an address such as {EXAMPLE_URL}")
    return text.rstrip("/")


def _check_users(value: SecretStr) -> SecretStr:
    parse_users(value.get_secret_value())
    return value


class ConsoleSettings(Settings):
    database_url: PostgresReaderUrl = Field(
        repr=False, description="as for every service; duebell_reader suffices, and a standby will do"
    )
    metrics_port: int = Field(default=9104, ge=0, le=65535, description="for /metrics, /healthz and /readyz")
    console_host: str = Field(default="127.0.0.1", description="where the console listens")
    console_port: int = Field(default=8080, ge=0, le=65535, description="where the console listens")
    console_url: Annotated[str, AfterValidator(_check_url)] = Field(
        default="",
        description=f"its address as browsers see it behind a proxy, such as {EXAMPLE_URL}: its path becomes the "
        "prefix of all links, https makes cookies secure; empty: as it is asked",
    )
    console_users: Annotated[SecretStr, AfterValidator(_check_users)] = Field(
        default=SecretStr(""),
        description="NAME:RIGHTS:HASH, separated by spaces or lines; RIGHTS is viewer or operator, and +payloads for "
        "users who may see payloads; HASH is printed by python -m console hash-password, for a program by "
        "python -m console make-token, or it is - for a user who comes through a trusted proxy",
    )
    console_users_file: Annotated[Path | None, BeforeValidator(_or_none)] = Field(
        default=None, description="the same in a file, read at the start"
    )
    console_trusted_proxies: Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_networks)] = Field(
        default=(), description="networks of proxies that name the user in a header, such as 10.1.2.3/32"
    )
    console_proxy_header: str = Field(
        default="X-Forwarded-User", pattern="^[A-Za-z0-9-]+$", description="the header in which such a proxy does so"
    )
    console_proxy_role: Annotated[Role | None, BeforeValidator(_or_none)] = Field(
        default=None, description="the role of such a user who is not in CONSOLE_USERS; empty: the user is refused"
    )
    console_open_on_loopback: bool = Field(
        default=False,
        description="no log-in: every program on this machine is an operator who sees payloads; taken only "
        "if CONSOLE_HOST is a loopback address",
    )
    console_session_key: SecretStr = Field(
        default=SecretStr(""),
        description="signs sessions, the same for all replicas; empty: a random one, and sessions end with the process",
    )
    console_session_hours: float = Field(default=12.0, gt=0, le=24 * 30, description="how long a log-in lasts")
    console_max_streams: int = Field(default=100, ge=1, le=10_000, description="pages that are kept live at a time")
    reply_timeout_seconds: float = Field(
        default=10.0, gt=0, le=60, description="how long to wait for the consumer's verdict on a command"
    )
    max_payload_bytes: int = Field(
        default=ConsumerSettings.model_fields["max_payload_bytes"].default,
        ge=1,
        le=MAX_PAYLOAD_LIMIT_BYTES,
        description="the consumer's limit: requests with a larger payload are refused before they are sent",
    )

    @property
    def prefix(self) -> str:
        """The path that all links begin with, without a slash at its end."""
        return urlsplit(self.console_url).path.rstrip("/")

    @property
    def is_https(self) -> bool:
        return self.console_url.startswith("https://")

    @property
    def origin(self) -> str | None:
        """The origin of the console's own pages; None: each request's address has it."""
        parts = urlsplit(self.console_url)
        return f"{parts.scheme}://{parts.netloc}".lower() if self.console_url else None

    def read_users(self) -> dict[str, User]:
        """Read the users of variable and file. Raises CannotStart if that is not safe, or if no user could log in."""
        if self.console_open_on_loopback and not _is_loopback(self.console_host):
            raise CannotStart("CONSOLE_OPEN_ON_LOOPBACK: goes with a CONSOLE_HOST such as 127.0.0.1 only")
        users = parse_users(self.console_users.get_secret_value())
        if self.console_users_file is not None:
            users |= _users_of_file(self.console_users_file)
        by_password = any(user.password or user.token for user in users.values())
        by_proxy = self.console_trusted_proxies and (users or self.console_proxy_role)
        if not (by_password or by_proxy or self.console_open_on_loopback):
            raise CannotStart(
                "CONSOLE_USERS: no user could log in. Name users (python -m console hash-password prints an entry), or "
                "a trusted proxy (CONSOLE_TRUSTED_PROXIES), or on this machine alone set CONSOLE_OPEN_ON_LOOPBACK=true"
            )
        return users


def _users_of_file(path: Path) -> dict[str, User]:
    try:
        return parse_users(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotStart(f"CONSOLE_USERS_FILE: cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise CannotStart(f"CONSOLE_USERS_FILE: {error}") from None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
