"""What `duebell status` says needs attention, and which command it names."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from cli.app import app as command_line
from cli.output import Output
from cli.status import Queue, _print, as_object
from shared.reading.attention import Attention, what_needs_attention
from shared.reading.delayed_numbers import MessageNumbers
from shared.reading.overview import DeliveryNumbers, Instance, JobNumbers, Lateness, Overview

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)
QUEUES: dict[str, int | None] = {"inbox": 10, "deliveries": 0, "parked": 0, "unrouted": 0}


def process(service: str, silent: float = 2, host: str = "web-1", **fields: Any) -> Instance:
    seen_at = NOW - timedelta(seconds=silent)
    whole = {"stopped_at": None, "open_breakers": {}, **fields}
    return Instance("name", service, host, "1.0", NOW - timedelta(hours=3), seen_at, silent_for=NOW - seen_at, **whole)


ALL_RUN = [process("consumer"), process("producer"), process("producer"), process("delivery")]
WELL = Overview(
    now=NOW,
    schema_version=8,
    schema_needed=8,
    jobs=JobNumbers(12_345, 20, NOW - timedelta(seconds=1), 0, None, 0),
    deliveries=DeliveryNumbers(3, 0, None, 0),
    lateness=Lateness(812, NOW - timedelta(minutes=4), *(timedelta(seconds=one) for one in (0.02, 0.34, 2))),
    instances=ALL_RUN,
)


def without(service: str) -> list[Instance]:
    return [one for one in ALL_RUN if one.service != service]


def test_a_busy_installation_needs_no_attention() -> None:
    assert what_needs_attention(WELL, QUEUES) == []


PROBLEMS: list[tuple[dict[str, Any], dict[str, int | None], str, str]] = [
    ({"schema_version": 7}, {}, "it has version 7, and 8 is needed", "python -m shared.migrate"),
    ({"instances": without("producer")}, {}, "no producer process is running", "python -m producer"),
    (
        {"instances": [*without("delivery"), process("delivery", 200, "web-2")]},
        {},
        "no delivery process is running: the last one, on host web-2, gave its last sign of life 3 min ago",
        "python -m delivery",
    ),
    (
        {"instances": [*without("consumer"), process("consumer", 50, stopped_at=NOW)]},
        {},
        "no consumer process is running: the last one, on host web-1, stopped 50 s ago",
        "python -m consumer",
    ),
    ({}, {"inbox": None}, "the queue inbox is not there", "python -m shared.topology"),
    ({}, {"parked": 3}, "3 messages are parked", "duebell parked list"),
    ({}, {"unrouted": 1}, "1 event unrouted", "duebell unrouted list"),
    (
        {"jobs": replace(WELL.jobs, overdue_since=NOW - timedelta(minutes=4))},
        {},
        "20 jobs are overdue, the first for 4 min",
        "duebell list --to now",
    ),
    (
        {"jobs": replace(WELL.jobs, refused=10_000, refused_since=NOW - timedelta(hours=3))},
        {},
        "10,000 or more jobs are refused by the broker, one for 3 h",
        "duebell list --refused",
    ),
    (
        {"delayed": MessageNumbers(7, 2, NOW - timedelta(minutes=3))},
        {},
        "2 delayed messages are overdue, the first for 3 min",
        "duebell delayed list --to now",
    ),
    (
        {"delayed": MessageNumbers(7, 0, None, 1, NOW - timedelta(hours=1))},
        {},
        "1 delayed message is not taken by the broker, one for 60 min",
        "duebell delayed list --refused",
    ),
    (
        {"deliveries": DeliveryNumbers(3, 1, NOW - timedelta(minutes=10), 0)},
        {},
        "1 delivery is overdue, the first for 10 min",
        "duebell deliveries list --state open",
    ),
    (
        {"deliveries": DeliveryNumbers(3, 0, None, 2)},
        {},
        "2 webhook deliveries failed in the last 24 hours",
        "duebell deliveries list",
    ),
]
REMARKS: list[tuple[dict[str, Any], str, str]] = [
    ({"jobs": replace(WELL.jobs, paused=1)}, "1 job is paused", "duebell list --state paused"),
    (
        {"instances": [*ALL_RUN, process("delivery", open_breakers={"example.com:443": timedelta(seconds=12)})]},
        "no calls for now to example.com:443",
        "duebell deliveries list --state open",
    ),
    (
        {"instances": [*ALL_RUN, process("producer", 90, "web-2")]},
        "a producer on host web-2 gives no sign of life, since 90 s",
        "duebell status --watch",
    ),
]


@pytest.mark.parametrize(("change", "queues", "text", "next_command"), PROBLEMS)
def test_a_problem_is_named_with_the_command_to_run_next(
    change: dict[str, Any], queues: dict[str, int | None], text: str, next_command: str
) -> None:
    [found] = what_needs_attention(replace(WELL, **change), {**QUEUES, **queues})
    assert found.is_problem
    assert text in found.text
    assert found.next == next_command


@pytest.mark.parametrize(("change", "text", "next_command"), REMARKS)
def test_what_may_be_wanted_is_a_remark(change: dict[str, Any], text: str, next_command: str) -> None:
    [found] = what_needs_attention(replace(WELL, **change), QUEUES)
    assert not found.is_problem
    assert text in found.text
    assert found.next.startswith(next_command)


def test_every_command_that_is_named_exists() -> None:
    commands = {command.name or command.callback.__name__ for command in command_line.registered_commands
                if command.callback} | {group.name for group in command_line.registered_groups}  # fmt: skip
    named = [*(one[3] for one in PROBLEMS), *(one[2] for one in REMARKS)]
    first_words = {match[1] for command in named if (match := re.match(r"duebell (\w+)", command))}
    assert first_words
    assert first_words <= commands


def printed(seen: Overview, attention: list[Attention], width: int) -> str:
    console = Console(width=width, highlight=False)
    out = Output(as_json=False, zone=UTC, now=NOW, width=width, console=console)
    queues = {role: Queue(f"scheduler.{role}", messages, 1) for role, messages in QUEUES.items()}
    with console.capture() as capture:
        _print(out, seen, queues, attention)
    return capture.get()


@pytest.mark.parametrize("width", [80, 120])
def test_the_status_fits_the_terminal_and_has_humane_units(width: int) -> None:
    bad = replace(WELL, instances=[*ALL_RUN, process("producer", 90, "web-2")], jobs=replace(WELL.jobs, paused=7))
    text = printed(bad, what_needs_attention(bad, {**QUEUES, "parked": 2}), width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines()), text
    words = " ".join(text.split())
    for piece in (
        "jobs 12,345 pending, 20 of them overdue, the first for 1 s",
        "paused 7",
        "p50 20 ms, p99 340 ms, longest 2 s: of the last 812 rings, since 11:56:00",
        "producer silent 90 s ago",
        "! 2 messages are parked",
        "duebell parked list",
        "· 7 jobs are paused",
    ):
        assert piece in words, text
    assert "All well." in printed(WELL, [], width)


def test_a_lateness_that_the_history_does_not_tell_is_not_invented() -> None:
    unknown = replace(WELL, lateness=None)
    assert "no ring of the last 5 minutes is in the history" in printed(unknown, [], 80)
    assert as_object(unknown, {}, [])["lateness"] is None


def test_processes_that_stopped_in_order_are_left_out_while_others_run() -> None:
    seen = replace(WELL, instances=[*ALL_RUN, process("producer", stopped_at=NOW)])
    assert "stopped" not in printed(seen, [], 120)
    assert as_object(seen, {}, [])["services"] == {"consumer": 1, "producer": 2, "delivery": 1}
    assert "stopped" in printed(replace(WELL, instances=[process("producer", stopped_at=NOW)]), [], 120)
