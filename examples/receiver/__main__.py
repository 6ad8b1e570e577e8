"""`python -m examples.receiver`: listens for webhooks, writes a line for each, and acts on the first of each key alone.

RECEIVER_HOST    address to listen on, 127.0.0.1
RECEIVER_PORT    port to listen on, 8090
RECEIVER_SECRET  signing secret (whsec_…); if it is set, calls whose signature does not verify are answered with 401
"""

import json
import os
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime

from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

# A real receiver keeps the keys where it keeps the effects, in the same transaction; this one forgets the oldest.
KEYS_KEPT = 100_000


@dataclass(slots=True)
class Receiver:
    secret: Webhook | None = None
    seen: "OrderedDict[str, int]" = field(default_factory=OrderedDict)

    async def receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        key = request.headers.get("X-Idempotency-Key", "")
        if self.secret is not None:
            try:
                self.secret.verify(body, dict(request.headers), json_parse=False)
            except (WebhookVerificationError, ValueError) as error:  # ValueError: a header that is not even of the form
                show("REFUSED", key, f"{error}")
                return web.Response(status=401, text="the signature does not verify\n")
        times = self.seen[key] = self.seen.pop(key, 0) + 1
        while len(self.seen) > KEYS_KEPT:
            self.seen.popitem(last=False)
        # The first call is the one that counts; a repetition is answered just as kindly, and changes nothing.
        show("first" if times == 1 else f"again x{times}", key, describe(body))
        return web.json_response({"first": times == 1})


def describe(body: bytes) -> str:
    try:
        content = json.loads(body)
        due_at = datetime.fromisoformat(content["due_at"])
        late = (datetime.now(UTC) - due_at).total_seconds()
        payload = json.dumps(content["payload"], ensure_ascii=False)
        text = (
            f"{content['id']} #{content['sequence']} {content['topic']} due {due_at:%H:%M:%S} ({late:+.2f} s) {payload}"
        )
    except (ValueError, KeyError, TypeError):
        text = repr(body)
    return text if len(text) <= 300 else text[:299] + "…"


def show(what: str, key: str, text: str) -> None:
    # Whatever a caller sends stays on one line.
    line = f"{datetime.now(UTC):%H:%M:%S}  {what:9}  {key[:40]:38}  {text}"
    sys.stdout.write("".join(c if c.isprintable() else "?" for c in line) + "\n")
    sys.stdout.flush()


async def alive(_: web.Request) -> web.Response:
    return web.json_response({"status": "alive"})


def main() -> int:
    secret = os.environ.get("RECEIVER_SECRET")
    receiver = Receiver(Webhook(secret) if secret else None)
    app = web.Application(client_max_size=32 * 1024 * 1024)
    app.router.add_get("/healthz", alive)
    app.router.add_post("/{path:.*}", receiver.receive)
    host, port = os.environ.get("RECEIVER_HOST", "127.0.0.1"), int(os.environ.get("RECEIVER_PORT", "8090"))
    signed = "signatures are verified" if secret else "signatures are not verified"
    sys.stdout.write(f"listening on http://{host}:{port}/, {signed}\n")
    sys.stdout.flush()
    web.run_app(app, host=host, port=port, print=None, access_log=None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
