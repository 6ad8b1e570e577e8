"""`make up`: runs the whole stack on this machine until Ctrl-C.

Everything is new at each start: data lives under `.stack/up` and is removed when the stack stops; logs stay in
`.stack/logs`. While all parts are ready, and only then, `.stack/endpoints.json` says where they are. A service that
ends unexpectedly is started again. Another part that ends, or a service that keeps ending, stops the stack, with a
reason and a non-zero exit code.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn, Protocol

from stack import prometheus
from stack.directory import STACK, claim, clean_up_after_the_dead
from stack.errors import DirectoryInUseError, StackError, last_lines
from stack.prometheus import Prometheus, scrape_targets
from stack.rabbitmq import MANAGEMENT
from stack.roles import READER
from stack.services import CONSOLE, DEMO_SECRET, SERVICES, Service, ServiceContext, console, receiver, services
from stack.stores import stores

ENDPOINTS = "endpoints.json"
WATCH_SECONDS = 0.3
RESTARTS_A_MINUTE = 10


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    stop_on_signals()
    try:
        run_until_interrupted(options.directory, options.services)
    except KeyboardInterrupt:
        print("\nStopped. Nothing is left running.")
        return 0
    except StackError as error:
        print(f"duebell: {error}", file=sys.stderr)
        return 1


def run_until_interrupted(root: Path, names: Sequence[str]) -> NoReturn:
    """Start everything below `root` and watch over it. This ends by an exception alone, and everything is stopped."""
    root = root.absolute()
    logs = root / "logs"
    with ExitStack() as running:
        directory = running.enter_context(_only_one(root))
        print("Starting Postgres and RabbitMQ …", flush=True)
        watched = bool(names) and prometheus.installed()
        plugins = (MANAGEMENT, prometheus.RABBITMQ_PLUGIN) if watched else (MANAGEMENT,)
        postgres, rabbitmq = running.enter_context(stores(directory, logs=logs, plugins=plugins))
        if names:
            print(f"Migrating, and starting {_listed(names)} …", flush=True)
        context = ServiceContext.on(postgres, rabbitmq, directory, logs)
        with_stores = [name for name in names if name != CONSOLE]
        started: dict[str, Service] = dict(running.enter_context(services(context, with_stores)))
        if "delivery" in names:
            started["receiver"] = running.enter_context(receiver(context))
        if CONSOLE in names:
            started[CONSOLE] = running.enter_context(console(context))
        endpoints = {
            "database_url": postgres.url,
            "amqp_url": rabbitmq.url,
            "reader_database_url": postgres.url_of(READER),
            "reader_amqp_url": rabbitmq.url_of(READER),
            "management_url": rabbitmq.management_url_of(READER),
            **{name: service.url for name, service in started.items()},
            **({"webhook_secret": context.webhook_secret} if "delivery" in names else {}),
        }
        parts: dict[str, WatchedPart] = {"Postgres": postgres, "RabbitMQ": rabbitmq, **started}
        if watched:
            watcher = Prometheus(directory, scrape_targets(rabbitmq, started), logs=logs, every="5s")
            parts["Prometheus"] = running.enter_context(watcher)
            endpoints["prometheus"] = watcher.url
        running.enter_context(_published(root / ENDPOINTS, endpoints))
        print(_page(root, endpoints), flush=True)
        watch(parts)


class WatchedPart(Protocol):
    """A process of the stack that `watch()` looks after."""

    log: Path

    def alive(self) -> bool: ...


def watch(parts: Mapping[str, WatchedPart]) -> NoReturn:
    """Start a service again that has ended, as compose would do. Raise if a service keeps ending, or if another part
    ends.
    """
    restarts: dict[str, list[float]] = {}
    while True:
        for name, part in parts.items():
            if part.alive():
                continue
            lately = [moment for moment in restarts.get(name, []) if time.monotonic() - moment < 60]
            if not isinstance(part, Service) or len(lately) >= RESTARTS_A_MINUTE:
                raise StackError(
                    f"{name} ended unexpectedly; stopping the rest. The end of {part.log}:\n{last_lines(part.log)}"
                )
            print(f"{name} ended with exit code {part.stop()}; starting it again. Its log is {part.log}.", flush=True)
            part.start()
            restarts[name] = [*lately, time.monotonic()]
        time.sleep(WATCH_SECONDS)


@contextmanager
def _only_one(root: Path) -> Iterator[Path]:
    """Claim the directory of the one stack that may be up here."""
    clean_up_after_the_dead(root)
    try:
        claimed = claim(root / "up")
    except DirectoryInUseError as in_use:
        raise DirectoryInUseError(
            f"a stack is already up here ({in_use}).\n  what to do: use it ({root}/{ENDPOINTS}), or stop it first"
        ) from None
    (root / ENDPOINTS).unlink(missing_ok=True)  # a killed run could not
    try:
        yield claimed.path
    finally:
        claimed.empty()
        claimed.release()


@contextmanager
def _published(file: Path, endpoints: Mapping[str, str]) -> Iterator[None]:
    """Keep the file there, complete, for as long as the block runs. It holds passwords: only this user may read it."""
    draft = file.with_suffix(".tmp")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(endpoints, indent=2) + "\n")
    try:
        draft.replace(file)
        yield
    finally:
        file.unlink(missing_ok=True)


def _page(root: Path, endpoints: Mapping[str, str]) -> str:
    where = "\n".join(f"  {name:<19} {url}" for name, url in endpoints.items())
    shown = Path(os.path.relpath(root))
    return f"""
