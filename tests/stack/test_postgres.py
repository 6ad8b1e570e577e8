"""The private Postgres: it starts anywhere, keeps its data over a crash, and says why when it cannot start."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from stack import postgres as module
from stack import unprivileged
from stack.errors import DirectoryInUseError, StartError
from stack.ports import free_port
from stack.postgres import Postgres
from tests.stack.living_processes import no_process_has_text, processes_with_text
from tests.support.eventually import PATIENCE

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to run it as another user")


async def run(url: str, *statements: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(url, timeout=PATIENCE)
    try:
        for statement in statements[:-1]:
            await connection.execute(statement)
        return [tuple(row) for row in await connection.fetch(statements[-1])]
    finally:
        await connection.close()


async def test_data_and_address_survive_a_crash(directory: Path) -> None:
    with Postgres(directory) as postgres:
        before = postgres.pid, postgres.url
        await run(postgres.url, "create table kept (word text)", "insert into kept values ('here') returning 1")

        postgres.restart(mode="immediate")

        assert postgres.pid != before[0]
        assert postgres.url == before[1]
        assert await run(postgres.url, "select word from kept") == [("here",)]
        postgres.stop()
        assert not postgres.alive()
        postgres.start()
        assert await run(postgres.url, "select word from kept") == [("here",)]
    assert no_process_has_text(str(directory))


def test_closing_leaves_the_log_alone_behind(directory: Path) -> None:
    with Postgres(directory, fsync=False):
        pass
    left = {str(path.relative_to(directory)) for path in directory.rglob("*")}
    assert left == {"postgres", "postgres/lock", "logs", "logs/postgres.log"}


async def test_postgres_listens_on_loopback_with_its_password_and_the_given_settings(directory: Path) -> None:
    with Postgres(directory, fsync=False, settings={"work_mem": "7MB"}) as postgres:
        shown = "current_setting('listen_addresses'), current_setting('fsync'), current_setting('work_mem')"
        assert await run(postgres.url, f"select {shown}") == [("127.0.0.1", "off", "7MB")]
        address = urlsplit(postgres.url)
        guess = address._replace(netloc=f"{address.username}:guess@{address.hostname}:{address.port}")
        with pytest.raises(asyncpg.InvalidPasswordError):
            await run(guess.geturl(), "select 1")


@root_only
async def test_postgres_runs_from_a_copy_where_user_namespaces_are_forbidden(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unprivileged, "_namespace", lambda: ("false",))

    with Postgres(directory, fsync=False) as postgres:
        copy = (directory / "postgres" / "elsewhere").readlink()
        assert await run(postgres.url, "show data_directory") == [(f"{copy}/data",)]
        assert (copy / "data").owner() == "nobody"
        postgres.restart()
        assert await run(postgres.url, "select 1") == [(1,)]

    assert not copy.exists()
    assert no_process_has_text(str(copy))


def test_a_failing_start_shows_the_log_and_what_to_do_and_leaves_nothing(directory: Path) -> None:
    with pytest.raises(StartError) as failure, Postgres(directory, settings={"work_mem": "plenty"}):
        pass

    message = str(failure.value)
    assert message.startswith("Postgres could not start.")
    assert 'invalid value for parameter "work_mem": "plenty"' in message
    assert "what to do:" in message
    assert str(directory / "logs" / "postgres.log") in message
    assert no_process_has_text(str(directory))


def test_a_taken_port_or_directory_is_left_to_its_holder(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Postgres(directory / "first", fsync=False) as first:
        with pytest.raises(DirectoryInUseError), Postgres(directory / "first", fsync=False):
            pass
        offered = iter([first.port, free_port()])
        monkeypatch.setattr(module, "free_port", lambda: next(offered))
        with Postgres(directory / "second", fsync=False) as second:
            assert second.port != first.port
        assert first.alive()
        assert first.pid in processes_with_text(str(directory))
