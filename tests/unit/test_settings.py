"""Addresses of the stores in the environment: what the settings add to them, and that no message shows them."""

from typing import Any

import pytest
from annotated_types import Le
from pydantic import TypeAdapter, ValidationError

from consumer.commands.parse import MAX_BYTES_BESIDE_PAYLOAD
from consumer.settings import ConsumerSettings
from delivery.settings import DeliverySettings
from producer.settings import ProducerSettings
from shared.runtime.settings import PostgresReaderUrl, Settings

AMQP = "amqp://user:hunter2@host/"
POSTGRES = "postgresql://user:hunter2@host/d"


def database_url(given: str) -> str:
    return Settings(database_url=given, amqp_url=AMQP).database_url


def test_the_database_must_take_writes() -> None:
    assert database_url(POSTGRES) == f"{POSTGRES}?target_session_attrs=read-write"
    assert database_url(f"{POSTGRES}?connect_timeout=3") == (
        f"{POSTGRES}?connect_timeout=3&target_session_attrs=read-write"
    )
    assert database_url(f"{POSTGRES}?target_session_attrs=any") == f"{POSTGRES}?target_session_attrs=any"


def test_what_only_reads_takes_a_role_whose_transactions_only_read() -> None:
    complete = TypeAdapter(PostgresReaderUrl).validate_python
    assert complete(POSTGRES) == f"{POSTGRES}?target_session_attrs=primary"
    assert complete(f"{POSTGRES}?sslrootcert=/ca.pem").endswith("&sslmode=verify-full")


def test_a_root_certificate_is_verified_against_unless_something_else_is_said() -> None:
    assert database_url(f"{POSTGRES}?sslrootcert=/ca.pem").endswith("&sslmode=verify-full")
    assert "verify-full" not in database_url(f"{POSTGRES}?sslrootcert=/ca.pem&sslmode=require")
    assert "sslmode" not in database_url(POSTGRES)


def test_several_servers_of_a_database_may_be_named() -> None:
    several = "postgresql://u:p@db1:5432,[::1]:5433/d"
    assert database_url(several).startswith(several)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hun?ter2@host/d",
        "postgresql://u:hun#ter2@host/d",
        "postgresql://u:hun/ter2@host/d",
        "postgresql://u:hun@ter2@host/d",
        "postgresql://u:hunter2@db1,/d",
        "postgresql://u:hunter2@host:x/d",
        "postgresql://u:hunter2@db1:1,db2:x/d",
        "postgresql://u:hunter2@host/d?sslmode",
        "postgresql://u:hunter2@host/d#x",
        "postgresql://u:hunter2@[::1/d",
        "mysql://u:hunter2@host/d",
    ],
)
def test_a_bad_address_is_refused_and_not_quoted(url: str) -> None:
    addresses: dict[str, Any] = {"database_url": POSTGRES, "amqp_url": AMQP}
    for given in ({"database_url": url}, {"amqp_url": url.replace("postgresql", "amqp")}):
        with pytest.raises(ValidationError) as refused:
            Settings(**{**addresses, **given})
        [problem] = refused.value.errors(include_input=False)
        assert "ter2" not in problem["msg"]
        assert "hun" not in problem["msg"]


def test_a_payload_at_its_limit_and_all_beside_it_fit_into_a_message_of_rabbitmq_4() -> None:
    [largest] = [
        limit.le for limit in ConsumerSettings.model_fields["max_payload_bytes"].metadata if isinstance(limit, Le)
    ]
    assert isinstance(largest, int)
    assert largest + 2 * MAX_BYTES_BESIDE_PAYLOAD < 16 * 1024 * 1024


def test_a_broker_may_have_several_hosts_and_none_is_missing() -> None:
    several = "amqp://u:p@mq1:5672,mq2:5672/"
    assert Settings(database_url=POSTGRES, amqp_url=several).amqp_url == several
    for wrong in ("amqp://u:p@mq1,/", "amqp://u:p@/"):
        with pytest.raises(ValidationError, match="host"):
            Settings(database_url=POSTGRES, amqp_url=wrong)


@pytest.mark.parametrize("kind", [Settings, ConsumerSettings, ProducerSettings, DeliverySettings])
def test_settings_show_no_password_and_no_secret(kind: type[Settings]) -> None:
    given: dict[str, Any] = {"database_url": POSTGRES, "amqp_url": AMQP, "webhook_secrets": '{"a": "hunter2"}'}
    settings = kind(**given)
    assert "hunter2" not in repr(settings) + str(settings)


@pytest.mark.parametrize("kind", [Settings, ConsumerSettings, ProducerSettings, DeliverySettings])
def test_metrics_and_health_are_on_loopback_unless_told_otherwise(kind: type[Settings]) -> None:
    assert kind(database_url=POSTGRES, amqp_url=AMQP).metrics_host == "127.0.0.1"
