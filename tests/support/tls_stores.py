"""Both stores with TLS, behind certificates of a private authority that hold for 127.0.0.1 and for no name."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stack.ports import LOOPBACK, free_port
from stack.rabbitmq import RabbitMQ
from tests.support.certificates import Authority, Certificate
from tests.support.tls_postgres import TlsPostgres, tls_postgres


@dataclass(frozen=True, slots=True)
class TlsStores:
    authority: Authority
    stranger: Authority
    client: Certificate
    postgres: TlsPostgres
    rabbitmq: RabbitMQ
    amqps_port: int

    def amqps_url_of(self, user: str, host: str = LOOPBACK, **parameters: str | Path) -> str:
        plain = self.rabbitmq.url_of(user)
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"amqps{plain.removeprefix('amqp')}?{query}".replace(
            f"{LOOPBACK}:{self.rabbitmq.port}", f"{host}:{self.amqps_port}"
        )


@contextmanager
def tls_stores(directory: Path, programs: Path) -> Iterator[TlsStores]:
    authority, stranger = Authority.made_in(directory), Authority.made_in(directory, "stranger")
    server = authority.issue("server", "subjectAltName=IP:127.0.0.1")
    client = authority.issue("duebell-client")
    port = free_port()
    settings = {
        "listeners.ssl.1": f"{LOOPBACK}:{port}",
        "ssl_options.cacertfile": str(authority.file),
        "ssl_options.certfile": str(server.file),
        "ssl_options.keyfile": str(server.key),
        # A client may show a certificate; if it does, this authority must have signed it.
        "ssl_options.verify": "verify_peer",
        "ssl_options.fail_if_no_peer_cert": "false",
    }
    with (
        RabbitMQ(directory, settings=settings) as rabbitmq,
        tls_postgres(directory, programs, authority, server) as postgres,
    ):
        yield TlsStores(authority, stranger, client, postgres, rabbitmq, port)
