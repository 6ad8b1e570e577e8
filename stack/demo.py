"""`make demo`: the whole journey of a few jobs, once, on a private stack. Shows each step as it happens, then checks
that what it showed is what should have happened; exits 0 if it is, and leaves nothing running either way.
"""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta

from rich.console import Console
from rich.markup import escape

from stack.directory import LOGS, run_directory
from stack.journey import CANCELLED, ONE_SHOT, PULSES, RECURRING, Addresses, Journal, Step, run_journey
from stack.roles import APPLICATION
from stack.services import DEMO_SECRET, SERVICES, ServiceContext, receiver, services
from stack.stores import stores
from stack.terminal import Check, show_checks, show_journey, timed

COLOURS = {ONE_SHOT: "green", RECURRING: "cyan", CANCELLED: "magenta"}


def main() -> int:
    return show_journey("demo", _run, "To keep a stack running and publish to it yourself: [bold]make up[/]")


def _run(console: Console) -> list[Check]:
    console.print("\n[bold]Duebell[/] rings when it is time: three jobs, on a private Postgres and RabbitMQ.\n")
    with ExitStack() as running:
        directory = running.enter_context(run_directory("demo"))
        with timed(console, "Postgres and RabbitMQ started"):
            postgres, rabbitmq = running.enter_context(stores(directory))
        context = ServiceContext.on(postgres, rabbitmq, directory, directory / LOGS)
        with timed(console, f"schema migrated, {', '.join(SERVICES)} and a webhook receiver ready"):
            running.enter_context(services(context))
            hooked = running.enter_context(receiver(context))
        console.print("\n[dim]  seconds  job        seen in       what happened[/]")
        journal = Journal(show=lambda step: _show(console, step))
        hook = f"{hooked.url}/tea"
        addresses = Addresses(postgres.url, rabbitmq.url_of(APPLICATION), hook, DEMO_SECRET, hooked.log)
        asyncio.run(run_journey(addresses, journal))
        checks = judge(journal)
        show_checks(console, checks)
        with timed(console, "everything stopped"):
            running.close()
    return checks


def judge(journal: Journal) -> list[Check]:
    """Check what must be true of every run."""
    rings = {job: journal.events.get(job, []) for job in COLOURS}
    outcomes = {job: [reply["outcome"] for reply in journal.replies.get(job, [])] for job in COLOURS}
    pulse_at = journal.due_at[RECURRING]
    every_ring = [event for events in rings.values() for event in events]
    return [
        Check(
            "tea rang once, at the moment it was asked for, and is done",
            _due(rings[ONE_SHOT]) == [journal.due_at[ONE_SHOT]] and journal.states[ONE_SHOT][-1] == "done",
        ),
        Check(
            f"pulse rang {PULSES} times, a second apart, numbered in order, and is done",
            _due(rings[RECURRING]) == [pulse_at + timedelta(seconds=n) for n in range(PULSES)]
            and [event["sequence"] for event in rings[RECURRING]] == list(range(1, PULSES + 1))
            and journal.states[RECURRING][-1] == "done",
        ),
        Check(
            "doorbell was accepted, then cancelled, and never rang",
            outcomes[CANCELLED] == ["accepted", "cancelled"]
            and rings[CANCELLED] == []
            and journal.states[CANCELLED][-1] == "cancelled",
        ),
        Check(
            "tea's webhook was called once, signed, and its delivery is COMPLETED",
            len(journal.received) == 1
            and journal.received[0].split()[1:3] == ["first", rings[ONE_SHOT][0]["idempotency_key"]]
            and [event["status"] for event in journal.completed] == ["COMPLETED"],
        ),
        Check("nothing rang early", all(_instant(e["fired_at"]) >= _instant(e["due_at"]) for e in every_ring)),
        Check(
            "every ring carries a key of its own",
            len({event["idempotency_key"] for event in every_ring}) == len(every_ring) == 1 + PULSES,
        ),
    ]


def _due(events: Sequence[dict[str, str]]) -> list[datetime]:
    return [_instant(event["due_at"]) for event in events]


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _show(console: Console, step: Step) -> None:
    colour = COLOURS.get(step.job, "white")
    console.print(f"  [dim]{step.seconds:7.3f}[/]  [{colour}]{step.job:<9}[/]  {step.where:<12}  {escape(step.text)}")


if __name__ == "__main__":
    sys.exit(main())
