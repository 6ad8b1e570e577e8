"""Which stores a command speaks to, and what it says if one of them is away or refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Operator, an_operator, duebell
from tests.support.application import Application
from tests.support.delivery_rows import insert_rows
from tests.support.services import running_consumer
from tests.support.stores import Site

EVERY_KIND = (
    ("list",),
    ("show", "tea"),
    ("deliveries", "list"),
    ("parked", "list"),
    ("parked", "requeue", "--all", "--yes"),
    ("cancel", "tea", "--yes"),
    ("status",),
)


async def test_stores_that_cannot_be_reached_are_status_3_and_no_password_is_shown() -> None:
    nowhere = Site("postgresql://me:hunter2@127.0.0.1:1/none", "amqp://me:hunter2@127.0.0.1:1/", "")
    async with an_operator(nowhere) as duebell:
        for arguments in EVERY_KIND:
            ended = await duebell(*arguments)
            assert ended.status == 3, (arguments, ended)
            assert "cannot reach the" in ended.err, (arguments, ended)
            assert "Connect call failed" in ended.err, (arguments, ended)
            assert "hunter2" not in ended.out + ended.err


async def test_a_wrong_password_is_a_refusal_and_not_an_absence(site: Site) -> None:
    wrong = {
        "DATABASE_URL": site.database_url.replace("postgresql://", "postgresql://not-"),
        "AMQP_URL": "amqp://not-me:hunter2@" + site.amqp_url.rpartition("@")[2],
    }
    async with an_operator(wrong) as duebell:
        for arguments, says in {
            ("list",): "refuses the connection",
            ("parked", "list"): "refuses the user 'not-me'",
            ("cancel", "tea", "--yes"): "refuses the user 'not-me'",
        }.items():
            ended = await duebell(*arguments)
            assert ended.status == 1, (arguments, ended)
            assert says in ended.err
            assert "hunter2" not in ended.out + ended.err


async def test_a_virtual_host_that_is_not_there_is_named(site: Site) -> None:
    there = site.amqp_url.rstrip("/").rpartition("@")
    async with an_operator({"AMQP_URL": f"{''.join(there)}/nowhere"}) as duebell:
        for arguments in (("parked", "list"), ("cancel", "tea", "--yes")):
            ended = await duebell(*arguments)
            assert ended.status == 1, (arguments, ended)
            assert "refuses the virtual host 'nowhere'" in ended.err


async def test_the_reader_may_look_and_what_needs_more_names_the_right(
    site: Site, app: Application, database: Any
) -> None:
    if not site.own:
        pytest.skip("given stores have no roles")
    await insert_rows(database, "receiver.example", 1)
    await database.execute("update deliveries set status = 'PROCESSING', version = 2")
    await database.execute(
        "update deliveries set status = 'FAILED', version = 3, failure_reason = 'http_500', finished_at = now(),"
        " next_attempt_at = null"
    )
    async with running_consumer(site), an_operator(site) as operator:
        assert (await operator("schedule", "tea", "--in", "3h")).status == 0
    async with an_operator(site.environment_of("reader")) as reader:
        for arguments in (
            ("list",),
            ("show", "tea"),
            ("deliveries", "list"),
            ("deliveries", "show", "1"),
            ("deliveries", "replay", "1", "--dry-run"),
        ):
            assert (await reader(*arguments)).json, arguments
        seen = await reader("status")
        assert json.loads(seen.out)["jobs"]["pending"] == 1
        for arguments, variable, right in (
            (("cancel", "tea", "--yes"), "AMQP_URL", f"to publish to {site.prefix}schedule.commands"),
            (("parked", "list"), "AMQP_URL", f"to read {site.prefix}scheduler.parked (ACCESS_REFUSED"),
            (
                ("parked", "drop", "--all", "--yes"),
                "AMQP_URL",
                f"to read {site.prefix}scheduler.parked (ACCESS_REFUSED",
            ),
            (("deliveries", "replay", "1", "--yes"), "DATABASE_URL", "to insert into deliveries and history (cannot"),
        ):
            ended = await reader(*arguments)
            says = f"the user 'duebell_reader' of {variable} lacks a right that this command needs: {right}"
            assert (ended.status, says in ended.err) == (1, True), (arguments, ended)
            assert ended.err.splitlines()[-1].startswith("duebell: "), ended
    async with an_operator(site.environment_of("consumer")) as duebell:
        ended = await duebell("deliveries", "list")
        assert ended.status == 1
        assert "to read Duebell's tables, as duebell_reader may (permission denied for table deliveries)" in ended.err


async def test_without_topology_and_without_schema_the_next_step_is_named(site: Site, duebell: Operator) -> None:
    elsewhere = {**site.environment, "AMQP_PREFIX": "not-set-up."}
    async with an_operator(elsewhere) as operator:
        ended = await operator("cancel", "tea", "--yes")
        assert ended.status == 1
        assert "python -m shared.topology" in ended.err
    empty = {**site.environment, "DATABASE_URL": site.database_url.rpartition("/")[0] + "/postgres"}
    async with an_operator(empty) as operator:
        ended = await operator("list")
        assert ended.status == 1, ended
        assert "python -m shared.migrate" in ended.err


async def test_a_missing_address_is_taken_from_the_stack_of_make_up(
    site: Site, app: Application, tmp_path: Path
) -> None:
    (tmp_path / ".stack").mkdir()
    own = site.environment_of("reader")
    endpoints = {
        "database_url": site.database_url,
        "amqp_url": site.amqp_url,
        "reader_database_url": own["DATABASE_URL"],
        "reader_amqp_url": own["AMQP_URL"],
    }
    (tmp_path / ".stack/endpoints.json").write_text(json.dumps(endpoints))
    given = {"AMQP_URL": site.amqp_url, "DATABASE_URL": site.database_url}
    for missing in ("AMQP_URL", "DATABASE_URL"):
        environment = {name: url for name, url in given.items() if name != missing}
        ended = await duebell("status", cwd=str(tmp_path), AMQP_PREFIX=site.prefix, **environment)
        assert json.loads(ended.out)["queues"]["inbox"] == 0, ended
        assert f"{missing} is not set: using the stack of `make up`" in ended.err
        assert ended.err.count("is not set") == 1
    needs_no_broker = await duebell("list", cwd=str(tmp_path), DATABASE_URL=site.database_url)
    assert needs_no_broker.err == ""


async def test_without_addresses_and_without_a_stack_make_up_is_named(tmp_path: Path) -> None:
    for command, variable in (("list", "DATABASE_URL"), ("status", "DATABASE_URL")):
        ended = await duebell(command, cwd=str(tmp_path))
        assert ended.status == 2
        assert f"{variable}: is not set" in ended.err
        assert "`make up`" in ended.err
