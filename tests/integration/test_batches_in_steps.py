"""A batch of commands of several users has the same effect as the commands one by one."""

import json
import random
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from consumer.commands.merge import Answer
from consumer.handler import BatchHandler
from consumer.metrics import Metrics
from shared.amqp.connection import Broker
from shared.amqp.message import IncomingMessage
from shared.amqp.publisher import Publisher
from shared.contract.messages import Outcome
from shared.postgres.pool import open_pool
from tests.support.builders import a_request
from tests.support.stores import Site

JOBS = 40
LENGTH = 10

JobsCommand = tuple[str, dict[str, Any], str | None]


@pytest.fixture
async def handler(site: Site) -> AsyncIterator[BatchHandler]:
    """Make a handler of which only `store` is used: its publisher has no connection."""
    publisher = Publisher(Broker(site.amqp_url, name="unused", names=site.names))
    async with open_pool(site.database_url_of("consumer"), "test", size=2) as pool:
        yield BatchHandler(pool, publisher, site.names, Metrics(CollectorRegistry()), 1000, 5.0, operators=("root",))


def a_message(key: str, content: dict[str, Any], user: str | None) -> IncomingMessage:
    body = json.dumps(content).encode()
    return IncomingMessage(1, body, "", key, None, None, None, None, None, None, None, "me", None, {}, None, user)


def a_random_command(chance: random.Random, job_id: str) -> JobsCommand:
    user = chance.choice([None, "alice", "alice", "bob", "root"])
    kind = chance.choice(["request", "request", "request", "cancel", "pause", "resume", "trigger", "trigger", "query"])
    content: dict[str, Any] = {"id": job_id}
    if kind == "request":
        revision = chance.randint(1, 5)
        content = a_request(id=job_id, revision=revision, payload=revision)
    if kind in {"cancel", "pause", "resume"} and (given := chance.choice([None, *range(6)])) is not None:
        content["revision"] = given
    if kind == "trigger":
        content["trigger_id"] = chance.choice(["x", "y", "z"])
    if kind == "query":
        content["history"] = 0  # its entries have the instant of their transaction
    return f"schedule.{kind}", content, user


def shuffled_together(chance: random.Random, each: list[list[JobsCommand]]) -> list[JobsCommand]:
    """Shuffle the commands of all jobs together, and keep the order of the commands of each job."""
    turns = [number for number, commands in enumerate(each) for _ in commands]
    chance.shuffle(turns)
    rest = [iter(commands) for commands in each]
    return [next(rest[turn]) for turn in turns]


async def _rows(database: Any) -> list[tuple[Any, ...]]:
    jobs = await database.fetch(
        "select id, status, owner, revision, life, payload, pause_revision, trigger_sequence from jobs order by id"
    )
    triggers = await database.fetch("select job_id, trigger_id, sequence, life from triggers order by 1, 2")
    return [tuple(row) for row in [*jobs, *triggers]]


def unmerged_answers(messages: list[JobsCommand], answers: list[Answer]) -> list[tuple[Any, ...]]:
    """Return the answers that do not depend on merging. Those to requests do: requests of one batch are answered as if
    the one with the highest revision had come first. History does, too: it tells of the requests that were stored.
    """
    return [
        (content["id"], key, given.outcome, given.errors, given.found and replace(given.found, history=()))
        for (key, content, _), given in zip(messages, answers, strict=True)
        if key != "schedule.request" or given.outcome is Outcome.REJECTED
    ]


@pytest.mark.parametrize("seed", range(6))
async def test_a_batch_has_the_effect_of_its_commands_one_by_one(
    handler: BatchHandler, database: Any, seed: int
) -> None:
    chance = random.Random(seed)
    each = [[a_random_command(chance, f"job-{job:02}") for _ in range(LENGTH)] for job in range(JOBS)]
    commands = shuffled_together(chance, each)
    messages = [a_message(*command) for command in commands]

    together = await handler.store(messages)
    after_batch = await _rows(database)
    await database.execute("truncate jobs cascade")
    one_by_one = [answer for message in messages for answer in await handler.store([message])]

    assert after_batch == await _rows(database)
    assert unmerged_answers(commands, together) == unmerged_answers(commands, one_by_one)
    outcomes = {(key, given.outcome) for (key, _, _), given in zip(commands, together, strict=True)}
    for wanted in [
        ("query", "found"),
        ("pause", "paused"),
        ("resume", "resumed"),
        ("trigger", "triggered"),
        ("trigger", "duplicate"),
    ]:
        assert (f"schedule.{wanted[0]}", wanted[1]) in outcomes, "this seed shows too little"


async def test_storing_a_batch_again_changes_nothing(handler: BatchHandler, database: Any) -> None:
    """So it is after a crash between the commit and the acknowledgement. A command that was refused because its job did
    not exist may find the job the second time. Every command has a revision, from a clock as the client takes it: a
    cancel without one would cancel the life that began after it. A trigger has none, so half of the jobs have no
    triggers, and the other half only one life.
    """
    chance, clock = random.Random(7), count(2)
    each = [[a_random_command(chance, f"job-{job:02}") for _ in range(LENGTH)] for job in range(JOBS)]
    requests = [
        ("schedule.request", a_request(id=f"job-{job:02}"), chance.choice([None, "alice"])) for job in range(JOBS)
    ]
    commands = [
        (key, content if key in {"schedule.trigger", "schedule.query"} else {**content, "revision": next(clock)}, user)
        for key, content, user in shuffled_together(chance, each)
        if key != ("schedule.cancel" if int(content["id"][-1]) % 2 else "schedule.trigger")
    ]
    messages = [a_message(*command) for command in requests + commands]
    await handler.store(messages)
    rows = await _rows(database)
    answers = await handler.store(messages)
    assert await _rows(database) == rows
    assert not any(given.changed for given in answers)
