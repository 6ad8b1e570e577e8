"""`python -m tests.chaos.receiver`: the receiver of webhooks, a process that no fault touches. It acts once on each
X-Idempotency-Key and writes every call to a file before it answers. Depending on seed, key and number of the call, it
fails, hangs or disconnects, before it has acted or after.
"""

import asyncio
import json
import os
import random
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TextIO

from aiohttp import web

from tests.chaos.ledger import Call, now

SEED, PORT, FILE = "CHAOS_SEED", "RECEIVER_PORT", "RECEIVER_FILE"
HANG_SECONDS = 3.0

GOOD = "answers 200"
# What the receiver does, the probability, and whether it has acted by then.
BEHAVIOURS = {
    "answers 500": (0.04, False),
    "disconnects before it acts": (0.01, False),
    "disconnects after it acted": (0.02, True),
    "hangs after it acted": (0.02, True),
}


def behaviour(seed: int, key: str, number: int) -> tuple[str, bool]:
    """What the receiver does at this call, and whether it acts. From the third call of a key on, it answers 200."""
    left = random.Random(f"{seed} {key} {number}").random()
    if number <= 2:
        for name, (likely, acts) in BEHAVIOURS.items():
            if left < likely:
                return name, acts
            left -= likely
    return GOOD, True


class DifficultReceiver:
    def __init__(self, seed: int, file: TextIO) -> None:
        self._seed = seed
        self._file = file
        self._calls: Counter[str] = Counter()
        self._acted: set[str] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        key = request.headers["X-Idempotency-Key"]
        content = await request.json()
        self._calls[key] += 1
        name, acts = behaviour(self._seed, key, self._calls[key])
        effect = acts and key not in self._acted
        if acts:
            self._acted.add(key)
        self._note(key, content, name, effect)
        if name == "answers 500":
            return web.Response(status=500)
        if name == GOOD:
            return web.Response(status=200)
        if name == "hangs after it acted":
            await asyncio.sleep(HANG_SECONDS)
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=200)

    def _note(self, key: str, content: dict[str, str], name: str, effect: bool) -> None:
        line = {"job": content["id"], "key": key, "due_at": content["due_at"], "seen_at": now().isoformat()}
        self._file.write(json.dumps({**line, "behaviour": name, "effect": effect}) + "\n")
        self._file.flush()


def read_calls(file: Path) -> list[Call]:
    calls = []
    for line in file.read_text().splitlines():
        said = json.loads(line)
        instants = {name: datetime.fromisoformat(said[name]) for name in ("due_at", "seen_at")}
        calls.append(Call(said["job"], said["key"], behaviour=said["behaviour"], effect=said["effect"], **instants))
    return calls


def main() -> None:
    with Path(os.environ[FILE]).open("a") as file:
        app = web.Application()
        app.router.add_post("/{tail:.*}", DifficultReceiver(int(os.environ[SEED]), file).handle)
        web.run_app(app, host="127.0.0.1", port=int(os.environ[PORT]), access_log=None, print=None)


if __name__ == "__main__":
    main()
