"""Tries failed deliveries again: `python -m delivery.replay`. A failed delivery stays as it is; its replay is a new one
that points to it and carries the same idempotency key, so a receiver that has seen it after all can tell. A running
delivery service picks it up at once.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import asyncpg
from pydantic import Field
from pydantic_settings import BaseSettings

from delivery.store_ended import FailedDelivery, Wanted, replay, select_failed
from shared.database import PASSING_TROUBLE, describe
from shared.instants import format_instant, parse_date_time
from shared.settings import PostgresUrl, load_settings

BATCH = 500
COLUMNS = ("delivery", "job", "topic", "due", "failed", "attempts", "reason", "host")


class ReplaySettings(BaseSettings):
    database_url: PostgresUrl = Field(repr=False)


def _instant(text: str) -> datetime:
    try:
        moment = parse_date_time(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError("needs an offset, such as 2026-07-10T09:00:00Z")
    return moment


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m delivery.replay",
        description="Try failed deliveries again, under the same idempotency key. DATABASE_URL says where.",
        epilog="Conditions are joined by and. A delivery is replayed once; if its replay fails, replay that one.",
    )
    parser.add_argument("--delivery", type=int, action="append", metavar="ID", help="this delivery (may be repeated)")
    parser.add_argument("--job", action="append", metavar="ID", help="deliveries of this job (may be repeated)")
    parser.add_argument("--since", type=_instant, metavar="INSTANT", help="failed at or after this instant")
    parser.add_argument("--until", type=_instant, metavar="INSTANT", help="failed before this instant")
    parser.add_argument("--reason", metavar="REASON", help="failed for this reason, such as http_503, timeout, http_5*")
    parser.add_argument("--limit", type=int, default=1000, help="at most so many, oldest first (default 1000)")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be replayed")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    chosen = parser.parse_args(arguments)
    if not any((chosen.delivery, chosen.job, chosen.since, chosen.until, chosen.reason)):
        parser.error("say which: --delivery, --job, --since, --until or --reason")
    if chosen.limit < 1:
        parser.error("--limit must be at least 1")
    return chosen


async def run(chosen: argparse.Namespace, database_url: str) -> int:
    wanted = Wanted(chosen.delivery, chosen.job, chosen.since, chosen.until, chosen.reason)
    connection = await asyncpg.connect(database_url, timeout=10, command_timeout=60)
    try:
        failed = await select_failed(connection, wanted, chosen.limit)
        replayed: dict[int, int] = {}
        if failed and not chosen.dry_run:
            if not chosen.yes and not _confirmed(failed):
                return 1
            for first in range(0, len(failed), BATCH):
                replayed |= await replay(connection, [one.id for one in failed[first : first + BATCH]])
    finally:
        await connection.close(timeout=5)
    _show(failed, replayed, dry_run=chosen.dry_run)
    return 0


def _confirmed(failed: Sequence[FailedDelivery]) -> bool:
    if not sys.stdin.isatty():
        sys.stderr.write(f"{len(failed)} to replay: say --yes to do it, or --dry-run to see them\n")
        return False
    sys.stderr.write(f"{_table(failed)}\nReplay {_deliveries(len(failed))}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _show(failed: Sequence[FailedDelivery], replayed: dict[int, int], *, dry_run: bool) -> None:
    if not sys.stdout.isatty():
        rows = [{**_plain(one), "replayed_as": replayed.get(one.id)} for one in failed]
        sys.stdout.write(json.dumps({"dry_run": dry_run, "deliveries": rows}, indent=2) + "\n")
    elif dry_run:
        sys.stdout.write(f"{_table(failed)}\n{_deliveries(len(failed))} would be replayed\n")
    else:
        sys.stdout.write(f"{_deliveries(len(replayed))} replayed\n")


def _plain(one: FailedDelivery) -> dict[str, Any]:
    return {
        name: format_instant(value) if isinstance(value, datetime) else value for name, value in asdict(one).items()
    }


def _table(failed: Sequence[FailedDelivery]) -> str:
    rows = [COLUMNS]
    for one in failed:
        due, ended = (format_instant(moment.replace(microsecond=0)) for moment in (one.due_at, one.finished_at))
        rows.append((str(one.id), one.job_id, one.topic, due, ended, str(one.attempts), one.failure_reason, one.host))
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _deliveries(number: int) -> str:
    return f"{number} {'delivery' if number == 1 else 'deliveries'}"


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = parse_arguments(arguments)
    settings = load_settings(ReplaySettings)
    try:
        return asyncio.run(run(chosen, settings.database_url))
    except PASSING_TROUBLE as error:
        sys.stderr.write(f"cannot replay: {describe(error)}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
