"""Settings, from the environment. Three are required: where the stores are, and the secret that signs the webhooks."""

from datetime import time
from typing import Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from examples.birthdays.commands import Terms

_SECRET = r"whsec_([A-Za-z0-9+/]{4})+[A-Za-z0-9+/=]{4}"  # noqa: S105 - a pattern


class Settings(BaseSettings):
    model_config = SettingsConfigDict(extra="ignore", frozen=True)

    database_url: str = Field(pattern="^postgres(ql)?://")
    amqp_url: str = Field(pattern="^amqps?://")
    amqp_prefix: str = ""  # as Duebell's own
    http_host: str = "127.0.0.1"
    http_port: int = Field(default=8095, ge=0, le=65535)
    greeting_time: time = time(9)
    # Where Duebell reaches us, if that is not simply the address above.
    webhook_url: str = ""
    # What Duebell calls the secret, and its value. Two values while it is being changed: the new one, a comma, the old.
    webhook_secret_name: str = "birthdays"  # noqa: S105 - its name
    webhook_secret: str = Field(pattern=f"^{_SECRET}(,{_SECRET})*$")

    @model_validator(mode="after")
    def _is_a_wall_time(self) -> Self:
        if self.greeting_time.tzinfo is not None or self.greeting_time.microsecond:
            raise ValueError("GREETING_TIME: is a time of day, such as 09:00")
        return self

    @property
    def secrets(self) -> list[str]:
        return self.webhook_secret.split(",")

    @property
    def replies_queue(self) -> str:
        return f"{self.amqp_prefix}birthdays.replies"

    @property
    def amqp_user(self) -> str | None:
        name = urlsplit(self.amqp_url).username
        return unquote(name) if name else None

    @property
    def commands_exchange(self) -> str:
        return f"{self.amqp_prefix}schedule.commands"

    @property
    def terms(self) -> Terms:
        url = self.webhook_url or f"http://{self.http_host}:{self.http_port}/webhook"
        return Terms(self.greeting_time, url, self.webhook_secret_name)