Duebell is up.

{where}

  To schedule something, publish a ScheduleRequest to the exchange schedule.commands with the routing key
  schedule.request, and listen on the exchange schedule.events:

      {{"id": "hello-1", "at": "2030-01-01T09:00:00Z", "topic": "hello", "payload": {{"any": "JSON"}}}}

{_where_webhooks_go(shown, endpoints)}
{_where_to_look(endpoints)}
  For programs, the same addresses are in {shown}/{ENDPOINTS}. Each service answers /metrics, /healthz and /readyz.
  Logs are in {shown}/logs. Data is fresh at every start and goes when you stop.

Ctrl-C stops everything.
"""


def _where_to_look(endpoints: Mapping[str, str]) -> str:
    pages = f"  Look at everything, and act, in the console: {endpoints[CONSOLE]}\n" if CONSOLE in endpoints else ""
    if url := endpoints.get("prometheus"):
        text = f"Metrics are collected: see the alerts at {url}/alerts, and draw what you like at {url}/graph."
    else:
        text = "Prometheus is not installed: after `make prometheus`, metrics are collected and alerts watched, too."
    return f"{pages}  {text}\n"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _where_webhooks_go(shown: Path, endpoints: Mapping[str, str]) -> str:
    if "receiver" not in endpoints:
        return ""
    return f"""  To be called as well, add a webhook. The receiver writes what it gets to {shown}/logs/receiver.log.
  Here Duebell may call this machine (WEBHOOK_ALLOW_NETWORKS), which it otherwise refuses:

      "webhook": {{"url": "{endpoints["receiver"]}/hello", "secret": "{DEMO_SECRET}"}}

  The secret {DEMO_SECRET!r} is webhook_secret, for a receiver of your own. A service that ends is started again.
"""


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m stack.up", description="The whole stack on this machine.")
    parser.add_argument("--directory", type=Path, default=STACK, help="where its files go (default: .stack)")
    parser.add_argument(
        "--services",
        nargs="*",
        default=(*SERVICES, CONSOLE),
        help="which services to start; none of them: only the stores",
    )
    return parser.parse_args(arguments)


def stop_on_signals() -> None:
    """Make SIGINT, SIGTERM and SIGHUP end this process as Ctrl-C does."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    # SIGINT, too: a shell that starts this process in the background makes it ignore SIGINT.
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, interrupt)


if __name__ == "__main__":
    sys.exit(main())
