"""Starts Postgres and RabbitMQ together, at the same time."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from stack.postgres import Postgres
from stack.rabbitmq import RabbitMQ


@contextmanager
def stores(  # noqa: PLR0913  (each says something about the stores that cannot be guessed)
    directory: Path,
    *,
    logs: Path | None = None,
    fsync: bool = True,
    settings: Mapping[str, str] | None = None,
    plugins: tuple[str, ...] = (),
    prefix: str = "",
) -> Iterator[tuple[Postgres, RabbitMQ]]:
    """Run both stores below `directory` until the block ends. `fsync=False` is for tests; `settings` are those of
    Postgres.
    """
    postgres = Postgres(directory, logs=logs, fsync=fsync, settings=settings)
    rabbitmq = RabbitMQ(directory, logs=logs, plugins=plugins, prefix=prefix)
    try:
        _start_together(postgres, rabbitmq)
        yield postgres, rabbitmq
    finally:
        rabbitmq.close()
        postgres.close()


def _start_together(*parts: Postgres | RabbitMQ) -> None:
    together = ThreadPoolExecutor(max_workers=len(parts))
    try:
        for start in [together.submit(part.start) for part in parts]:
            start.result()
    finally:
        # After a failure or Ctrl-C, too, wait for both: nothing may be closed while it is still starting.
        together.shutdown(wait=True)
