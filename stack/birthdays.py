"""`make birthdays`: the birthday application of `examples/birthdays` on a private stack, with a birthday that is due
in a few seconds. Shows its journey to the greeting, checks it, and leaves nothing running; exits 0 if all is well.
"""

import asyncio
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from rich.console import Console
from rich.markup import escape

from examples.birthdays.migrate import migrate
from examples.birthdays.provision import ROLE, broker_definitions, provision
from stack.birthdays_journey import Addresses, Birthday, Journal, run_journey
from stack.directory import LOGS, run_directory
from stack.errors import StartError
from stack.ports import LOOPBACK
from stack.rabbitmq import RabbitMQ
from stack.services import DEMO_SECRET, SERVICES, Service, ServiceContext, services
from stack.stores import stores
from stack.terminal import Check, show_checks, show_journey, timed

BIRTHDAYS = "examples.birthdays"
# How far ahead the birthday is when the application starts. If less than MIN_LEAD is left when the application is
# ready, it starts again with a longer lead.
FIRST_LEAD = timedelta(seconds=7)
MIN_LEAD = timedelta(seconds=3)
STARTS = 4


class BirthdayApplication(Service):
    """The birthday application in one process, with users of its own in both stores."""

    health = "/verdicts"

    def __init__(self, context: ServiceContext, environment: dict[str, str], birthday: Birthday) -> None:
        super().__init__(context, BIRTHDAYS, "birthdays")
        self._environment = environment
        self.birthday = birthday

    def _address(self) -> dict[str, str]:
        return {
            **self._environment,
            "HTTP_HOST": LOOPBACK,
            "HTTP_PORT": str(self.port),
            "WEBHOOK_URL": f"{self.url}/webhook",
            "GREETING_TIME": self.birthday.greeting_time,
        }


def main() -> int:
    return show_journey("birthdays", _run, "How it is done, and what to copy: [bold]examples/birthdays/README.md[/]")


def _run(console: Console) -> list[Check]:
    console.print("\n[bold]Birthdays[/], an application on top of Duebell: one of them is in a few seconds.\n")
    with ExitStack() as running:
        directory = running.enter_context(run_directory("birthdays"))
        with timed(console, "Postgres and RabbitMQ started"):
            postgres, rabbitmq = running.enter_context(stores(directory))
        context = ServiceContext.on(postgres, rabbitmq, directory, directory / LOGS)
        with timed(console, f"Duebell's {', '.join(SERVICES)} ready"):
            running.enter_context(services(context))
        with timed(console, "the application ready, with users of its own in both stores"):
            environment = _provision(context, rabbitmq, directory)
            application = running.enter_context(_application(context, environment))
        console.print("\n[dim]  seconds  seen in      what happened[/]")
        journal = Journal(
            show=lambda seconds, where, text: console.print(f"  [dim]{seconds:7.3f}[/]  {where:<11}  {escape(text)}")
        )
        addresses = Addresses(application.url, rabbitmq.url, application.log, context.webhook_secret)
        asyncio.run(run_journey(addresses, application.birthday, journal))
        checks = judge(journal)
        show_checks(console, checks)
        with timed(console, "everything stopped"):
            running.close()
    return checks


def judge(journal: Journal) -> list[Check]:
    """Check what must be true of every run."""
    logged = [line["event"] for line in journal.log]
    return [
        Check("the user was answered with the next birthday, which is when Duebell rang", journal.rang_as_answered),
        Check("the new name came in time", logged.count("rescheduled") == 1 and "Ada King" in journal.message),
        Check("the webhook was signed, and greeted once", logged.count("greeted") == 1 and journal.greetings == 1),
        Check("a copy of the call had no second effect", journal.copy == (200, "duplicate")),
        Check("a call with another signature was refused", journal.forged == 401),
        Check("the schedule of the deleted user is cancelled", logged.count("cancelled") == 1),
    ]


def _provision(context: ServiceContext, rabbitmq: RabbitMQ, directory: Path) -> dict[str, str]:
    """Create the application's users in both stores and its schema. Returns its environment."""
    password = secrets.token_hex(16)
    definitions = directory / "birthdays.json"
    definitions.touch(mode=0o600)
    definitions.write_text(broker_definitions(password))
    rabbitmq.ctl("import_definitions", str(definitions))
    own = {
        "DATABASE_URL": _as_user(context.database_url, password),
        "AMQP_URL": _as_user(context.amqp_url, password),
        "WEBHOOK_SECRET_NAME": DEMO_SECRET,
        "WEBHOOK_SECRET": context.webhook_secret,
    }
    asyncio.run(provision(context.database_url, password))
    asyncio.run(migrate(own["DATABASE_URL"]))
    return own


def _as_user(url: str, password: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{ROLE}:{password}@{parts.hostname}:{parts.port}"))


@contextmanager
def _application(context: ServiceContext, environment: dict[str, str]) -> Iterator[BirthdayApplication]:
    """Start the application so that it is ready while its birthday is still at least MIN_LEAD ahead."""
    context.log("birthdays").unlink(missing_ok=True)
    lead = FIRST_LEAD
    for _ in range(STARTS):
        began = datetime.now(UTC)
        application = BirthdayApplication(context, environment, Birthday.at(began + lead))
        application.start()
        try:
            application.wait_ready()
            now = datetime.now(UTC)
            if application.birthday.due_at - now > MIN_LEAD:
                yield application
                return
            lead = 1.5 * (now - began) + 2 * MIN_LEAD
        finally:
            application.stop()
    raise StartError("The application took too long to start.", log=context.log("birthdays"), next_step="try again.")


if __name__ == "__main__":
    sys.exit(main())
