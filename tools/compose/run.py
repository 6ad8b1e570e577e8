"""What `make compose` does beside the engine: gets images, takes the steps, prints the tables, removes everything."""

import base64
import json
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from stack.errors import StackError
from stack.services import DEMO_SECRET
from stack.up import stop_on_signals
from tools.compose.errors import StepError
from tools.compose.project import Project, run_docker
from tools.compose.report import ImageRow, Row, report
from tools.compose.steps import COMPOSE_LOG, STEPS, close_way_out, start_from_nothing
from tools.engine.images import Image, get_images, version_of
from tools.engine.layout import ENGINE


def main() -> int:
    stop_on_signals()
    key = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    signing = {"WEBHOOK_SECRETS": json.dumps({DEMO_SECRET: key}), "WEBHOOK_SECRET_NAMES": DEMO_SECRET}
    project = Project(ENGINE / "run", COMPOSE_LOG, **signing)
    rows: list[Row] = []
    images: Sequence[Image] = ()
    try:
        images = get_images(_tell)
        _take_steps(project, rows)
    except StackError as problem:
        _tell(str(problem))
        return 1
    except KeyboardInterrupt:
        _tell("stopped: removing the containers …")
        return 130
    finally:
        with suppress(StepError):
            project.run("down", "--volumes", "--remove-orphans", "--timeout", "5")
        if rows:
            told = [ImageRow(image.name, version_of(image)) for image in images]
            tables = report(_engine(), told, rows)
            _tell(f"\n{datetime.now(UTC):%Y-%m-%d}. {tables}\n\nThe logs are in .stack/engine/run/logs.")
    return 0 if all(row.passed for row in rows) and len(rows) == len(STEPS) else 1


def _take_steps(project: Project, rows: list[Row]) -> None:
    """Take the steps up to the first that fails: the ones behind it need it."""
    for number, (name, step) in enumerate(STEPS):
        began = time.monotonic()
        try:
            seen, passed = step(project), True
        except StepError as problem:
            seen, passed = str(problem), False
        rows.append(Row(name, seen, time.monotonic() - began, passed))
        _tell(f"{'ok    ' if passed else 'FAILED'} {name}: {seen} ({rows[-1].seconds:.0f} s)")
        if not passed:
            # Into the log of the run: the containers are removed next, and their logs with them.
            with suppress(StepError):
                project.run("logs", "--no-color", "--timestamps")
            return
        if step is start_from_nothing and STEPS[number + 1][1] is not start_from_nothing:
            close_way_out()


def _engine() -> str:
    docker = run_docker(["docker", "version", "--format", "{{.Server.Version}}"], COMPOSE_LOG).strip()
    compose = run_docker(["docker", "compose", "version", "--short"], COMPOSE_LOG).strip()
    store = run_docker(["docker", "info", "--format", "{{.Driver}} {{.DriverStatus}}"], COMPOSE_LOG)
    images = "containerd's image store" if "containerd.snapshotter" in store else "the classic image store"
    return f"Docker {docker.partition('+')[0]}, Compose {compose.partition('-')[0]}, {images}."


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
