"""The command line `duebell`, for operators: every command in one place."""

import sys

import typer

from cli import (
    apply,
    bulk,
    commands,
    delay,
    delayed,
    deliveries,
    job_list,
    job_show,
    parked,
    preview,
    status,
    unrouted,
    why,
)
from shared.runtime.logs import configure_logs
from shared.version import VERSION

DELAYED_PANEL = "Delayed messages"
KEPT = "Deliveries, parked and unrouted messages"

app = typer.Typer(
    name="duebell",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Schedule jobs, look at what Duebell does, and repair it. Reads DATABASE_URL, AMQP_URL and AMQP_PREFIX, "
    "as the services do.",
    epilog="Exit status: 0 done; 1 refused, not found, or something needs attention; 2 wrong usage; 3 Postgres or "
    "RabbitMQ cannot be reached; 4 sent, but no answer in time.",
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"duebell {VERSION}\n")
        raise typer.Exit


@app.callback()
def _options(
    _: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version and exit."),
) -> None:
    configure_logs("cli", "error")


for command in (commands.schedule, commands.cancel, commands.pause, commands.resume, commands.trigger):
    app.command(rich_help_panel="Commands to a job")(command)
app.command(rich_help_panel="Commands to a job")(apply.apply)
app.add_typer(bulk.app, name="bulk", rich_help_panel="Commands to a job")
app.command("list", rich_help_panel="Looking")(job_list.list_)
app.command(rich_help_panel="Looking")(job_show.show)
app.command(rich_help_panel="Looking")(why.why)
app.command(rich_help_panel="Looking")(preview.preview)
app.command(rich_help_panel="Looking")(status.status)
app.add_typer(delay.app, name="delay", rich_help_panel=DELAYED_PANEL)
app.add_typer(delayed.app, name="delayed", rich_help_panel=DELAYED_PANEL)
app.add_typer(deliveries.app, name="deliveries", rich_help_panel=KEPT)
app.add_typer(parked.app, name="parked", rich_help_panel=KEPT)
app.add_typer(unrouted.app, name="unrouted", rich_help_panel=KEPT)


def main() -> int:
    app(prog_name="duebell")
    return 0
